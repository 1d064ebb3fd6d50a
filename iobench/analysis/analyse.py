"""PURE. Analyse a result: one list of findings and recommendations, which all output uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any

from dataprep.counted import counted
from iobench.analysis import run_verdict
from iobench.analysis.bandwidth_limits import beyond_limit_findings
from iobench.analysis.capacity import Capacities
from iobench.analysis.epoch_cost import epoch_cost
from iobench.analysis.evidence import evidence, storage_of, unmeasured_ceilings
from iobench.analysis.fed_accelerators import accelerator_counts, measured_rows
from iobench.analysis.finding_rules import RULES
from iobench.analysis.hosts import hosts_findings, hosts_headline, hosts_summary, on_all_hosts
from iobench.analysis.loop_findings import first_batch_finding, loop_findings
from iobench.analysis.loops import Loop, device_scaling, leading_loop, training_loops
from iobench.analysis.measured_capacities import capacities
from iobench.analysis.measurement_findings import measurement_findings
from iobench.analysis.mlperf import pass_marks
from iobench.analysis.probe_findings import probe_findings, shared_loader_findings
from iobench.analysis.recommendation_choice import Advice, advise, gain_words
from iobench.analysis.recommendations import Recommendation, config_value
from iobench.analysis.remedies import REMEDIES, in_order, unpredicted_remedies
from iobench.analysis.run_verdict import Confidence
from iobench.analysis.situation import (
    ACCURATE,
    PredictionCheck,
    Situation,
    check_predictions,
    situation,
)
from iobench.analysis.sizing import Feeds, Supply, feeds, host_supplies, scale
from iobench.analysis.summary_rows import (
    access_rows,
    disk_rows,
    layout_rows,
    loader_rows,
    processes_rows,
    store_rows,
    watched_rows,
)
from iobench.analysis.watched_findings import watched_findings
from iobench.results.result import Finding, Result

_MOST_SEVERE_FIRST = ("problem", "warning", "info")


@dataclass(frozen=True, slots=True)
class Analysis:
    """The analysis of one run.

    Attributes:
        result: the run.
        loops: its training loops.
        loop: the loop that the verdict is about; None without training loops.
        capacities: the rates of that loop's parts.
        situation: that loop's current setting; None if the run has no stored data.
        advice: what to change, best first.
        checks: the predicted and the measured rates of the loops.
        findings: causes of the loss, and doubts about the measurement. At most one is primary.
        confidence: how far the verdict can be trusted; None without training loops.
        feeds: how many accelerators the host feeds; None if no rate for it was measured.
        supplies: the rates of the parts of the host.
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
    verdict: str
    summary: Mapping[str, Any]
    doubt: str = ""


