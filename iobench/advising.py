"""Advice from a saved run: as text, as JSON, or as a config for ``dataprep shard``."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from dataprep.errors import ConfigError
from dataprep.formats import DEFAULT_FORMAT
from dataprep.names import escape
from iobench.analysis.advice import gain_words
from iobench.analysis.analyse import Analysis, analyse, how_words, prediction_accuracy_words
from iobench.analysis.recommendations import Recommendation
from iobench.analysis.repeats import usable_cpus
from iobench.data.existing import expand_home
from iobench.data.settings import DataSettings
from iobench.errors import NoAdvice
from iobench.loaders.capabilities import capabilities_of
from iobench.report.front import no_changes_words, no_effect_words, settings_words
from iobench.report.page import from_template
from iobench.rundir import CONFIG, read

_SHARDS = ("sharding", "resize", "shard_size")
_MEASURE = "iobench run configs/bench/advise.yaml (dataprep init copies it)"
_NO_STORE_KEYS = {"storage_class", "sse", "sse_kms_key_id"}  # of objects that are written
_LIMITS = {"decode": "decoding", "disk": "the disk", "store": "the store", "device": "the device"}


@dataclass(frozen=True, slots=True)
class Advised:
    """The analysis of the run in ``folder``."""

    folder: Path
    found: Analysis

    @property
    def text(self) -> str:
        """The advice for a terminal.

        Raises:
            NoAdvice: the run has no loop and no loader whose settings could change.
        """
        found = self.found
        if found.doubt and found.loop is not None:
            raise NoAdvice(
                f"the figures of the loop {found.loop.group!r} are no evidence ({found.doubt}): "
                "measure again with more images or more steps, and with nothing else running"
            )
        if found.situation is None:
            raise NoAdvice(
                "this run has no training loop over data and no loader that decodes: "
                f"{_MEASURE} measures both; what is known of a watched script is in its report.html"
            )
        confidence = ""
        if found.loop is not None:
            checked = prediction_accuracy_words(found.checks, found.loop.group)
            confidence = f"Confidence: {found.confidence}. {checked}"
        page = from_template(
            "advise.txt.j2",
            found=found,
            plain=escape,
            gain=_gain,
            how_words=self._how,
            names=settings_words,
            no_changes_words=no_changes_words,
            no_effect_words=no_effect_words,
            limits=_LIMITS,
            measure=_MEASURE,
            confidence="\n".join(map(escape, _wrapped(confidence))),
        )
        return page.decode().rstrip("\n")

    def _how(self, change: Recommendation) -> list[str]:
        """How to make a change, with the config of this run in commands that measure."""
        config = shlex.quote(str(self.folder / CONFIG))
        return [
            line.replace("iobench run CONFIG ", f"iobench run {config} ")
            for line in how_words(change)
        ]

    @property
    def json(self) -> str:
        """The advice as one JSON object."""
        keys = (
            "verdict",
            "confidence",
            "recommendations",
            "without_effect",
            "not_measured",
        )
        told = {key: self.found.summary[key] for key in (*keys, "predictions")}
        return json.dumps(told, allow_nan=False)

    def write_config(self, file: Path) -> str:
        """Write a config for ``dataprep shard``; returns the commands to run next.

        Raises:
            NoAdvice: no other shards are recommended, or their source is not known or not there.
            ConfigError: something else is at ``file`` or where the shards are to go, or it cannot
                be written.
        """
        changes = [c for c in self.found.advice.changes if c.setting in _SHARDS]
        if not changes:
            names = settings_words(_SHARDS)
            raise NoAdvice(f"no other shards are recommended ({names}): {_MEASURE} measures them")
        output = Path.cwd() / file.parent / f"{file.stem}-shards"
        text = self._shard_config(changes, self._source(), str(output))
        _write(file, text, output)
        return f"dataprep shard {shlex.quote(str(file))}\n{self._again(output)}"

    def _shard_config(self, changes: list[Recommendation], source: str, output: str) -> str:
        result = self.found.result
        data: Mapping[str, Any] = result.config.get("data") or {}
        values: dict[str, Any] = {
            "source": source,
            "kind": "records" if data.get("shards") else "imagefolder",
            "split": data.get("split", "train"),
            "output": output,
            "format": [DEFAULT_FORMAT],
        }
        lines = [f"Written by `iobench advise` from the run {result.name!r} of {result.started}."]
        for change in changes:
            lines.append(f"{change.action}: {_gain(change)}, {change.basis}.")
            if change.setting == "resize":
                values["image"] = {"size": change.value, "quality": data.get("quality", 95)}
            if change.setting == "shard_size":
                values["shard_size"] = change.value
            for value in change.config.values():
                record_format = capabilities_of(str(value)).record_format
                if record_format:
                    values["format"] = [record_format]
        values["seed"] = data.get("seed", 0)
        if (number := usable_cpus(result.environment)) is not None:
            values["dask"] = {"workers": max(1, int(number))}
        store = data.get("store") or {}
        told = {k: v for k, v in store.items() if v is not None and k not in _NO_STORE_KEYS}
        if "://" in source and told:
            values["source_store"] = told
        comments = [f"# {line}" for said in lines for line in _wrapped(_plain(said))]
        body = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=96)
        return "\n".join(comments) + f"\n{body}"

    def _source(self) -> str:
        """The absolute path or address of the images that the run read.

        Raises:
            NoAdvice: it is not known, or not there.
        """
        try:
            data = DataSettings.model_validate(self.found.result.config.get("data") or {})
        except ValidationError:
            raise NoAdvice("the config of the run does not name its images") from None
        told = data.shards or data.source
        found = expand_home(told) if told else str(Path(data.folder).expanduser() / data.drawn)
        if "://" in found:
            return found
        path = Path(found).absolute()
        if not path.is_dir():
            key = "data.shards" if data.shards else "data.source" if told else "the drawn images"
            raise NoAdvice(
                f"{key}: no folder {str(path)!r}: change to the folder where the run was started"
            )
        return str(path)

    def _again(self, output: Path) -> str:
        """The command that measures again with everything that is recommended."""
        pairs: dict[str, Any] = {"data.shards": str(output)}
        pairs |= {"disk": "null", "object_store": "null"}
        if self.found.loop is not None:
            pairs["loaders"] = "[]"
        for change in self.found.advice.changes:
            pairs |= {key: value for key, value in change.config.items() if key != "data.shards"}
        told = []
        for key, value in pairs.items():
            # Given shards are always called ``shards``.
            text = "shards" if key.endswith(".data") else str(value)
            told.append(f"--set {shlex.quote(f'{key}={text}')}")
        return f"iobench run {shlex.quote(str(self.folder / CONFIG))} {' '.join(told)}"


def advise_saved(folder: Path, group: str | None = None) -> Advised:
    """The advice of a run, for the training loop that is called ``group``, else the leading one.

    Raises:
        ResultError, SchemaTooNew: there is no run that can be read.
        NoAdvice: no training loop over data has this name.
    """
    result = read(folder)
    found = analyse(result, group)
    if group is not None and found.loop is None:
        named = dict.fromkeys(loop.group for loop in analyse(result).loops)
        there = f"; there are {', '.join(named)}" if named else ""
        raise NoAdvice(f"no training loop over data is called {group!r}{there}")
    return Advised(folder, found)


def _gain(change: Recommendation) -> str:
    return "gain not predicted" if change.gain is None else gain_words(change.gain)


def _wrapped(said: str) -> list[str]:
    return textwrap.wrap(said, 96, break_long_words=False, break_on_hyphens=False)


def _plain(text: str) -> str:
    """Replace unprintable characters: a line feed in a name would end a comment."""
    return "".join(c if c.isprintable() else " " for c in text)


def _write(file: Path, text: str, output: Path) -> None:
    try:
        if file.exists():
            if file.read_text(errors="replace") != text:
                raise ConfigError(f"{file} exists with another content: name a new file")
            return
        if output.exists():
            raise ConfigError(f"{output} exists, where the shards would go: name another file")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    except OSError as error:
        raise ConfigError(f"cannot write {file}: {error.strerror}") from None
