"""PURE. A comparison as one JSON object.

Schema history: 1, the first. ``verdict`` is the sentence, ``changes`` has an object a figure;
of a trend, ``rows`` has one a figure with its ``steps``, and ``comparisons`` is one a run.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from iobench.compare.comparison import Change, Comparison, Saved
from iobench.compare.sentence import DRIFT, sentence
from iobench.compare.trend import Step, Trend

SCHEMA = 1


def comparison_object(found: Comparison) -> dict[str, Any]:
    """Of two runs."""
    return {
        "schema": SCHEMA,
        "verdict": sentence(found),
        "exit_code": found.exit_code,
        "threshold": found.threshold,
        "base": _run(found.base),
        "new": _run(found.new),
        "unlike_machines": bool(found.unlike),
        "environment": [asdict(each) for each in found.environment],
        "config": [asdict(each) for each in found.config],
        "changes": [change_object(change) for change in found.changes],
        "apart": [asdict(each) for each in found.apart],
        "intervals": len(found.intervals),
        "intervals_without_1": found.leaving,
        "intervals_without_1_by_chance": found.by_chance,
        "notes": [DRIFT],
    }


def trend_object(found: Trend) -> dict[str, Any]:
    """Of several runs; ``run`` counts from 0 in their order."""
    return {
        "schema": SCHEMA,
        "verdict": sentence(found.newest),
        "exit_code": found.exit_code,
        "threshold": found.newest.threshold,
        "runs": [_run(run) for run in found.runs],
        "base": found.base,
        "in_order_of_time": found.in_order,
        "rows": [
            {
                "kind": row.point.kind,
                "params": dict(row.point.params),
                "name": row.point.name,
                "cache": row.point.cache,
                "figure": row.figure.metric,
                "steps": [_step(step) for step in row.steps],
            }
            for row in found.rows
        ],
        "comparisons": [comparison_object(each) for each in found.comparisons],
        "notes": [DRIFT],
    }


def change_object(change: Change) -> dict[str, Any]:
    """One figure. ``more_repeats`` is None where none are asked for."""
    more = change.judgement.more
    return {
        "kind": change.point.kind,
        "params": dict(change.point.params),
        "name": change.point.name,
        "cache": change.point.cache,
        "figure": change.figure.metric,
        "higher_is_better": change.figure.higher_is_better,
        "base": asdict(change.base),
        "new": asdict(change.new),
        **asdict(change.ratio),
        "verdict": change.verdict,
        "why": change.judgement.why,
        "more_repeats": more.repeats if more else None,
        "more_repeats_at_least": more.at_least if more else None,
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "run": step.run,
        "found": asdict(step.found),
        "from_base": change_object(step.from_base) if step.from_base else None,
        "from_previous": change_object(step.from_previous) if step.from_previous else None,
    }


def _run(run: Saved) -> dict[str, Any]:
    return {
        "where": run.where,
        "name": run.result.name,
        "started": run.result.started,
        "trials": run.counts,
    }
