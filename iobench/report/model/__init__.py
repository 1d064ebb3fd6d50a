"""PURE. A result as what its page says: verdict, sections, tables, what charts draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iobench.report.model import (
    access,
    advice,
    against,
    coldness,
    cost,
    definitions,
    environment,
    findings,
    first_batch,
    instrumentation,
    ladder,
    meanwhile,
    roofline,
    scale,
    sweeps,
    training,
    trials,
    verdict,
    watched,
    whatif,
)
from iobench.report.model.bounds import bounded
from iobench.report.model.shapes import Report
from iobench.result import Result

__all__ = ["Report", "build"]


def build(
    result: Result,
    series: Mapping[str, Mapping[str, Sequence[float]]],
    readings: meanwhile.Readings | None = None,
) -> Report:
    """The whole page. ``series``: trial id -> column -> values; empty sections are left out.

    ``readings`` of the machine: trial id -> column -> pairs of time and value.
    """
    what_to_change, nothing_to_change = advice.sections(result)
    parts = (
        findings.section(result),
        what_to_change,
        against.section(result),
        ladder.section(result),
        training.section(result, series),
        first_batch.section(result),
        access.section(result),
        whatif.section(result),
        nothing_to_change,
        watched.section(result),
        meanwhile.section(result, series, readings or {}),
        *sweeps.sections(result),
        roofline.section(result),
        cost.section(result),
        scale.section(result),
        coldness.section(result),
        instrumentation.section(result),
        trials.section(result),
        environment.environment(result),
        environment.reproduce(result),
        definitions.section(),
    )
    return Report(
        name=result.name,
        facts=verdict.facts(result),
        verdict=verdict.sentence(result),
        badges=(*verdict.badges(result), *roofline.badges(result)),
        figures=verdict.figures(result),
        beginning=findings.beginning(result),
        sections=tuple(bounded(part for part in parts if part is not None)),
    )
