"""PURE. A whole split in figures, from its manifest and its table of samples."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from dataprep.manifest import FormatEntry, Manifest, spread

COLUMNS = (
    *("source", "label", "synset", "status", "reason", "action", "source_width", "source_height"),
    *("source_bytes", "colorspace", "width", "height"),
)
"""What of the table of samples is looked at."""

_MOST_CLASSES = 5
_MOST_REASONS = 10


@dataclass(frozen=True, slots=True)
class Spread:
    """How a quantity is distributed: least, 5 %, median, 95 %, most, mean and sum."""

    count: int
    least: int
    p5: int
    median: int
    p95: int
    most: int
    mean: float
    total: int

    @classmethod
    def of(cls, values: ArrayLike) -> Spread:
        """Of whole numbers; of none, all is 0. Quantiles are values that occur."""
        array = np.sort(np.asarray(values, np.int64))
        if not len(array):
            return cls(0, 0, 0, 0, 0, 0, 0.0, 0)
        least, p5, median, p95, most = (
            int(array[round(share * (len(array) - 1))]) for share in (0, 0.05, 0.5, 0.95, 1)
        )
        mean, total = float(array.mean()), int(array.sum())
        return cls(len(array), least, p5, median, p95, most, mean, total)


@dataclass(frozen=True, slots=True)
class ClassCount:
    """A class and its samples."""

    label: int
    synset: str
    samples: int


@dataclass(frozen=True, slots=True)
class FormatSummary:
    """The shards of one format, their sizes in bytes and the records' lengths."""

    name: str
    label_offset: int
    shards: Spread
    records: Spread


@dataclass(frozen=True, slots=True)
class SplitSummary:
    """One complete split.

    ``classes`` are the samples of each class that has any; ``most`` and ``fewest`` some of them
    by name. Sizes are in pixels, bytes are of files and records.
    """

    split: str
    created: str
    samples: dict[str, int]
    formats: tuple[FormatSummary, ...]
    shard_spread: float
    classes: Spread
    most: tuple[ClassCount, ...]
    fewest: tuple[ClassCount, ...]
    width: Spread
    height: Spread
    source_width: Spread
    source_height: Spread
    source_bytes: Spread
    actions: dict[str, int]
    colorspaces: dict[str, int]
    met: dict[str, int]
    reasons: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {**asdict(self), "complete": True}


def summarise(manifest: Manifest, table: pd.DataFrame) -> SplitSummary:
    """The figures of one split; ``table`` has ``COLUMNS`` and the lengths in each format."""
    written = table[table["status"] == "written"]
    classes = Counter(zip(written["label"], written["synset"].fillna(""), strict=True))
    counts = [ClassCount(int(label), synset, count) for (label, synset), count in classes.items()]
    ranked = sorted(counts, key=lambda one: (-one.samples, one.label))
    lost = table[table["status"] != "written"]
    reasons = (lost["status"] + ": " + lost["reason"].fillna("")).value_counts()
    return SplitSummary(
        split=manifest.split,
        created=manifest.created,
        samples=asdict(manifest.samples),
        formats=tuple(_format(name, entry, written) for name, entry in manifest.formats.items()),
        shard_spread=spread(manifest.formats),
        classes=Spread.of([one.samples for one in counts]),
        most=tuple(ranked[:_MOST_CLASSES]),
        fewest=tuple(ranked[: -_MOST_CLASSES - 1 : -1]),
        width=Spread.of(written["width"]),
        height=Spread.of(written["height"]),
        source_width=Spread.of(written["source_width"]),
        source_height=Spread.of(written["source_height"]),
        source_bytes=Spread.of(written["source_bytes"]),
        actions=_counts(written["action"]),
        colorspaces=_counts(written["colorspace"]),
        met=dict(manifest.warnings),
        reasons={str(reason): int(count) for reason, count in reasons[:_MOST_REASONS].items()},
    )


def _format(name: str, entry: FormatEntry, written: pd.DataFrame) -> FormatSummary:
    return FormatSummary(
        name=name,
        label_offset=entry.label_offset,
        shards=Spread.of([shard.bytes for shard in entry.shards]),
        records=Spread.of(written[f"{name}_length"]),
    )


def _counts(column: pd.Series[str]) -> dict[str, int]:
    return {str(name): int(count) for name, count in column.value_counts().items()}
