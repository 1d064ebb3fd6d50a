"""PURE. Analyse the result of a run. Commands, reports and ``result.json`` show this analysis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from iobench.analysis import run_verdict
from iobench.analysis.bandwidth_limits import beyond_limit_findings
from iobench.analysis.capacity import Capacities
from iobench.analysis.epoch_cost import epoch_cost
from iobench.analysis.evidence import Evidence, judge_trials, storage_of, unmeasured_ceilings
from iobench.analysis.fed_accelerators import AcceleratorCount, accelerator_counts, measured_rows
from iobench.analysis.feeds_table import Feeds, feeds
from iobench.analysis.finding_rules import RULES
from iobench.analysis.gain_words import how_words, recommendation_words
from iobench.analysis.hosts import hosts_findings, hosts_headline, hosts_table, without_fewer_hosts
from iobench.analysis.loop_findings import first_batch_finding, loop_findings
from iobench.analysis.loops import Loop
from iobench.analysis.measured_capacities import capacities
from iobench.analysis.measurement_findings import measurement_findings
from iobench.analysis.mlperf import pass_marks
from iobench.analysis.probe_findings import probe_findings, shared_loader_findings
from iobench.analysis.recommendation_choice import Advice, advise
from iobench.analysis.recommendations import Recommendation
from iobench.analysis.remedies import REMEDIES, fewer_workers, in_order, unpredicted_remedies
from iobench.analysis.run_verdict import Confidence
from iobench.analysis.selected_loops import SelectedLoops, select_loops
from iobench.analysis.situation import PredictionCheck, Situation, check_predictions, situation
from iobench.analysis.sizing import scale
from iobench.analysis.summary_tables import Tables, tables_of
from iobench.analysis.supplies import Supply, host_supplies
from iobench.analysis.watched_findings import watched_findings
from iobench.results.result import Finding, Result
from iobench.results.statistics import Estimate

_MOST_SEVERE_FIRST = ("problem", "warning", "info")


@dataclass(frozen=True, slots=True)
class Analysis:
    """The analysis of one run.

    Attributes:
        result: the run.
        loops: its training loops.
        loop: the loop that the verdict is about; None without training loops.
        capacities: the rates of that loop's parts.
        situation: the current setting of that loop; without training loops, of the first loader.
            None if its rate with stored data is unknown or is no evidence.
        advice: what to change, best first.
        checks: the predicted and the measured rates of the loops.
        findings: causes of the loss, and doubts about the measurement. At most one is primary.
        confidence: how far the verdict can be trusted; None without training loops.
        feeds: how many accelerators the host feeds; None if no rate was measured.
        supplies: the rates of the parts of the host.
        tables: the tables of the summary.
        verdict: the conclusion about the run in one sentence.
        summary: the analysis as ``result.json`` stores it.
        doubt: the reason why the figures of ``loop`` are not evidence; empty if they are.
    """

    result: Result
    loops: Sequence[Loop]
    loop: Loop | None
    capacities: Capacities
    situation: Situation | None
    advice: Advice
    checks: Sequence[PredictionCheck]
    findings: tuple[Finding, ...]
    confidence: Confidence | None
    feeds: Feeds | None
    supplies: Sequence[Supply]
    tables: Tables
    verdict: str
    summary: Mapping[str, Any]
    doubt: str = ""


def analyse(whole_result: Result, group: str | None = None) -> Analysis:
    """Analyse the trials of a run: findings, advice, verdict and summary.

    Tables and the headline show all completed trials. Findings about causes, predictions and advice
    use only trials that are evidence (``iobench.analysis.evidence``). If several hosts measured at
    the same time, the figures are those of host 0.

    Args:
        whole_result: the run, with trials on any number of hosts.
        group: the name of the loop that the verdict is about; None for the leading loop.
    """
    result = without_fewer_hosts(whole_result)
    evidence = judge_trials(result)
    judged_result = replace(result, trials=evidence.trials)
    loops = select_loops(result, evidence, group)
    loop = loops.leading

    capacities_by_group: dict[str, Capacities] = {}
    for member in loops.in_tables:
        capacities_by_group[member.group] = capacities(judged_result, member, loops.reliable)
    if loop is not None:
        own_capacities = capacities_by_group[loop.group]
    else:
        own_capacities = capacities(judged_result, None, loops.reliable)

    findings_of_loops: list[Finding] = []
    for reliable_loop in loops.reliable:
        findings_of_loops += loop_findings(reliable_loop, capacities_by_group[reliable_loop.group])
    other_findings = _other_findings(whole_result, result, evidence, loops)
    findings_without_recommendation = [*findings_of_loops, *other_findings]
    primary = _primary(findings_without_recommendation, loop)
    current = None
    if loops.is_leading_reliable:
        current = situation(judged_result, own_capacities, loop)
    advice = _advice(current, loop, primary, findings_of_loops, judged_result, own_capacities)
    findings = []
    for finding in findings_without_recommendation:
        is_primary = finding is primary
        cpus = own_capacities.processors
        findings.append(_with_recommendation(finding, advice, loops, cpus, is_primary=is_primary))

    sized_loop = loop if loops.is_leading_reliable else None
    supplies = host_supplies(judged_result, own_capacities, sized_loop)
    families = accelerator_counts(loops.reliable, findings_of_loops)
    fed_accelerators = _fed_accelerators(supplies, families, sized_loop, advice)

    tables = tables_of(result.trials, loops.in_tables)
    verdict = _verdict(whole_result, result, loops, findings, tables)
    confidence = None
    if loop is not None:
        confidence = run_verdict.confidence(loop, findings, loops.doubt)
    analysis = Analysis(
        result=whole_result,
        loops=loops.in_tables,
        loop=loop,
        capacities=own_capacities,
        situation=current,
        advice=advice,
        checks=check_predictions(loops.reliable, capacities_by_group),
        findings=tuple(findings),
        confidence=confidence,
        feeds=fed_accelerators,
        supplies=supplies,
        tables=tables,
        verdict=verdict,
        summary={},  # It is computed from the other fields below.
        doubt=loops.doubt,
    )
    summary = {
        **_summary(analysis, result, families),
        **_requested_sizing(analysis, evidence, sized_loop),
    }
    return replace(analysis, summary=summary)


def summarised(result: Result) -> Result:
    """Return the result with its summary and findings."""
    analysis = analyse(result)
    return replace(result, summary=analysis.summary, findings=analysis.findings)


def _other_findings(
    whole_result: Result, result: Result, evidence: Evidence, loops: SelectedLoops
) -> Iterator[Finding]:
    """Yield all findings that ``loop_findings`` does not give.

    Args:
        whole_result: the run, with trials on any number of hosts.
        result: the run without trials on fewer hosts.
        evidence: all trials of ``result``. Those that are no evidence are marked as skipped.
        loops: the loops of the run.
    """
    yield from watched_findings(evidence.trials)
    yield from probe_findings(replace(result, trials=evidence.trials))
    yield from first_batch_finding(evidence.trials)
    yield from shared_loader_findings(evidence.trials)
    yield from evidence.faults
    yield from measurement_findings(result, loops.of_all_trials)
    yield from hosts_findings(whole_result)
    yield from beyond_limit_findings(result)
    yield from unmeasured_ceilings(storage_of(result, evidence.trials), loops.reliable)


def _fed_accelerators(
    supplies: Sequence[Supply],
    families: Sequence[Sequence[AcceleratorCount]],
    loop: Loop | None,
    advice: Advice,
) -> Feeds | None:
    """Return how many accelerators the host feeds; None if no rate was measured."""
    has_supply = any(supply.samples_per_s for supply in supplies)
    if not families and loop is None and not has_supply:
        return None
    return feeds(supplies, loop, advice, measured=measured_rows(families))


def _verdict(
    whole_result: Result,
    result: Result,
    loops: SelectedLoops,
    findings: Sequence[Finding],
    tables: Tables,
) -> str:
    """Return the conclusion about the run.

    On several hosts, the sum over hosts comes before the verdict on host 0.

    Args:
        whole_result: the run, with trials on any number of hosts.
        result: the run without trials on fewer hosts.
        loops: the loops of the run.
        findings: the findings of the run.
        tables: the tables of the run.
    """
    loop = loops.leading
    is_one_of_several = len(loops.in_tables) > 1
    if loop is not None and loop.farthest:
        verdict = run_verdict.loop_verdict(
            loop, findings, named=is_one_of_several, doubt=loops.doubt
        )
    else:
        of_device = ""
        if loop is not None:
            of_device = run_verdict.device_verdict(loop, named=is_one_of_several, doubt=loops.doubt)
        any_done = any(trial.status == "done" for trial in result.trials)
        verdict = run_verdict.verdict_without_loop(
            tables, of_device=of_device, any_done=any_done, environment=result.environment
        )
    headline = hosts_headline(whole_result)
    return f"{headline} Host 0: {verdict}" if headline else verdict


def _primary(findings: Sequence[Finding], loop: Loop | None) -> Finding | None:
    """Return the most important finding about a loop or the whole run; None if there is none.

    It is the first of the following that exists:

    1. uneven ranks, if their share of a step is at least half of the largest share of a cause;
    2. the most severe cause of the loop's loss; of several, the cause with the largest share;
    3. the grade of the loop;
    4. a cause that concerns the whole run, or that has no share;
    5. a finding about the start.

    A doubt about the measurement is never the primary finding.
    """
    group = loop.group if loop is not None else ""
    own_findings = [finding for finding in findings if finding.of == group]
    causes = [finding for finding in own_findings if RULES[finding.code].kind == "cause"]
    largest_share = max([cause.share or 0.0 for cause in causes], default=0.0)
    for cause in causes:
        # Waiting for the slowest rank also counts as a cost of its input. So a cause in the input
        # can have a larger share, although uneven ranks are the reason.
        if cause.code == "uneven-ranks" and (cause.share or 0.0) >= largest_share / 2:
            return cause
    for severity in _MOST_SEVERE_FIRST:
        of_severity = [
            cause for cause in causes if cause.severity == severity and cause.share is not None
        ]
        if of_severity:
            return max(of_severity, key=lambda cause: cause.share or 0.0)
    for kind in ("grade", "cause", "start"):
        for finding in findings:
            if RULES[finding.code].kind == kind and finding.of in ("", group):
                return finding
    return None


def _advice(
    current: Situation | None,
    loop: Loop | None,
    primary: Finding | None,
    findings_of_loops: Sequence[Finding],
    result: Result,
    own_capacities: Capacities,
) -> Advice:
    """Return changes with a predicted or measured gain, and remedies without a gain.

    Remedies of the primary cause come first.

    Args:
        current: the current setting; None if its rate with stored data is unknown or is no
            evidence.
        loop: the loop that the verdict is about.
        primary: the primary finding.
        findings_of_loops: the findings about all loops.
        result: the run. Trials that are no evidence are marked as skipped.
        own_capacities: the rates of the parts of the loop.
    """
    remedies = REMEDIES.get(primary.code, ()) if primary is not None else ()
    predicted = advise(current, remedies) if current is not None else Advice()
    if loop is None or primary is None:
        return predicted
    without_gain: list[Recommendation] = []
    other_findings = [finding for finding in findings_of_loops if finding is not primary]
    for finding in (primary, *other_findings):
        if finding.of != loop.group:
            continue
        without_gain += unpredicted_remedies(loop, finding, result, own_capacities, current)
    without_effect = set(predicted.without_effect)
    if "workers" in without_effect:
        without_effect.add("measure_workers")
    useful = [change for change in without_gain if change.setting not in without_effect]
    changes = in_order(primary, predicted.changes, useful)
    recommended = {change.setting for change in changes}
    not_measured = [name for name in predicted.not_measured if name not in recommended]
    return Advice(changes, predicted.without_effect, tuple(not_measured))


def _with_recommendation(
    finding: Finding, advice: Advice, loops: SelectedLoops, cpus: float | None, *, is_primary: bool
) -> Finding:
    """Return a finding whose ``advice`` is the text of its recommendation, if it has one.

    A primary cause gets the first recommendation of the run.

    Args:
        finding: the finding.
        advice: the recommendations of the run.
        loops: the loops of the run.
        cpus: the CPUs that the run could use; None if they are unknown.
        is_primary: whether it is the primary finding.
    """
    change: Recommendation | None = None
    if is_primary and advice.changes and RULES[finding.code].kind == "cause":
        change = advice.changes[0]
    elif finding.code == "too-many-workers" and cpus:
        (loop,) = [loop for loop in loops.reliable if loop.group == finding.of]
        change = fewer_workers(loop, cpus)
    if change is None:
        return replace(finding, primary=is_primary)
    sentence = "; ".join([recommendation_words(change), *how_words(change)])
    return replace(finding, primary=is_primary, advice=sentence, recommendation=change.as_dict())


def _summary(
    analysis: Analysis, result: Result, families: Sequence[Sequence[AcceleratorCount]]
) -> dict[str, Any]:
    """Return the summary as ``result.json`` stores it.

    Args:
        analysis: the analysis, without its summary.
        result: the run without trials on fewer hosts.
        families: the measured numbers of accelerators, a list for each entry of ``training``.
    """
    advice, feeds_table = analysis.advice, analysis.feeds
    summary = {
        "verdict": analysis.verdict,
        "confidence": str(analysis.confidence) if analysis.confidence is not None else None,
        **_headline_figures(analysis.loop),
        **analysis.tables.as_dict(),
        "recommendations": [change.as_dict() for change in advice.changes],
        "without_effect": list(advice.without_effect),
        "not_measured": list(advice.not_measured),
        "predictions": [check.as_dict() for check in analysis.checks],
        "feeds": feeds_table.as_dict() if feeds_table is not None else None,
        "accelerators": [count.as_dict() for family in families for count in family],
        "mlperf_storage": [mark.as_dict() for mark in pass_marks(result, analysis.loops)],
    }
    hosts = hosts_table(analysis.result)
    if hosts is not None:
        summary["hosts"] = hosts.as_dict()
    return summary


def _requested_sizing(analysis: Analysis, evidence: Evidence, loop: Loop | None) -> dict[str, Any]:
    """Return the sizing and the cost, if the config has the sections ``scale`` and ``cost``.

    Args:
        analysis: the analysis.
        evidence: all trials on all hosts. Those that are no evidence are marked as skipped.
        loop: the loop whose rate is used; None if it is not evidence, or if there is none.
    """
    all_trials = analysis.result.trials
    on_fewer_hosts = [trial for trial in all_trials if "hosts" in trial.params]
    result = replace(analysis.result, trials=(*evidence.trials, *on_fewer_hosts))
    summary = {}
    scale_settings = result.config.get("scale")
    if scale_settings:
        sizing = scale(result, analysis.capacities, loop, scale_settings)
        summary["scale"] = sizing.as_dict()
    cost_settings = result.config.get("cost")
    if cost_settings:
        summary["cost"] = epoch_cost(result, loop, cost_settings).as_dict()
    return summary


def _headline_figures(loop: Loop | None) -> dict[str, float | None]:
    """Return the medians of the loop that the verdict is about; None for unknown figures."""
    if loop is None:
        names = ("au_mlperf", "au_ceiling", "samples_per_second", "stall_fraction")
        return dict.fromkeys([*names, "waiting_fraction"])
    return {
        "au_mlperf": loop.metric("au_mlperf"),
        "au_ceiling": _median(loop.au_ceiling),
        "samples_per_second": _median(loop.rate()) if loop.farthest else None,
        "stall_fraction": _median(loop.loss),
        "waiting_fraction": _median(loop.waiting),
    }


def _median(figure: Estimate | None) -> float | None:
    """Return the median of a figure; None if there is no figure."""
    return figure.median if figure is not None else None
