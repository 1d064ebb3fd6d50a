"""PURE. What one host like this one gives, part by part, in samples/s; each measured apart."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from iobench.loaders.own import SYNTHETIC, UNDECODED
from iobench.result import Result
from iobench.roofline.ceilings import binding, network, of_target
from iobench.summary.points import by_point, cold_label, figure
from iobench.trial import Params
from iobench.words import params_words

Way = Literal["any", "disk", "store"]


@dataclass(frozen=True, slots=True)
class Best:
    """The loader that gave most: decoded, ready to train on."""

    samples_per_s: float
    sample_bytes: float
    words: str
    processes: int


@dataclass(frozen=True, slots=True)
class Part:
    """What one part of a host gives; ``way``: for data on which way it is needed.

    ``streams``: requests at a time with which it gave that, 0 where that is no question.
    """

    name: str
    way: Way
    samples_per_s: float
    basis: str
    streams: int = 0
    object_bytes: int = 0


def best_loader(result: Result) -> Best | None:
    """From the page cache where that was measured: storage is a part of its own.

    None where no loader was measured that decodes, or what it read was not counted.
    """
    found: dict[bool, Best] = {}
    for one, label, _ in _loaders(result):
        warm = label == "warm"
        if warm not in found or one.samples_per_s > found[warm].samples_per_s:
            found[warm] = one
    return found.get(True) or found.get(False)


def from_there(result: Result, way: Way) -> list[tuple[Best, Best]]:
    """Loaders of data on a store, or shown to come from a disk; each beside what it gives of the
    same samples from the page cache, all else alike."""
    told = list(_loaders(result))
    warm = {_alike(params): one for one, label, params in told if label == "warm"}
    return [
        (one, warm[_alike(params)])
        for one, label, params in told
        if (_is_remote(params) if way == "store" else label == "cold") and _alike(params) in warm
    ]


def _alike(params: Params) -> str:
    form = str(params.get("data", "")).partition("@")[0]
    return json.dumps({**params, "data": form, "cache": ""}, sort_keys=True)


def _is_remote(params: Params) -> bool:
    return str(params.get("data", "")).endswith("@s3")


def _loaders(result: Result) -> Iterator[tuple[Best, str, Params]]:
    """Those that decode, and what was shown of the cache."""
    for params, repeats in by_point(result.trials, "loader"):
        name, rate = params.get("loader"), figure(repeats, "samples_per_s")
        bytes_rate = figure(repeats, "mb_per_s")
        if name in SYNTHETIC or name in UNDECODED or params.get("decode") is False:
            continue
        if not rate or not bytes_rate or rate["median"] <= 0 or bytes_rate["median"] <= 0:
            continue
        one = Best(
            rate["median"],
            bytes_rate["median"] * 1e6 / rate["median"],
            params_words("loader", params).removeprefix("loader "),
            int(params.get("processes", 1)),
        )
        yield one, cold_label(repeats), params


def parts(result: Result, best: Best) -> list[Part]:
    """What is known of: processors that decode, disk, store, network."""
    several = f"{best.processes} processes" if best.processes > 1 else "one process"
    basis = f"{best.words}: {best.samples_per_s:,.0f} samples/s by {several}"
    return [
        Part("processors", "any", best.samples_per_s, basis),
        *_disk(result, best.sample_bytes),
        *_store(result, best.sample_bytes),
        *_network(result, best.sample_bytes),
    ]


def _disk(result: Result, sample_bytes: float) -> Iterator[Part]:
    """The fastest read that was shown to come from the device."""
    found: list[tuple[float, Mapping[str, Any]]] = []
    for params, repeats in by_point(result.trials, "disk"):
        rate = figure(repeats, "mb_per_s")
        asked = str(params.get("cache", ""))
        shown = cold_label(repeats) or asked
        if rate and params.get("operation") == "read" and shown in ("direct", "cold"):
            found.append((rate["median"], params))
    if found:
        rate_mb, params = max(found, key=lambda each: each[0])
        basis = f"{params_words('disk', params)}: {rate_mb:,.0f} MB/s"
        ceiling = binding(of_target(str(params["target"]), result)[0])
        if ceiling is not None and not ceiling.guaranteed and ceiling.mb_per_s < rate_mb:
            # The rest came from a cache, which a whole data set does not fit into.
            rate_mb, basis = ceiling.mb_per_s, f"{ceiling.what}: {ceiling.mb_per_s:,.0f} MB/s"
        yield Part("disk", "disk", rate_mb * 1e6 / sample_bytes, basis)


def _store(result: Result, sample_bytes: float) -> Iterator[Part]:
    """The fastest GET."""
    found: list[tuple[float, Mapping[str, Any]]] = []
    for params, repeats in by_point(result.trials, "object"):
        rate = figure(repeats, "mb_per_s")
        if rate and str(params.get("operation", "")).startswith("get"):
            found.append((rate["median"], params))
    if found:
        rate_mb, params = max(found, key=lambda each: each[0])
        yield Part(
            "store",
            "store",
            rate_mb * 1e6 / sample_bytes,
            f"{params_words('object', params)}: {rate_mb:,.0f} MB/s",
            int(params["connections"]),
            int(params["object_bytes"]),
        )


def _network(result: Result, sample_bytes: float) -> Iterator[Part]:
    """What it carries at most; nothing is measured of it."""
    ceiling = binding(network(result))
    if ceiling is not None:
        basis = f"{ceiling.what}: {ceiling.mb_per_s:,.0f} MB/s ({ceiling.source})"
        yield Part("network", "store", ceiling.mb_per_s * 1e6 / sample_bytes, basis)
