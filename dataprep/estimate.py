"""PURE. What a job will make, take and cost, learnt from a few conversions of its own images.

How large records become is a line through a handful of points (source bytes, record bytes), each
the mean of one slice of the calibration sample ordered by size. Whole numbers only: the plan that
follows must be the same on every processor. On 1,000 ImageNet photographs the image's own size
predicts nearly as well as its dimensions do (standard deviation of 27 % against 23 % of the mean,
one image), and no file has to be opened.

The timed trial is spread evenly over the samples in order of size, so that each of its samples
stands for equally many.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dataprep.counted import counted
from dataprep.manifest import Row

MAX_SLICES = 8
_PER_SLICE = 16
_LEAST, _MOST = 32, 128


def sample_size(samples: int) -> int:
    """How many conversions to calibrate with: a tenth, at least 32, at most 128."""
    return min(samples, max(_LEAST, min(_MOST, samples // 10)))


def pick(sizes: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """``count`` rows, evenly spread over the samples in order of size."""
    order = np.argsort(sizes, kind="stable")
    places = (2 * np.arange(count, dtype=np.int64) + 1) * len(order) // (2 * count)
    return order[places].astype(np.int64)


@dataclass(frozen=True)
class Calibration:
    """Points of the line, in ascending source bytes."""

    points: tuple[tuple[int, int], ...]

    @classmethod
    def fit(cls, pairs: Sequence[tuple[int, int]]) -> Calibration:
        """Learn from (source bytes, record bytes); a failed conversion counts as 0 bytes."""
        if not pairs:
            return cls(((1, 1),))
        ordered = sorted(pairs)
        slices = max(1, min(MAX_SLICES, len(ordered) // _PER_SLICE))
        points: list[tuple[int, int]] = []
        for i in range(slices):
            part = ordered[i * len(ordered) // slices : (i + 1) * len(ordered) // slices]
            source = sum(pair[0] for pair in part) // len(part)
            record = sum(pair[1] for pair in part) // len(part)
            if not points or source > points[-1][0]:
                points.append((max(1, source), record))
        return cls(tuple(points))

    def predict(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Record bytes for each of ``sizes``: int64, never negative."""
        sizes = sizes.astype(np.int64)
        if len(self.points) == 1:
            source, record = self.points[0]
            # One slice: a constant part and a slope cannot be told apart.
            return np.where(sizes > 0, np.maximum(1, sizes * record // source), 0)
        x = np.array([point[0] for point in self.points], dtype=np.int64)
        y = np.array([point[1] for point in self.points], dtype=np.int64)
        segment = np.clip(np.searchsorted(x, sizes, side="right") - 1, 0, len(x) - 2)
        x0, x1, y0, y1 = x[segment], x[segment + 1], y[segment], y[segment + 1]
        rise = y1 - y0
        # Beyond the ends the line goes on, but never falls and never outgrows the source.
        outside = (sizes < x0) | (sizes > x1)
        rise = np.where(outside, np.clip(rise, 0, x1 - x0), rise)
        anchor_x, anchor_y = np.where(sizes > x1, x1, x0), np.where(sizes > x1, y1, y0)
        predicted = anchor_y + rise * (sizes - anchor_x) // (x1 - x0)
        return np.where(sizes > 0, np.maximum(1, predicted), 0)


class Requests(NamedTuple):
    """Requests to an object store by price: ``gets`` has HEAD as well."""

    puts: int
    gets: int
    lists: int


def source_requests(entries: int, reads: int, *, listed: bool) -> Requests:
    """Requests to a source: a listing of 1,000 keys each, then one GET for each image."""
    return Requests(0, reads, entries // 1_000 + 1 if listed else 0)


def output_requests(shards: Sequence[int], objects_a_shard: int, keys: int) -> Requests:
    """Requests to an output that has ``keys`` already; ``shards`` are those of each split.

    Each object is stored by a PUT and confirmed by a HEAD. For each shard the lock is read before
    its receipt, which is read back in the end. Six more objects and three listings are those of a
    split itself.
    """
    objects = sum(shards) * objects_a_shard + 6 * len(shards)
    lists = 3 * len(shards) * ((keys + objects) // 1_000 + 1)
    return Requests(objects, objects + 2 * sum(shards) + 6 * len(shards), lists)


@dataclass(frozen=True)
class Cost:
    """In ``currency``: the requests of the job, and a month of keeping the shards."""

    requests: float
    month: float
    currency: str
    prices: str


@dataclass(frozen=True)
class Outcome:
    """What samples become, estimated from ``trial`` of them.

    ``met`` is a kind, as the manifest counts it, to how many samples show it; ``failed`` and
    ``skipped`` are numbers of samples, ``passthrough`` and ``reencoded`` shares of them.
    """

    samples: int
    trial: int
    bytes_by_format: Mapping[str, int]
    passthrough: float
    reencoded: float
    failed: int
    skipped: int
    met: Mapping[str, int]


def outcome(rows: Sequence[Row], record_bytes: Mapping[str, int], samples: int) -> Outcome:
    """What ``samples`` become, if ``rows`` (at least one) of them became what they are.

    ``record_bytes`` is the size of all records of the trial, by format.
    """
    count = len(rows)
    actions = Counter(row.action for row in rows)
    statuses = Counter(row.status for row in rows)
    kinds: Counter[str] = Counter()
    for row in rows:
        kinds.update(note for note in row.notes.split(",") if note)
        if row.status == "failed":
            kinds[f"failed_{row.kind}"] += 1

    def scaled(seen: int) -> int:
        return (2 * seen * samples + count) // (2 * count)

    return Outcome(
        samples=samples,
        trial=count,
        bytes_by_format={name: size * samples // count for name, size in record_bytes.items()},
        passthrough=(actions["passthrough"] + actions["retagged"]) / count,
        reencoded=actions["reencoded"] / count,
        failed=scaled(statuses["failed"]),
        skipped=scaled(statuses["skipped"]),
        met={kind: scaled(seen) for kind, seen in sorted(kinds.items())},
    )


@dataclass(frozen=True)
class SplitEstimate:
    """One split: its samples and shards in each format, their bytes, and what will fail.

    ``entries`` are all of its entries, of which ``failures`` fail and ``allowed`` may.
    """

    split: str
    samples: int
    shards: int
    bytes_by_format: Mapping[str, int]
    entries: int
    failures: int
    allowed: int


@dataclass(frozen=True)
class Estimate:
    """All that ``dataprep plan`` says. Times in seconds, sizes in bytes.

    ``refused`` is a reason to how many entries are no samples because of it; ``duration`` the parts
    of a run; ``memory_bytes`` of all workers beside ``machine_bytes``; ``requests`` those of
    ``source`` and ``output``, where they are on S3.
    """

    source: str
    output: str
    entries: int
    refused: Mapping[str, int]
    classes: int
    splits: tuple[SplitEstimate, ...]
    label_offsets: Mapping[str, int]
    outcome: Outcome
    workers: int
    duration: Mapping[str, float]
    memory_bytes: int
    machine_bytes: int
    requests: Mapping[str, Requests]
    cost: Cost | None
    warnings: tuple[str, ...]

    def to_json(self) -> str:
        """One JSON object."""
        content = asdict(self)
        content["duration"]["total"] = sum(self.duration.values())
        content["requests"] = {place: one._asdict() for place, one in self.requests.items()}
        return json.dumps(content)

    def to_text(self) -> str:
        """What a person reads before a job."""
        found = self.outcome
        about = "" if found.trial == found.samples else "about "
        lines = []
        for one in self.splits:
            lost = f" ({about}{one.failures:,} of {one.entries:,} fail)" if one.failures else ""
            lines.append(
                f"{one.split}: {counted(one.samples, 'photo')} would become "
                f"{counted(one.shards, 'shard')} per format in {self.output}{lost}"
            )
            for name, size in one.bytes_by_format.items():
                each = f"{size / one.shards / 1e6:,.1f} MB each"
                offset = self.label_offsets[name]
                lines.append(f"  {name:<10} {size / 1e6:,.1f} MB, {each}; labels from {offset}")
        parts = ", ".join(f"{step} {s:,.1f} s" for step, s in self.duration.items() if s >= 0.05)
        time = f"about {_clock(sum(self.duration.values()))} with {counted(self.workers, 'worker')}"
        lines.append(f"  {'time':<10} {time} ({parts})")
        gigabytes = f"{self.memory_bytes / 1e9:,.1f} GB of {self.machine_bytes / 1e9:,.0f} GB"
        lines.append(f"  {'memory':<10} about {gigabytes}")
        shares = f"{found.reencoded:.0%} re-encoded, {found.passthrough:.0%} stored unchanged"
        lines.append(f"  {'images':<10} {shares} (from {found.trial:,} conversions)")
        quirks = ", ".join(f"{kind} {count:,}" for kind, count in found.met.items())
        lines.append(f"  {'quirks':<10} {quirks or 'none'}")
        lines += [f"  {'refused':<10} {reason}: {n:,}" for reason, n in self.refused.items()]
        for place, sent in self.requests.items():
            shown = f"{sent.puts:,} PUT, {sent.gets:,} GET and HEAD, {sent.lists:,} LIST"
            lines.append(f"  {'requests':<10} {place}: {shown}")
        if self.cost is not None:
            money = f"{self.cost.requests:,.4g} {self.cost.currency} for requests"
            month = f"{self.cost.month:,.4g} {self.cost.currency} a month for storage"
            lines.append(f"  {'cost':<10} {money}, {month} ({self.cost.prices})")
        lines += [f"warning: {line}" for line in self.warnings]
        return "\n".join([*lines, "Nothing was written."])


def seconds_of(work_s: float, shards: int, workers: int) -> float:
    """How long ``workers`` take for what one takes ``work_s`` for: the last shards are shared."""
    return work_s / max(1, min(workers, shards * 32))


def _clock(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:,.1f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min"
