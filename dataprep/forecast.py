"""PURE. What a job will make, meet, take and cost, from a few conversions of its own images.

The conversions are spread evenly over the samples in order of size, so that each stands for
equally many of them: what it became is multiplied by that number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dataprep.counted import counted
from dataprep.manifest import Row
from dataprep.plan import SMALLEST_TARGET
from dataprep.requests import Requests

FEW_SHARDS = 8


@dataclass(frozen=True)
class Trial:
    """A few samples made into records by one thread.

    Attributes:
        rows: what became of each.
        seconds: reading, converting, packing and hashing them all.
    """

    rows: Sequence[Row]
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """What samples become, estimated; shares are of samples, counts of all of them.

    Attributes:
        samples: how many there are.
        trial: how many were converted.
        bytes_by_format: of all shards.
        passthrough: share stored byte for byte, or but for the orientation tag.
        reencoded: share converted.
        met: kind, as the manifest counts it, to how many of the trial showed it and how many of
            all will.
    """

    samples: int
    trial: int
    bytes_by_format: Mapping[str, int]
    passthrough: float
    reencoded: float
    met: Mapping[str, tuple[int, int]]


def outcome(rows: Sequence[Row], samples: int, formats: Sequence[str]) -> Outcome:
    """Multiply what became of ``rows`` (at least one) up to ``samples``."""
    count = len(rows)
    sums = dict.fromkeys(formats, 0)
    actions: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for row in rows:
        actions[row.action] += 1
        kinds.update(note for note in row.notes.split(",") if note)
        if row.status == "failed":
            kinds[f"failed_{row.kind}"] += 1
        for name, place in (row.records or {}).items():
            sums[name] += place[1]
    return Outcome(
        samples=samples,
        trial=count,
        bytes_by_format={name: total * samples // count for name, total in sums.items()},
        passthrough=(actions["passthrough"] + actions["retagged"]) / count,
        reencoded=actions["reencoded"] / count,
        met={kind: (seen, _scaled(seen, count, samples)) for kind, seen in sorted(kinds.items())},
    )


def _scaled(seen: int, count: int, samples: int) -> int:
    """``seen`` of ``count``, as so many of ``samples``."""
    return (2 * seen * samples + count) // (2 * count)


@dataclass(frozen=True)
class Machine:
    """Who will do the work: ``workers`` on ``processors``, which are None on a cluster."""

    workers: int
    processors: int | None


@dataclass(frozen=True)
class Duration:
    """Seconds of the parts of a run, in their order."""

    listing: float
    planning: float
    starting: float
    converting: float
    storing: float

    @property
    def total(self) -> float:
        """All of them."""
        return self.listing + self.planning + self.starting + self.converting + self.storing


def working_s(seconds: float, shards: int, machine: Machine) -> float:
    """How long workers take for what one takes ``seconds`` for, in shards of equal size.

    A worker that has made its last shard waits for the others, and more workers than
    processors are no faster than as many.
    """
    rounds = -(-shards // machine.workers)
    alone = seconds * rounds / shards
    return max(alone, seconds / machine.processors) if machine.processors else alone


@dataclass(frozen=True)
class Fate:
    """What becomes of the entries of one split.

    Attributes:
        entries: all of them, also those that are no samples.
        refused: how many the listing says will fail.
        failing: how many samples will fail when they are converted.
        skipped: how many samples will be passed over then.
        exact: whether all of them were converted to find out.
        allowed: how many may fail.
    """

    entries: int
    refused: int
    failing: int
    skipped: int
    exact: bool
    allowed: int

    @property
    def failures(self) -> int:
        """All that fail."""
        return self.refused + self.failing


def fate(rows: Sequence[Row], samples: int, *, exact: bool, **known: int) -> Fate:
    """What ``rows`` say of ``samples`` of a split; ``known`` are the other attributes."""
    seen = Counter(row.status for row in rows)
    failing, skipped = (
        _scaled(seen[status], len(rows), samples) if rows else 0 for status in ("failed", "skipped")
    )
    return Fate(failing=failing, skipped=skipped, exact=exact, **known)


@dataclass(frozen=True)
class SplitForecast:
    """One split: its samples, its shards in each format, their bytes, and what will fail."""

    split: str
    samples: int
    shards: int
    bytes_by_format: Mapping[str, int]
    fate: Fate

    @property
    def written(self) -> int:
        """Samples that neither fail nor are skipped."""
        return self.samples - self.fate.failing - self.fate.skipped


@dataclass(frozen=True)
class Cost:
    """In ``currency``: all requests of the job, and a month of keeping the shards."""

    requests: float
    month: float
    currency: str
    prices: str


@dataclass(frozen=True)
class Forecast:
    """All that ``plan`` says.

    Attributes:
        source, output: where they lie.
        entries: files, or members of archives, that were listed.
        refused: reason to number of entries that are no samples, exactly.
        classes: how many.
        splits: what each will hold.
        label_offsets: format to what its records add to the 0-based label.
        outcome: what the samples become.
        machine: who does the work.
        duration: of the whole run.
        requests: ``source`` and ``output`` to requests, of those that are object stores.
        cost: of them, where prices are known.
        assumptions: what was not measured.
        warnings: what should be looked at first.
    """

    source: str
    output: str
    entries: int
    refused: Mapping[str, int]
    classes: int
    splits: tuple[SplitForecast, ...]
    label_offsets: Mapping[str, int]
    outcome: Outcome
    machine: Machine
    duration: Duration
    requests: Mapping[str, Requests]
    cost: Cost | None
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]


def reader_warning(split: str, shards: int, largest_bytes: int, readers: int | None) -> str | None:
    """Says that shards are too few for those who read them, and what would help.

    Without ``readers`` fewer than 8 shards are too few, since no eight workers can share them
    by the shard; nothing is said where smaller shards could not be made.
    """
    wanted = readers or FEW_SHARDS
    possible = max(1, largest_bytes // SMALLEST_TARGET)
    if shards >= wanted or (readers is None and possible < wanted):
        return None
    who = f"{readers:,} readers" if readers else f"{wanted} or more readers"
    said = f"{split}: {counted(shards, 'shard')} for {who}"
    if readers:
        said += f", of which {wanted - shards:,} would have none"
    if possible < wanted:
        return f"{said}: these samples make {counted(possible, 'shard')} at most"
    return f"{said}: --shard-size {largest_bytes // wanted // 100_000 / 10:g}MB would give enough"


def failure_warning(split: SplitForecast, limit: int | str) -> str | None:
    """Says that ``shard`` would stop over failures, with the ``limit`` that would let it go on."""
    found = split.fate
    about = "" if found.exact else "about "
    if split.written <= 0:
        probably = "" if found.exact else "probably "
        return f"{split.split}: shard would {probably}stop: no sample can be written"
    if found.failures <= found.allowed:
        return None
    certain = found.exact or found.refused > found.allowed
    share = 100 * found.failures // found.entries + 1
    higher = f"{found.failures}" if found.exact else f"{share}%, to be safe more"
    return (
        f"{split.split}: shard would {'' if certain else 'probably '}stop: "
        f"{about}{found.failures:,} of {found.entries:,} fail, --max-failures {limit} allows "
        f"{found.allowed:,}; give --max-failures {higher}"
    )
