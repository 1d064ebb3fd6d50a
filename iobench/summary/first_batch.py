"""PURE. A late first batch that waits for one thing most of all, and what to do about that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dataprep.counted import counted
from iobench.result import Finding
from iobench.stats import Estimate, estimate, median
from iobench.summary.points import by_point
from iobench.summary.starved import LATE_S
from iobench.trial import Params, Trial
from iobench.words import params_words

_MOST = 0.5
"""Of the time to the first batch: what lies above, by its whole interval, is the most of it."""


class _Late(NamedTuple):
    """A point whose first batch is late, mostly for one part; seconds are medians."""

    kind: str
    params: Params
    metrics: Mapping[str, Any]
    first_s: float
    part_s: float
    share: Estimate


def findings(trials: Iterable[Trial]) -> Iterator[Finding]:
    """One for each part that is too long somewhere: the point where it is longest, and how many.

    Late is what takes ``LATE_S`` or more. How much of a real loop that is, trials of seconds
    cannot say.
    """
    done = list(trials)
    points = [
        (kind, params, repeats)
        for kind in ("loader", "train")
        for params, repeats in by_point(done, kind)
    ]
    for part, said in _SAID.items():
        late = [found for point in points if (found := _late(part, *point)) is not None]
        if late:
            worst = max(late, key=lambda found: found.part_s)
            doing, advice = said(worst)
            more = f"; so too in {counted(len(late) - 1, 'more point')}" if len(late) > 1 else ""
            yield Finding(
                f"first-batch-{part.replace('_', '-')}",
                "warning",
                f"{params_words(worst.kind, worst.params)}: {worst.first_s:.0f} s to the first "
                f"batch, {worst.part_s:.0f} s of it ({worst.share.median:.0%}) {doing}{more}",
                advice,
            )


def _late(part: str, kind: str, params: Params, repeats: Sequence[Trial]) -> _Late | None:
    told = [
        (trial.metrics[f"first_batch_{part}_s"], trial.metrics["time_to_first_batch_s"])
        for trial in repeats
        if trial.metrics.get(f"first_batch_{part}_s") is not None
        if trial.metrics.get("time_to_first_batch_s")
    ]
    if not told:
        return None
    first_s = median([whole for _, whole in told])
    share = estimate([part_s / whole for part_s, whole in told])
    if first_s < LATE_S or share.low <= _MOST:
        return None
    part_s = median([part_s for part_s, _ in told])
    return _Late(kind, params, repeats[0].metrics, first_s, part_s, share)


def _listing(late: _Late) -> tuple[str, str]:
    objects = late.metrics.get("objects")
    if str(late.params.get("data", "")).startswith("shards"):
        many = counted(objects, "shard") if objects else "shards"
        return (
            f"opening {many}: manifest and table of samples",
            "all of it is read before the first sample: iobench run configs/bench/disk.yaml or "
            "s3.yaml tells what storage can give",
        )
    many = counted(objects, "file") if objects else "files"
    return (
        f"listing {many}",
        "pack them into shards (dataprep shard): what is listed then is one manifest",
    )


def _worker_start(late: _Late) -> tuple[str, str]:
    workers = late.params.get("workers")
    many = counted(workers, "worker") if workers else "whatever makes batches"
    return (
        f"starting {many}",
        "fewer workers, or less that each does before it reads; workers that are kept from epoch "
        "to epoch (persistent_workers=True) start once",
    )


def _fetch(late: _Late) -> tuple[str, str]:
    return (
        "reading its samples",
        "storage is waited for: iobench run configs/bench/disk.yaml or s3.yaml tells what it can "
        "give; where whole shards are read, smaller ones come sooner (dataprep shard --shard-size)",
    )


def _decode(late: _Late) -> tuple[str, str]:
    return (
        "decoding and augmenting its samples",
        "less work a sample: images resized beforehand (dataprep shard --size), cheaper "
        "augmentation; or smaller batches, of which the first is there sooner",
    )


_SAID: Mapping[str, Callable[[_Late], tuple[str, str]]] = {
    "listing": _listing,
    "worker_start": _worker_start,
    "fetch": _fetch,
    "decode": _decode,
}