def analyse(all_hosts_result: Result, group: str | None = None) -> Analysis:
    """Analyse the trials of a run: findings, advice, verdict and summary.

    Tables and the headline show all completed trials. Findings about causes, predictions and advice
    use only trials that are evidence (``iobench.analysis.evidence``). If several hosts measured at
    the same time, the figures are those of host 0.

    Args:
        all_hosts_result: the run, with trials on any number of hosts.
        group: the name of the loop that the verdict is about; None for the leading loop.
    """
    result = on_all_hosts(all_hosts_result)
    reliable = evidence(result)
    reliable_result = replace(result, trials=reliable.trials)

    # Trials that are not evidence are removed from a loop, if each of its inputs keeps a trial.
    # Otherwise the loop keeps all its trials for the tables, but no conclusion is drawn from it.
    loops_of_all_trials = training_loops(result.trials)
    loops_of_evidence = {loop.group: loop for loop in training_loops(reliable.trials)}
    loops = [_reliable_loop(loop, loops_of_evidence) or loop for loop in loops_of_all_trials]
    reliable_loops = [loop for loop in loops if loop is loops_of_evidence.get(loop.group)]
    loop = leading_loop([loop for loop in loops if group in (None, loop.group)])
    is_reliable = loop is None or loop in reliable_loops
    doubt = ""
    if loop is not None and not is_reliable:
        doubt = reliable.doubts.get(loop.group, "")

    capacities_by_group = {
        member.group: capacities(reliable_result, member, reliable_loops) for member in loops
    }
    if loop is not None:
        own_capacities = capacities_by_group[loop.group]
    else:
        own_capacities = capacities(reliable_result, None, reliable_loops)

    causes: list[Finding] = []
    for reliable_loop in reliable_loops:
        causes += loop_findings(reliable_loop, capacities_by_group[reliable_loop.group])
    findings_without_advice = [
        *causes,
        *watched_findings(reliable.trials),
        *probe_findings(reliable_result),
        *first_batch_finding(reliable.trials),
        *shared_loader_findings(reliable.trials),
        *reliable.faults,
        *measurement_findings(result, loops_of_all_trials),
        *hosts_findings(all_hosts_result),
        *beyond_limit_findings(result),
        *unmeasured_ceilings(storage_of(result, reliable.trials), reliable_loops),
    ]
    primary = _primary(findings_without_advice, loop)
    current = situation(reliable_result, own_capacities, loop) if is_reliable else None
    advice = _advice(current, loop, primary, causes, reliable_result, own_capacities)
    findings = tuple(
        _with_advice(finding, finding is primary, advice) for finding in findings_without_advice
    )

    sized_loop = loop if is_reliable else None
    supplies = host_supplies(reliable_result, own_capacities, sized_loop)
    families = accelerator_counts(reliable_loops, causes)
    has_supply = any(supply.samples_per_s for supply in supplies)
    fed_accelerators = None
    if families or sized_loop is not None or has_supply:
        fed_accelerators = feeds(supplies, sized_loop, advice, measured=measured_rows(families))

    tables = _tables(result, loops)
    if loop is not None and loop.farthest:
        verdict = run_verdict.loop_verdict(loop, findings, named=len(loops) > 1, doubt=doubt)
    else:
        any_done = any(trial.status == "done" for trial in result.trials)
        verdict = run_verdict.verdict_without_loop(tables, any_done, result.environment)
    headline = hosts_headline(all_hosts_result)
    if headline:
        verdict = f"{headline} Host 0: {verdict}"
    confidence = run_verdict.confidence(loop, findings, doubt) if loop is not None else None
    checks = check_predictions(reliable_loops, capacities_by_group)
    on_fewer_hosts = [trial for trial in all_hosts_result.trials if "hosts" in trial.params]
    reliable_on_any_hosts = replace(all_hosts_result, trials=(*reliable.trials, *on_fewer_hosts))
    summary = {
        "verdict": verdict,
        "confidence": str(confidence) if confidence is not None else None,
        **_headline_figures(loop),
        **tables,
        "recommendations": [change.as_dict() for change in advice.changes],
        "without_effect": list(advice.without_effect),
        "not_measured": list(advice.not_measured),
        "predictions": [check.as_dict() for check in checks],
        "feeds": fed_accelerators.as_dict() if fed_accelerators else None,
        "accelerators": [count.as_dict() for family in families for count in family],
        "mlperf_storage": [mark.as_dict() for mark in pass_marks(result, loops)],
        **hosts_summary(all_hosts_result),
        **_requested_sizing(reliable_on_any_hosts, own_capacities, sized_loop),
    }
    return Analysis(
        result=all_hosts_result,
        loops=loops,
        loop=loop,
        capacities=own_capacities,
        situation=current,
        advice=advice,
        checks=checks,
        findings=findings,
        confidence=confidence,
        feeds=fed_accelerators,
        supplies=supplies,
        verdict=verdict,
        summary=summary,
        doubt=doubt,
    )


def summarised(result: Result) -> Result:
    """Return the result with its summary and findings."""
    analysis = analyse(result)
    return replace(result, summary=analysis.summary, findings=analysis.findings)


def result_lines(summary: Mapping[str, Any]) -> list[str]:
    """Return the verdict, the first recommendation and the confidence, for a terminal."""
    lines = [str(summary["verdict"])]
    recommendations = summary.get("recommendations", ())
    if recommendations:
        first = recommendations[0]
        gain = "gain not predicted"
        if first["gain"]:
            gain = f"{first['gain']['median']:.2f} times, {first['basis']}"
        lines.append(f"First change: {first['action']} ({gain}); iobench advise RUN_DIR lists all.")
    if summary.get("confidence"):
        lines.append(f"Confidence: {summary['confidence']}")
    return lines


def recommendation_words(change: Recommendation) -> str:
    """Return ``Use 2 loader workers instead of 1: 1.60 times (1.45 to 1.76), predicted``."""
    if change.gain is None:
        return f"{change.action}: gain not predicted"
    return f"{change.action}: {gain_words(change.gain)}, {change.basis}"


def how_words(change: Recommendation) -> list[str]:
    """Return the ways to make a change.

    They are a command or keys of the config, and the argument in a training script.
    """
    ways = []
    if change.command:
        ways.append(change.command)
    elif change.config:
        options = [
            f"--set {quote(f'{key}={config_value(value)}')}" for key, value in change.config.items()
        ]
        ways.append(f"iobench: {' '.join(options)}")
    if change.code:
        ways.append(f"PyTorch: {change.code}" if "DataLoader" in change.code else change.code)
    return ways


def prediction_accuracy_words(checks: Sequence[PredictionCheck], group: str) -> str:
    """Return how accurate the predictions were for the loop ``group``."""
    errors = [
        abs(check.error) for check in checks if check.group == group and check.error is not None
    ]
    if not errors:
        return "The predictions were not validated: add the loader of a loop under loaders."
    loops = counted(len(errors), "measured loop")
    if max(errors) <= ACCURATE:
        return f"Predictions were checked on {loops}: within {ACCURATE * 100:.0f} %."
    return f"Predictions were checked on {loops}: off by up to {max(errors) * 100:.0f} %."


def _reliable_loop(loop: Loop, loops_of_evidence: Mapping[str, Loop]) -> Loop | None:
    """Return the loop without the trials that are no evidence; None if an input loses all trials.

    Args:
        loop: the loop with all its trials.
        loops_of_evidence: the loops of the trials that are evidence, by group.
    """
    reliable = loops_of_evidence.get(loop.group)
    if reliable is not None and reliable.inputs.keys() == loop.inputs.keys():
        return reliable
    return None


