"""PURE. Advice as a config that ``dataprep shard`` runs unchanged, its evidence as comments."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from iobench.advice.entry import Advice, times
from iobench.errors import NoAdvice
from iobench.loaders.own import READ_RECORDIO
from iobench.result import Result
from iobench.whatif.capacities import processors_of

_DATA = ("sharding", "resize", "shard_size")
_WIDTH = 96
_NO_STORE_KEYS = {"storage_class", "sse", "sse_kms_key_id"}  # of objects that are written


def shard_config(result: Result, entries: Sequence[Advice], source: str, output: str) -> str:
    """The YAML. ``source`` is what the run read, as it is reached from here.

    Raises:
        NoAdvice: nothing that the run measured says that other shards would help.
    """
    advice = {entry.setting: entry for entry in entries}
    require_change(entries)
    data: Mapping[str, Any] = result.config.get("data") or {}
    lines = [
        f"# Written by `iobench advise` from the run {_plain(result.name)!r} of {result.started}.",
        *_comment(_summary(advice)),
        *_key("source", source),
        *_key("kind", "records" if data.get("shards") else "imagefolder"),
        *_key("split", data.get("split", "train")),
        "# A new place: what is there already is not replaced.",
        *_key("output", output),
        *_key("format", _formats(advice)),
        *_image(advice, data),
        *_size(advice),
        *_key("seed", data.get("seed", 0)),
        *_workers(result),
        *_store(source, data.get("store") or {}),
    ]
    return "\n".join(lines) + "\n"


def require_change(entries: Sequence[Advice]) -> None:
    """Refuse where no other shards are advised.

    Raises:
        NoAdvice: with what stands against them, or what is missing.
    """
    told = [entry for entry in entries if entry.setting in _DATA]
    if any(entry.state == "change" for entry in told):
        return
    if not told:
        raise NoAdvice(
            "this run has no training loop over data and no loader that decodes: iobench run "
            "configs/bench/advise.yaml measures both"
        )
    kept = [entry for entry in told if entry.state == "keep"]
    why = "; ".join(f"{entry.setting.replace('_', ' ')}: {entry.evidence}" for entry in kept)
    missing = [entry for entry in told if entry.state == "unknown"]
    what = "; ".join(f"{entry.setting.replace('_', ' ')}: {entry.evidence}" for entry in missing)
    raise NoAdvice(f"no other shards are advised: {why or what}")


def _summary(advice: Mapping[str, Advice]) -> str:
    whole = advice.get("together")
    if whole is None or whole.gain is None:
        return ""
    how = "measured" if whole.basis == "measured" else "predicted"
    return f"All changes together, {how}: {times(whole.gain)} the rate. {whole.evidence}"


def _formats(advice: Mapping[str, Advice]) -> list[str]:
    whole = advice.get("together")
    loader = str((whole.value or {}).get("loader", "")) if whole is not None else ""
    return ["recordio"] if loader in READ_RECORDIO else ["tfrecord"]


def _image(advice: Mapping[str, Advice], data: Mapping[str, Any]) -> list[str]:
    """Resized where that is advised, or was done before; shards that are given stay as they are."""
    resize = advice.get("resize")
    if resize is None or data.get("shards"):
        return []
    comment = _comment(f"resize: {resize.evidence}")
    if resize.value is None:
        return comment
    size = {"size": resize.value, "quality": data.get("quality", 95)}
    return [*comment, *_key("image", size)]


def _size(advice: Mapping[str, Advice]) -> list[str]:
    entry = advice.get("shard_size")
    if entry is None:
        return []
    if entry.value is None:
        return _comment(f"shard_size is left at its default: {entry.evidence}")
    return [*_comment(f"shard_size: {entry.evidence}"), *_key("shard_size", entry.value)]


def _workers(result: Result) -> list[str]:
    number = processors_of(result.environment)
    if number is None:
        return []
    return [
        *_comment("One worker for each processor of the machine that measured."),
        *_key("dask", {"workers": number}),
    ]


def _store(source: str, store: Mapping[str, Any]) -> list[str]:
    told = {k: v for k, v in store.items() if v is not None and k not in _NO_STORE_KEYS}
    return _key("source_store", told) if "://" in source and told else []


def _key(name: str, value: Any) -> list[str]:
    text = yaml.safe_dump({name: value}, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return text.rstrip("\n").splitlines()


def _comment(text: str) -> list[str]:
    lines = textwrap.wrap(_plain(text), _WIDTH, break_long_words=False, break_on_hyphens=False)
    return [f"# {line}" for line in lines]


def _plain(text: str) -> str:
    """Names of data may hold line feeds, which would end a comment."""
    return "".join(c if c.isprintable() else " " for c in text)
