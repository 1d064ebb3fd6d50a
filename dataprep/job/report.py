"""PURE. A finished job in words, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dataprep.counted import counted
from dataprep.errors import DataprepError, TooManyFailures
from dataprep.job.summary import PartSummary, Summary
from dataprep.manifest import OUT_OF_BOUNDS, spread

_MOST_FAILURES = 10


def summary_json(
    summaries: Sequence[Summary | PartSummary], incomplete: Mapping[str, str] | None = None
) -> str:
    """One JSON object for all splits, with those that could not be completed, and why."""
    content: dict[str, Any] = {"splits": [summary.as_dict() for summary in summaries]}
    if incomplete:
        content["incomplete"] = [{"split": name, "why": why} for name, why in incomplete.items()]
    return json.dumps(content)


def stopped_json(summaries: Sequence[Summary | PartSummary], error: DataprepError) -> str:
    """One JSON object for a job that stopped: the splits before, why, and the known failures."""
    failures = error.failures if isinstance(error, TooManyFailures) else ()
    stopped = {
        "why": str(error),
        "failures": [{"source": name, "reason": reason} for name, reason in failures],
    }
    splits = [summary.as_dict() for summary in summaries]
    return json.dumps({"splits": splits, "stopped": stopped})


def summary_text(summaries: Sequence[Summary]) -> str:
    """A paragraph for each split."""
    return "\n".join(_one(summary) for summary in summaries)


def part_text(parts: Sequence[PartSummary]) -> str:
    """A paragraph for each split of which a part was made."""
    return "\n".join(_part(part) for part in parts)


def _part(summary: PartSummary) -> str:
    kept = f", {summary.kept_shards:,} kept from before" if summary.kept_shards else ""
    rate = summary.samples / max(summary.seconds, 1e-9)
    lines = [
        f"{summary.split}: part {summary.part}: {counted(summary.made_shards, 'shard')} made{kept}"
        + (f", {summary.failed:,} failed" if summary.failed else "")
        + (f", in {summary.seconds:,.1f} s, {rate:,.0f} img/s" if summary.made_shards else "")
    ]
    lines += [f"  failed: {name}: {reason}" for name, reason in summary.failures[:_MOST_FAILURES]]
    command = f"dataprep finalize {summary.output} --split {summary.split}"
    if summary.complete:
        lines.append("  the split is complete: its manifest is there")
    elif summary.lacking:
        lines.append(
            f"  {summary.lacking:,} of {counted(summary.shards, 'shard')} of the split still to "
            f"come; when all parts are done: {command}"
        )
    else:
        lines.append(f"  every shard of the split is stored; now: {command}")
    return "\n".join([*lines, f"  in {summary.output}"])


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
    met = dict(summary.manifest.warnings)
    if off_bounds := met.pop(OUT_OF_BOUNDS, 0):
        remedy = (
            "another --shard-size keeps them within"
            if any(len(entry.shards) > 1 for entry in summary.manifest.formats.values())
            else "the whole split fills no more than one"
        )
        lines.append(
            f"  {counted(off_bounds, 'shard')} out of the 1 to 128 MB that were aimed at: {remedy}"
        )
    if met:
        lines.append("  met: " + ", ".join(f"{kind} {count:,}" for kind, count in met.items()))
    if summary.skips:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in summary.skips.items())
        lines.append(f"  skipped: {reasons}")
    for name, reason in summary.failures[:_MOST_FAILURES]:
        lines.append(f"  failed: {name}: {reason}")
    if len(summary.failures) > _MOST_FAILURES:
        more = len(summary.failures) - _MOST_FAILURES
        lines.append(
            f"  and {more:,} more: see status and reason in {summary.split}.samples.parquet"
        )
    lines.append(f"  in {summary.output}")
    return "\n".join(lines)
