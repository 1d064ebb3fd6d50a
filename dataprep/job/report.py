"""PURE. A finished job in words, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

from dataprep.counted import counted
from dataprep.job.summary import Summary
from dataprep.manifest import spread

_MOST_FAILURES = 10


def summary_json(summaries: Sequence[Summary]) -> str:
    """One JSON object for all splits."""
    return json.dumps({"splits": [summary.as_dict() for summary in summaries]})


def summary_text(summaries: Sequence[Summary]) -> str:
    """A paragraph for each split."""
    return "\n".join(_one(summary) for summary in summaries)


def _one(summary: Summary) -> str:
    counts = summary.manifest.samples
    lines = [
        f"{summary.split}: {counts.written:,} of {counts.total:,} samples written "
        f"({counts.passthrough:,} passed through, {counts.reencoded:,} re-encoded), "
        f"{counts.failed:,} failed, {counts.skipped:,} skipped"
    ]
    for name, entry in summary.manifest.formats.items():
        mean = entry.bytes / len(entry.shards) / 1e6
        lines.append(
            f"  {name}: {counted(len(entry.shards), 'shard')}, {entry.bytes / 1e6:,.1f} MB, "
            f"{mean:,.1f} MB each; labels in records from {entry.label_offset}"
        )
    if max(len(entry.shards) for entry in summary.manifest.formats.values()) > 1:
        off = spread(summary.manifest.formats)
        lines.append(f"  spread: no shard is more than {off:.1%} off the mean")
    if summary.made_shards:
        kept = f", {summary.kept_shards:,} kept from before" if summary.kept_shards else ""
        lines.append(
            f"  {counted(summary.made_shards, 'shard')} made{kept} in {summary.seconds:,.1f} s, "
            f"{summary.images_per_s:,.0f} img/s"
        )
    if summary.manifest.warnings:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in summary.manifest.warnings.items())
        lines.append(f"  met: {kinds}")
    for name, reason in summary.failures[:_MOST_FAILURES]:
        lines.append(f"  failed: {name}: {reason}")
    if len(summary.failures) > _MOST_FAILURES:
        more = len(summary.failures) - _MOST_FAILURES
        lines.append(
            f"  and {more:,} more: see status and reason in {summary.split}.samples.parquet"
        )
    lines.append(f"  in {summary.output}")
    return "\n".join(lines)
