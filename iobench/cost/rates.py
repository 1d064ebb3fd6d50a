"""PURE. How fast a training loop goes with data of one form in one place, and how large they are.

Measured by a loop of training where there is one, else the lesser of what its device consumes and
of what a loader that does the same work gives: with overlap a loop is as fast as its slowest stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from iobench.data.settings import split_name
from iobench.loaders.own import BY_SAMPLE, SYNTHETIC, UNDECODED
from iobench.result import Result
from iobench.summary.points import by_point, cold_label, figure
from iobench.trial import Params, Trial

Side = Literal["disk", "store"]
_WORK = ("image_size", "augment", "normalise", "colour_jitter", "pca_noise")
_DEFAULTS = {
    "image_size": 224,
    "augment": True,
    "normalise": True,
    "colour_jitter": False,
    "pca_noise": False,
}


@dataclass(frozen=True, slots=True)
class Rate:
    """Samples/s of a loop over data of a ``form`` on a ``side``; ``basis`` says how it is known.

    ``sample_bytes`` as stored; ``objects`` a sample, None where nobody counted them;
    ``by_sample``: each sample is a request. ``label`` is what was shown of the page cache. ``low``
    to ``high``: what ``samples_per_s`` may be, by its repeats.
    """

    samples_per_s: float
    form: str
    side: Side
    basis: str
    sample_bytes: float
    objects: float | None
    by_sample: bool
    label: str = ""
    samples: float | None = None
    low: float = 0.0
    high: float = 0.0


def loop_rates(result: Result, group: Mapping[str, Any]) -> list[Rate]:
    """Of a group's own loop, from each place that it read."""
    found = []
    for params, repeats in by_point(result.trials, "train"):
        if params.get("group") == group.get("group") and params.get("input") != "synthetic":
            basis = f"{group['group']}, {params['input']}"
            if (rate := _rate(params, repeats, basis)) is not None:
                found.append(rate)
    return found


def alike(
    result: Result, group: Mapping[str, Any], one: tuple[str, Side], other: tuple[str, Side]
) -> tuple[Rate, Rate] | None:
    """The fastest ways to train on two kinds of data, a form on a side each, measured alike.

    Both by training loops, or both by loaders alone: a loop's rate has its training in it. Those
    from disk are cold where that was measured: a data set that pays any cost does not fit into
    memory. None where one of them was not measured.
    """
    for measured in (_alike_loops, _loaders):
        rates = list(measured(result, group))
        before, after = _best(rates, *one), _best(rates, *other)
        if before is not None and after is not None:
            return before, after
    return None


def _best(rates: Sequence[Rate], form: str, side: Side) -> Rate | None:
    found = [rate for rate in rates if (rate.form, rate.side) == (form, side)]
    cold = [rate for rate in found if rate.label == "cold"]
    return max(cold or found, key=lambda rate: rate.samples_per_s, default=None)


def _alike_loops(result: Result, group: Mapping[str, Any]) -> Iterator[Rate]:
    """Of loops that train the same network on the same device."""
    same = ("consumer", "model", "batch_size", *_WORK)
    for params, repeats in by_point(result.trials, "train"):
        if params.get("input") == "synthetic":
            continue
        if all(params.get(key) == group.get(key) for key in same):
            basis = f"{params['group']}, {params['input']}"
            if (rate := _rate(params, repeats, basis)) is not None:
                yield rate


def _loaders(result: Result, group: Mapping[str, Any]) -> Iterator[Rate]:
    """Of loaders that do to an image what the loop's does, no faster than its device."""
    consumes = group.get("consumes")
    most = consumes["median"] if consumes else None
    for params, repeats in by_point(result.trials, "loader"):
        name = params.get("loader")
        if name in SYNTHETIC or name in UNDECODED or params.get("decode") is False:
            continue
        if not _same_work(params, group):
            continue
        basis = f"loader {name} from {params.get('data')} alone"
        if (rate := _rate(params, repeats, basis, most)) is not None:
            yield rate


def _same_work(params: Params, group: Mapping[str, Any]) -> bool:
    asked = {key: group.get(key) for key in _WORK}
    return all(
        value is None or params.get(key, _DEFAULTS[key]) == value for key, value in asked.items()
    )


def _rate(
    params: Params, repeats: list[Trial], basis: str, most: float | None = None
) -> Rate | None:
    rate, stored = figure(repeats, "samples_per_s"), figure(repeats, "mb_per_s")
    data = str(params.get("data") or "")
    if not data or not rate or not stored or rate["median"] <= 0 or stored["median"] <= 0:
        return None
    form, _, remote = split_name(data)
    median = float(rate["median"])
    sample_bytes = stored["median"] * 1e6 / median
    object_bytes = figure(repeats, "mean_object_bytes")
    objects = figure(repeats, "objects")
    capped = most is not None and most < median
    samples = None
    if objects and object_bytes:
        samples = objects["median"] * object_bytes["median"] / sample_bytes
    return Rate(
        samples_per_s=min(median, most) if most is not None else median,
        low=min(rate["low"], most) if most is not None else rate["low"],
        high=min(rate["high"], most) if most is not None else rate["high"],
        form=form,
        side="store" if remote else "disk",
        basis=f"{basis}, no faster than its device" if capped else basis,
        sample_bytes=sample_bytes,
        objects=sample_bytes / object_bytes["median"] if object_bytes else None,
        by_sample=params.get("loader") in BY_SAMPLE,
        label=cold_label(repeats),
        samples=samples,
    )