def _primary(findings: Sequence[Finding], loop: Loop | None) -> Finding | None:
    """Return the most important finding about a loop or the whole run; None if there is none.

    It is the cause of the loop's loss with the largest share of a step. Without a cause, it is the
    grade of the loop, then a cause of the whole run, then a finding about its start. A doubt about
    the measurement is never the primary finding.
    """
    group = loop.group if loop is not None else ""
    causes = [
        finding
        for finding in findings
        if RULES[finding.code].kind == "cause" and finding.of == group
    ]
    largest_share = max((cause.share or 0.0 for cause in causes), default=0.0)
    for cause in causes:
        # The time that ranks wait for the slowest one is also part of the share of its input.
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
    causes: Sequence[Finding],
    result: Result,
    own_capacities: Capacities,
) -> Advice:
    """Return changes with a predicted or measured gain, and remedies without a gain.

    Remedies of the primary cause come first.

    Args:
        current: the situation of the loop; None if its gains cannot be predicted.
        loop: the loop that the verdict is about.
        primary: the primary finding.
        causes: the causes of the losses of all loops.
        result: the run, with the trials that are evidence.
        own_capacities: the rates of the parts of the loop.
    """
    remedies = REMEDIES.get(primary.code, ()) if primary is not None else ()
    predicted = advise(current, remedies) if current is not None else Advice()
    if loop is None or primary is None:
        return predicted
    without_effect = set(predicted.without_effect)
    if "workers" in without_effect:
        without_effect.add("measure_workers")
    without_gain: list[Recommendation] = []
    other_causes = [cause for cause in causes if cause is not primary]
    for finding in (primary, *other_causes):
        if finding.of != loop.group:
            continue
        without_gain += unpredicted_remedies(loop, finding, result, own_capacities, current)
        if isinstance(finding.recommendation, Recommendation):
            without_gain.append(finding.recommendation)
    without_gain = [change for change in without_gain if change.setting not in without_effect]
    changes = in_order(primary, predicted.changes, without_gain)
    recommended = {change.setting for change in changes}
    return Advice(
        changes,
        without_effect=predicted.without_effect,
        not_measured=tuple(name for name in predicted.not_measured if name not in recommended),
    )


def _with_advice(finding: Finding, is_primary: bool, advice: Advice) -> Finding:
    """Return a finding whose ``advice`` is the text of its recommendation.

    A primary cause gets the first recommendation of the run.
    """
    change: Any = finding.recommendation
    if is_primary and advice.changes and RULES[finding.code].kind == "cause":
        change = advice.changes[0]
    if not isinstance(change, Recommendation):
        return replace(finding, primary=is_primary)
    sentence = "; ".join([recommendation_words(change), *how_words(change)])
    return replace(finding, primary=is_primary, advice=sentence, recommendation=change.as_dict())


def _tables(result: Result, loops: Sequence[Loop]) -> dict[str, Any]:
    """Return the tables of the summary."""
    trials = result.trials
    return {
        "training": [loop.as_dict() for loop in loops],
        "ladder": [loop.ladder_dict() for loop in loops if loop.ladder.rungs],
        "scaling": [row.as_dict() for row in device_scaling(loops)],
        "loaders": [row.as_dict() for row in loader_rows(trials)],
        "disks": [row.as_dict() for row in disk_rows(trials)],
        "access": [{**row.as_dict(), "kind": row.kind} for row in access_rows(trials)],
        "layouts": [row.as_dict() for row in layout_rows(trials)],
        "object_stores": [row.as_dict() for row in store_rows(trials)],
        "watched": [row.as_dict() for row in watched_rows(trials)],
        "processes": [row.as_dict() for row in processes_rows(trials)],
    }


def _headline_figures(loop: Loop | None) -> dict[str, float | None]:
    """Return the medians of the loop that the verdict is about."""
    if loop is None:
        return {
            "au_mlperf": None,
            "au_ceiling": None,
            "samples_per_second": None,
            "stall_fraction": None,
            "waiting_fraction": None,
        }
    rate, share, loss, waiting = loop.rate(), loop.au_ceiling, loop.loss, loop.waiting
    return {
        "au_mlperf": loop.metric("au_mlperf"),
        "au_ceiling": share.median if share is not None else None,
        "samples_per_second": rate.median if rate is not None and loop.farthest else None,
        "stall_fraction": loss.median if loss is not None else None,
        "waiting_fraction": waiting.median if waiting is not None else None,
    }


def _requested_sizing(
    result: Result, own_capacities: Capacities, loop: Loop | None
) -> dict[str, Any]:
    """Return the sizing and the cost, if the config has the sections ``scale`` and ``cost``."""
    summary: dict[str, Any] = {}
    if settings := result.config.get("scale"):
        summary["scale"] = scale(result, own_capacities, loop, settings).as_dict()
    if settings := result.config.get("cost"):
        summary["cost"] = epoch_cost(result, loop, settings).as_dict()
    return summary
