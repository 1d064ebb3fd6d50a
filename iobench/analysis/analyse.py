"""PURE. Analyse a result: the one list of findings and recommendations that all output uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any

from iobench.analysis import findings as causes
from iobench.analysis import supplies, verdict
from iobench.analysis.capacity import Capacities, capacities
from iobench.analysis.ceilings import beyond
from iobench.analysis.loops import Loop, leading, loops, scaling
from iobench.analysis.mlperf import pass_marks
from iobench.analysis.qualifiers import qualifiers
from iobench.analysis.recommend import (
    ALLOWED,
    Advice,
    Check,
    Recommendation,
    Situation,
    advise,
    checks,
    situation,
    times_words,
)
from iobench.analysis.rules import RULES, found
from iobench.analysis.sizing import Feeds, Supply, cost, feeds, scale
from iobench.analysis.sizing import supplies as host_supplies
from iobench.result import Finding, Result
from iobench.trial import Trial

_GRAVEST_FIRST = ("problem", "warning", "info")


@dataclass(frozen=True, slots=True)
class Analysis:
    """The analysis of one run.

    Attributes:
        loops: training loops; ``loop`` is the one of which the verdict speaks.
        known: capacities of that loop's parts; ``now`` its situation.
        advice: what to change, best first.
        checks: loops beside what was predicted of them.
        findings: causes of the loss and qualifications; one is primary.
        confidence: None where there is no training loop.
        feeds: accelerators fed; None where nothing of that was measured.
        summary: the same as ``result.json`` stores it.
    """

    result: Result
    loops: Sequence[Loop]
    loop: Loop | None
    known: Capacities
    now: Situation | None
    advice: Advice
    checks: Sequence[Check]
    findings: tuple[Finding, ...]
    confidence: verdict.Confidence | None
    feeds: Feeds | None
    supplies: Sequence[Supply]
    verdict: str
    summary: Mapping[str, Any]


def analyse(result: Result, group: str | None = None) -> Analysis:
    """Everything that follows from a result's trials, for its leading loop or that of ``group``."""
    every = loops(result.trials)
    loop = leading([one for one in every if group in (None, one.group)])
    known = {one.group: capacities(result, one, every) for one in every}
    own = known[loop.group] if loop is not None else capacities(result, None, every)
    now = situation(result, own, loop)
    advice = advise(now) if now is not None else Advice()
    found_causes = [f for one in every for f in causes.of_loop(one, known[one.group])]
    made = [*found_causes, *causes.watched(result.trials), *causes.of_probes(result)]
    made += causes.first_batches(result.trials)
    made += [*_sharing(result.trials), *qualifiers(result, every), *beyond(result)]
    primary = _primary(made, loop)
    if loop is not None and primary is not None:
        advice = _with_static(advice, loop, primary, found_causes, result, own)
    told = tuple(_told(finding, finding is primary, advice, loop) for finding in made)
    parts = host_supplies(result, own, loop)
    is_fed = loop is not None or any(one.samples_per_s for one in parts)
    fed = feeds(parts, loop, advice) if is_fed else None
    stored = _stored(result, every)
    done = any(trial.status == "done" for trial in result.trials)
    said = verdict.without_loop(stored, done)
    if loop is not None and loop.farthest:
        said = verdict.of_loop(loop, told, named=len(every) > 1)
    sure = verdict.confidence(loop, told) if loop is not None else None
    found_checks = checks(every, known)
    summary = {
        "verdict": said,
        "confidence": str(sure) if sure is not None else None,
        **_headline(loop),
        **stored,
        "recommendations": [change.as_dict() for change in advice.changes],
        "without_effect": list(advice.without_effect),
        "not_measured": list(advice.not_measured),
        "predictions": [check.as_dict() for check in found_checks],
        "feeds": fed.as_dict() if fed is not None else None,
        "mlperf_storage": [mark.as_dict() for mark in pass_marks(result, every)],
        **_asked(result, own, loop),
    }
    return Analysis(
        *(result, every, loop, own, now, advice, found_checks, told, sure, fed, parts),
        verdict=said,
        summary=summary,
    )


def summarised(result: Result) -> Result:
    """The result with its summary and findings."""
    made = analyse(result)
    return replace(result, summary=made.summary, findings=made.findings)


def result_lines(summary: Mapping[str, Any]) -> list[str]:
    """The verdict, the first recommendation and the confidence, for a terminal."""
    said = [str(summary["verdict"])]
    for change in summary.get("recommendations", ())[:1]:
        gain = change["gain"]
        more = "gain not predicted"
        if gain:
            more = f"{gain['median']:.2f} times, {change['basis']}"
        said.append(f"First change: {change['action']} ({more}); iobench advise RUN_DIR lists all.")
    if summary.get("confidence"):
        said.append(f"Confidence: {summary['confidence']}")
    return said


def recommendation_words(change: Recommendation) -> str:
    """``Use 2 loader workers instead of 1: 1.60 times (1.45 to 1.76), predicted``."""
    if change.gain is None:
        return f"{change.action}: gain not predicted"
    return f"{change.action}: {times_words(change.gain)}, {change.basis}"


def how_words(change: Recommendation) -> list[str]:
    """How to make the change: keys of iobench's config, a command, a script's argument."""
    said = []
    if change.command:
        said.append(change.command)
    elif change.config:
        keys = [f"--set {quote(f'{key}={_yaml(value)}')}" for key, value in change.config.items()]
        said.append(f"iobench: {' '.join(keys)}")
    if change.code:
        said.append(f"PyTorch: {change.code}" if "DataLoader" in change.code else change.code)
    return said


