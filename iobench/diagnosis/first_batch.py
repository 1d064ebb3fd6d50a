"""PURE. A late first batch that waits for one thing most of all, and what to do about that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dataprep.counted import counted
from iobench.diagnosis.rule import Rule
from iobench.diagnosis.sources import CLOUD_GUIDE
from iobench.diagnosis.steps import LATE_FIRST, LATE_S
from iobench.result import Finding
from iobench.stats import estimate, median
from iobench.summary.points import by_point
from iobench.trial import Params, Trial
from iobench.words import params_words

_MOST = 0.5
"""Of the time to the first batch: what lies above, by its whole interval, is the most of it."""


def _rule(part: str, doing: str, advice: str) -> Rule:
    return Rule(
        f"first-batch-{part}",
        f"The first batch waits for {doing}",
        "start",
        "warning",
        f"{LATE_S:g} s or more to the first batch, and more than {_MOST:.0%} of it {doing}",
        f"first_batch_{part.replace('-', '_')}_s ÷ time_to_first_batch_s, over repeats",
        advice,
        CLOUD_GUIDE,
    )


_STORAGE = "iobench run configs/bench/disk.yaml or s3.yaml tells what storage can give"
_PREPARE = (
    "less work a sample: images resized beforehand (dataprep shard --size), cheaper augmentation; "
    "or smaller batches, of which the first is there sooner"
)
_RULES: Mapping[str, Rule] = {
    "listing": _rule(
        "listing",
        "listing what there is to read",
        "pack files into shards (dataprep shard): what is listed then is one manifest",
    ),
    "worker_start": _rule(
        "worker-start",
        "starting workers",
        "fewer workers, or less that each does before it reads; workers that are kept from epoch "
        "to epoch (persistent_workers=True) start once",
    ),
    "fetch": _rule(
        "fetch",
        "reading its samples",
        f"storage is waited for: {_STORAGE}; where whole shards are read, smaller ones come sooner "
        "(dataprep shard --shard-size)",
    ),
    "decode": _rule("decode", "decoding and augmenting its samples", _PREPARE),
}
RULES = (*_RULES.values(), LATE_FIRST)


class _Late(NamedTuple):
    """A point whose first batch is late, mostly for one ``part`` or for none; medians."""

    kind: str
    params: Params
    metrics: Mapping[str, Any]
    first_s: float
    part: str
    part_s: float
    share: float


def findings(trials: Iterable[Trial]) -> Iterator[Finding]:
    """One for each part that is too long somewhere: the point where it is longest, and how many.
    And one for first batches that are late of no single part.

    Late is what takes ``LATE_S`` or more. How much of a real loop that is, trials of seconds
    cannot say.
    """
    done = list(trials)
    points = [
        (kind, params, repeats)
        for kind in ("loader", "train")
        for params, repeats in by_point(done, kind)
    ]
    late: dict[str, list[_Late]] = {}
    for point in points:
        if (found := _late(*point)) is not None:
            late.setdefault(found.part, []).append(found)
    for part in (*_RULES, ""):
        if part in late:
            yield _finding(part, late[part])


def _finding(part: str, late: Sequence[_Late]) -> Finding:
    worst = max(late, key=lambda found: found.part_s)
    more = f"; so too in {counted(len(late) - 1, 'more point')}" if len(late) > 1 else ""
    said = f"{params_words(worst.kind, worst.params)}: {worst.first_s:.0f} s to the first batch"
    if not part:
        copied = worst.params.get("access") == "file"
        how = ", a download of all data before it" if copied else ", of which no part is the most"
        return LATE_FIRST.found(f"{said}{how}{more}")
    doing, advice = _SAID[part](worst)
    return _RULES[part].found(
        f"{said}, {worst.part_s:.0f} s of it ({worst.share:.0%}) {doing}{more}", advice
    )


def _late(kind: str, params: Params, repeats: Sequence[Trial]) -> _Late | None:
    """A point whose first batch is late, with the part that is most of it, if one is."""
    wholes = [
        trial.metrics["time_to_first_batch_s"]
        for trial in repeats
        if trial.metrics.get("time_to_first_batch_s")
    ]
    if not wholes or (first_s := median(wholes)) < LATE_S:
        return None
    for part in _RULES:
        told = [
            (trial.metrics[f"first_batch_{part}_s"], trial.metrics["time_to_first_batch_s"])
            for trial in repeats
            if trial.metrics.get(f"first_batch_{part}_s") is not None
            if trial.metrics.get("time_to_first_batch_s")
        ]
        if told and (share := estimate([part_s / whole for part_s, whole in told])).low > _MOST:
            part_s = median([part_s for part_s, _ in told])
            metrics = repeats[0].metrics
            return _Late(kind, params, metrics, first_s, part, part_s, share.median)
    return _Late(kind, params, repeats[0].metrics, first_s, "", first_s, 1.0)


def _listing(late: _Late) -> tuple[str, str]:
    """In words, and what to do where that is not what the rule says."""
    objects = late.metrics.get("objects")
    if str(late.params.get("data", "")).startswith("shards"):
        many = counted(objects, "shard") if objects else "shards"
        return (
            f"opening {many}: manifest and table of samples",
            f"all of it is read before the first sample: {_STORAGE}",
        )
    many = counted(objects, "file") if objects else "files"
    return f"listing {many}", ""


def _worker_start(late: _Late) -> tuple[str, str]:
    workers = late.params.get("workers")
    many = counted(workers, "worker") if workers else "whatever makes batches"
    return f"starting {many}", ""


def _fetch(late: _Late) -> tuple[str, str]:
    return "reading its samples", ""


def _decode(late: _Late) -> tuple[str, str]:
    return "decoding and augmenting its samples", ""


_SAID: Mapping[str, Callable[[_Late], tuple[str, str]]] = {
    "listing": _listing,
    "worker_start": _worker_start,
    "fetch": _fetch,
    "decode": _decode,
}
