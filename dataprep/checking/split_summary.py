"""Summarise splits: sizes, classes and conversions, from the manifest and the table of samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal, TypeAlias, TypedDict, cast, final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from dataprep.errors import ManifestMissing
from dataprep.output.manifest import Manifest
from dataprep.output.samples_table import stored_table
from dataprep.reading.splits import open_split, splits_in, why_missing
from dataprep.stores import Store

SizeColumn: TypeAlias = Literal["width", "height", "source_width", "source_height", "source_bytes"]
"""A column of the table of samples that has a size in pixels or bytes."""

_SIZES: tuple[SizeColumn, ...] = (
    "width",
    "height",
    "source_width",
    "source_height",
    "source_bytes",
)
_OTHER_COLUMNS = ("label", "status", "reason", "action", "colorspace")


class Distribution(TypedDict):
    """The distribution of whole numbers: their quantiles, mean and sum. The names are JSON keys.

    ``count`` is how many numbers there are. ``p5`` and ``p95`` are percentiles.
    """

    count: int
    least: int
    p5: int
    median: int
    p95: int
    most: int
    mean: float
    total: int


class FormatSummary(TypedDict):
    """The label offset of one format of a split, and the sizes of shards and records in bytes."""

    name: str
    label_offset: int
    shards: Distribution
    records: Distribution


@final
class CompleteSplit(TypedDict):
    """The summary of a complete split, as ``--json`` prints it.

    ``samples`` has the fields of ``SampleCounts``. ``classes`` is the distribution of the number of
    samples in a class; None if the samples have no classes. The last four entries are counts of
    samples, except ``shards_out_of_bounds`` in ``quirks``, which is a number of shards.
    """

    split: str
    complete: Literal[True]
    created: str
    samples: dict[str, int]
    formats: list[FormatSummary]
    classes: Distribution | None
    width: Distribution
    height: Distribution
    source_width: Distribution
    source_height: Distribution
    source_bytes: Distribution
    actions: dict[str, int]
    colorspaces: dict[str, int]
    quirks: dict[str, int]
    reasons: dict[str, int]


@final
class IncompleteSplit(TypedDict):
    """The summary of a split that has no manifest, as ``--json`` prints it."""

    split: str
    complete: Literal[False]
    why: str


SplitSummary: TypeAlias = CompleteSplit | IncompleteSplit


def summaries_of(store: Store, split: str | None) -> list[SplitSummary]:
    """Summarise one split, or all splits of an output if ``split`` is None or empty.

    Raises:
        ManifestMissing: the split does not exist or is not complete, or there is no split.
        DatasetError: a table of samples is damaged.
        DatasetChanged: a split was written again while it was read.
    """
    if split:
        return [_summary(store, split)]
    summaries: list[SplitSummary] = []
    for name in splits_in(store):
        try:
            summaries.append(_summary(store, name))
        except ManifestMissing:
            why = why_missing(store, name)
            summaries.append({"split": name, "complete": False, "why": why})
    return summaries


def _summary(store: Store, split: str) -> CompleteSplit:
    """Summarise a complete split from its manifest and its table of samples."""
    manifest, snapshot = open_split(store, split)
    length_columns = [_length_column(name) for name in manifest.formats]
    with snapshot.unchanged():
        table = stored_table(store, manifest).frame([*_OTHER_COLUMNS, *_SIZES, *length_columns])
    is_written = table["status"] == "written"
    written = table[is_written]
    not_written = table[~is_written]
    labels = written["label"]
    class_sizes = labels[labels >= 0].value_counts()  # a sample without a class has the label -1
    reasons = not_written["status"] + ": " + not_written["reason"].fillna("")
    return {
        "split": split,
        "complete": True,
        "created": manifest.created,
        "samples": asdict(manifest.samples),
        "formats": _format_summaries(manifest, written),
        "classes": _distribution(class_sizes) if len(class_sizes) else None,
        "width": _distribution(written["width"]),
        "height": _distribution(written["height"]),
        "source_width": _distribution(written["source_width"]),
        "source_height": _distribution(written["source_height"]),
        "source_bytes": _distribution(written["source_bytes"]),
        "actions": _counts(written["action"]),
        "colorspaces": _counts(written["colorspace"]),
        "quirks": dict(manifest.warnings),
        "reasons": _counts(reasons),
    }


def _format_summaries(manifest: Manifest, written: pd.DataFrame) -> list[FormatSummary]:
    """Summarise each format. ``written`` has the rows of the samples that were written."""
    summaries: list[FormatSummary] = []
    for name, entry in manifest.formats.items():
        shard_sizes = [shard.bytes for shard in entry.shards]
        summaries.append(
            {
                "name": name,
                "label_offset": entry.label_offset,
                "shards": _distribution(shard_sizes),
                "records": _distribution(written[_length_column(name)]),
            }
        )
    return summaries


def _length_column(format_name: str) -> str:
    """Return the column of the table of samples with the sizes of records, in bytes."""
    return f"{format_name}_length"


def _counts(texts: pd.Series[str]) -> dict[str, int]:
    """Return how often each text occurs. The most frequent text is the first."""
    return cast("dict[str, int]", texts.value_counts().to_dict())


def _distribution(values: ArrayLike) -> Distribution:
    """Describe the distribution of whole numbers, of which there must be at least one."""
    array = np.asarray(values, np.int64)
    quantiles = np.quantile(array, (0, 0.05, 0.5, 0.95, 1), method="nearest").tolist()
    minimum, p5, median, p95, maximum = quantiles
    return {
        "count": len(array),
        "least": minimum,
        "p5": p5,
        "median": median,
        "p95": p95,
        "most": maximum,
        "mean": float(array.mean()),
        "total": int(array.sum()),
    }


def summary_text(summary: SplitSummary) -> str:
    """Format the summary of a split as a line, a table of the distributions, and counts."""
    if "why" in summary:
        return f"{summary['split']}: not complete: {summary['why']}"
    table = pd.DataFrame(_distributions(summary)).T.to_string(float_format="{:,.0f}".format)
    samples = summary["samples"]
    count = f"{samples['written']:,} of {samples['total']:,} samples"
    lines = [f"{summary['split']}: {count}, made {summary['created']}", *table.split("\n")]
    counts_by_title: Mapping[str, Mapping[str, int]] = {
        "colorspaces": summary["colorspaces"],
        "actions": summary["actions"],
        "quirks": summary["quirks"],
        "reasons": summary["reasons"],
    }
    for title, counts in counts_by_title.items():
        if counts:
            texts = [f"{value} {samples_count:,}" for value, samples_count in counts.items()]
            lines.append(f"{title}: {', '.join(texts)}")
    return "\n  ".join(lines)


def _distributions(summary: CompleteSplit) -> dict[str, Mapping[str, Any]]:
    """Return the distributions of a summary, by the names of their rows in the table."""
    distributions: dict[str, Mapping[str, Any]] = {}
    for entry in summary["formats"]:
        labels = f"labels from {entry['label_offset']}" if summary["classes"] else "no labels"
        name = f"{entry['name']}, {labels}"
        distributions[f"{name}: shards"] = entry["shards"]
        distributions[f"{name}: records"] = entry["records"]
    if summary["classes"]:
        distributions["classes"] = summary["classes"]
    for column in _SIZES:
        distributions[column] = summary[column]
    return distributions