def checked_words(found_checks: Sequence[Check], group: str) -> str:
    """How far predictions were off for loops that were measured."""
    errors = [abs(c.error) for c in found_checks if c.group == group and c.error is not None]
    if not errors:
        return "No measured loop tests the predictions: add its loader under loaders."
    many = f"{len(errors)} measured loop{'s' * (len(errors) != 1)}"
    if max(errors) <= ALLOWED:
        return f"Predictions were checked on {many}: within {ALLOWED * 100:.0f} %."
    return f"Predictions were checked on {many}: off by up to {max(errors) * 100:.0f} %."


def _primary(found_all: Sequence[Finding], loop: Loop | None) -> Finding | None:
    """The most important finding: the cause with the largest share, else the grade.

    Causes of the leading loop come before those of others; what qualifies the measurement never.
    """
    named = loop.group if loop is not None else ""
    causes_of = [f for f in found_all if RULES[f.code].kind == "cause" and f.of == named]
    for severity in _GRAVEST_FIRST:
        shared = [f for f in causes_of if f.severity == severity and f.share is not None]
        if shared:
            return max(shared, key=lambda finding: finding.share or 0.0)
    for kind in ("grade", "cause", "start"):
        of_kind = [f for f in found_all if RULES[f.code].kind == kind and f.of in ("", named)]
        if of_kind:
            return of_kind[0]
    return None


def _with_static(
    advice: Advice,
    loop: Loop,
    primary: Finding,
    found_causes: Sequence[Finding],
    result: Result,
    known: Capacities,
) -> Advice:
    """Add changes without a predicted gain: those for the primary cause first."""
    changes = {change.setting: change for change in advice.changes}
    ordered = [primary, *(f for f in found_causes if f is not primary and f.of == loop.group)]
    for finding in ordered:
        more = list(causes.static(loop, finding, result, known))
        if finding.recommendation is not None:
            more.append(finding.recommendation)  # type: ignore[arg-type]
        for change in more:
            if change.setting not in advice.without_effect:
                changes.setdefault(change.setting, change)
    hardware = changes.pop("processors", None)
    kept = [*changes.values(), *([hardware] if hardware is not None else [])]
    named = {change.setting for change in kept}
    return Advice(
        tuple(kept),
        advice.without_effect,
        tuple(name for name in advice.not_measured if name not in named),
    )


def _told(finding: Finding, is_primary: bool, advice: Advice, loop: Loop | None) -> Finding:
    """Add the recommendation as JSON, and the advice as a sentence."""
    change = finding.recommendation
    if is_primary and advice.changes and RULES[finding.code].kind == "cause":
        change = advice.changes[0]  # type: ignore[assignment]
    if change is None:
        return replace(finding, primary=is_primary)
    said = "; ".join([recommendation_words(change), *how_words(change)])  # type: ignore[arg-type]
    as_json = change.as_dict()  # type: ignore[attr-defined]
    return replace(finding, primary=is_primary, advice=said, recommendation=as_json)


def _sharing(trials: Sequence[Trial]) -> list[Finding]:
    """The point whose loader processes slow each other down most."""
    rows = [row for row in supplies.shared(trials) if row["efficiency"]]
    short = [row for row in rows if row["efficiency"]["high"] < 0.8]
    if not short:
        return []
    row = min(short, key=lambda one: float(one["efficiency"]["median"]))
    gives = row["efficiency"]["median"] * row["processes"]
    named = f"{row['loader']} from {row['data']}"
    said = f"{named}: {row['processes']} processes give {gives:.2f} times one"
    return [found("processes-share", said, "plan hosts by what their processes give together")]


def _stored(result: Result, every: Sequence[Loop]) -> dict[str, Any]:
    trials = result.trials
    return {
        "training": [one.as_dict() for one in every],
        "ladder": [one.ladder_dict() for one in every if one.ladder.rungs],
        "scaling": scaling(every),
        "loaders": supplies.loaders(trials),
        "disks": supplies.disks(trials),
        "access": supplies.access_modes(trials),
        "layouts": supplies.layouts(trials),
        "object_stores": supplies.object_stores(trials),
        "watched": supplies.watched(trials),
        "processes": supplies.shared(trials),
    }


def _headline(loop: Loop | None) -> dict[str, float | None]:
    """Medians of the loop of which the verdict speaks."""
    if loop is None:
        names = ("au_mlperf", "au_ceiling", "samples_per_second", "stall_fraction")
        return dict.fromkeys(names)
    rate, share, loss = loop.rate(), loop.au_ceiling, loop.loss
    return {
        "au_mlperf": loop.metric("au_mlperf"),
        "au_ceiling": share.median if share is not None else None,
        "samples_per_second": rate.median if rate is not None and loop.farthest else None,
        "stall_fraction": loss.median if loss is not None else None,
    }


def _asked(result: Result, known: Capacities, loop: Loop | None) -> dict[str, Any]:
    """The sizing and cost that the config asks for."""
    made: dict[str, Any] = {}
    if asked := result.config.get("scale"):
        made["scale"] = scale(result, known, loop, asked).as_dict()
    if asked := result.config.get("cost"):
        made["cost"] = cost(result, loop, asked).as_dict()
    return made


def _yaml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
