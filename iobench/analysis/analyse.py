"""PURE. Analyse a result: the one list of findings and recommendations that all output uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any

from iobench.analysis import findings as causes
from iobench.analysis import hosts as over_hosts
from iobench.analysis import side_by_side, supplies, verdict
from iobench.analysis.capacity import Capacities, capacities
from iobench.analysis.ceilings import beyond
from iobench.analysis.evidence import evidence, storage_of, unmeasured_ceilings
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
from iobench.analysis.remedies import REMEDIES, ordered, without_gain
from iobench.analysis.rules import RULES, found
from iobench.analysis.sizing import Feeds, Supply, cost, feeds, scale
from iobench.analysis.sizing import supplies as host_supplies
from iobench.numbers import percent
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
        doubt: why the figures of ``loop`` are no evidence; empty if they are.
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
    doubt: str = ""


def analyse(result: Result, group: str | None = None) -> Analysis:
    """Everything that follows from a result's trials, for its leading loop or that of ``group``.

    Tables and the headline show all completed trials. Findings about causes, predictions and advice
    use only trials that are evidence (``iobench.analysis.evidence``). Of several hosts, they use
    the figures of host 0 while all hosts measure.
    """
    raw, result = result, over_hosts.on_all_hosts(result)
    shown = loops(result.trials)
    proof = evidence(result)
    sound_result = replace(result, trials=proof.trials)
    sound = {loop.group: loop for loop in loops(proof.trials)}
    every = [_sound_or_shown(loop, sound) for loop in shown]
    usable = [loop for loop in every if loop is sound.get(loop.group)]
    loop = leading([one for one in every if group in (None, one.group)])
    known = {one.group: capacities(sound_result, one, usable) for one in every}
    own = known[loop.group] if loop is not None else capacities(sound_result, None, usable)
    is_sound = loop is None or loop in usable
    found_causes = [f for one in usable for f in causes.of_loop(one, known[one.group])]
    made = [*found_causes, *causes.watched(proof.trials), *causes.of_probes(sound_result)]
    made += causes.first_batches(proof.trials)
    made += [*_sharing(proof.trials), *proof.faults, *qualifiers(result, shown)]
    made += over_hosts.findings(raw)
    made += [*beyond(result), *unmeasured_ceilings(storage_of(result, proof.trials), usable)]
    primary = _primary(made, loop)
    now = situation(sound_result, own, loop) if is_sound else None
    advice = _advice(now, loop, primary, found_causes, sound_result, own)
    told = tuple(_told(finding, finding is primary, advice, loop) for finding in made)
    sized = loop if is_sound else None
    parts = host_supplies(sound_result, own, sized)
    ran = side_by_side.counts(usable, found_causes)
    is_fed = ran or sized is not None or any(one.samples_per_s for one in parts)
    measured = side_by_side.measured_rows(ran)
    fed = feeds(parts, sized, advice, measured=measured) if is_fed else None
    stored = _stored(result, every)
    done = any(trial.status == "done" for trial in result.trials)
    said = verdict.without_loop(stored, done, result.environment)
    doubt = proof.doubted.get(loop.group, "") if loop is not None and not is_sound else ""
    if loop is not None and loop.farthest:
        said = verdict.of_loop(loop, told, named=len(every) > 1, doubt=doubt)
    if of_hosts := over_hosts.headline(raw):
        said = f"{of_hosts} Host 0: {said}"
    sure = verdict.confidence(loop, told, doubt) if loop is not None else None
    found_checks = checks(usable, known)
    on_fewer_hosts = [trial for trial in raw.trials if "hosts" in trial.params]
    every_count = replace(raw, trials=(*proof.trials, *on_fewer_hosts))
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
        "accelerators": [count.as_dict() for family in ran for count in family],
        "mlperf_storage": [mark.as_dict() for mark in pass_marks(result, every)],
        **over_hosts.summary(raw),
        **_asked(every_count, own, sized),
    }
    return Analysis(
        *(raw, every, loop, own, now, advice, found_checks, told, sure, fed, parts),
        verdict=said,
        summary=summary,
        doubt=doubt,
    )


def _sound_or_shown(loop: Loop, sound: Mapping[str, Loop]) -> Loop:
    """The loop without the repeats that are no evidence, if each input has others."""
    other = sound.get(loop.group)
    return other if other is not None and other.inputs.keys() == loop.inputs.keys() else loop


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
        return f"Predictions were checked on {many}: within {percent(ALLOWED, 0)}."
    return f"Predictions were checked on {many}: off by up to {percent(max(errors), 0)}."


def _primary(found_all: Sequence[Finding], loop: Loop | None) -> Finding | None:
    """The most important finding: the cause with the largest share, else the grade.

    Causes of the leading loop come before those of others; what qualifies the measurement never.
    """
    named = loop.group if loop is not None else ""
    causes_of = [f for f in found_all if RULES[f.code].kind == "cause" and f.of == named]
    largest = max((finding.share or 0.0 for finding in causes_of), default=0.0)
    for finding in causes_of:
        # What the slowest rank takes longer is in the share of its input, too.
        if finding.code == "uneven-ranks" and (finding.share or 0.0) >= largest / 2:
            return finding
    for severity in _GRAVEST_FIRST:
        shared = [f for f in causes_of if f.severity == severity and f.share is not None]
        if shared:
            return max(shared, key=lambda finding: finding.share or 0.0)
    for kind in ("grade", "cause", "start"):
        of_kind = [f for f in found_all if RULES[f.code].kind == kind and f.of in ("", named)]
        if of_kind:
            return of_kind[0]
    return None


def _advice(
    now: Situation | None,
    loop: Loop | None,
    primary: Finding | None,
    found_causes: Sequence[Finding],
    result: Result,
    known: Capacities,
) -> Advice:
    """Changes with a gain and remedies without one: those for the primary cause first."""
    remedies = REMEDIES.get(primary.code, ()) if primary is not None else ()
    predicted = advise(now, remedies) if now is not None else Advice()
    if loop is None or primary is None:
        return predicted
    more: list[Recommendation] = []
    for finding in [primary, *(f for f in found_causes if f is not primary)]:
        if finding.of == loop.group:
            more += without_gain(loop, finding, result, known, now)
            if isinstance(finding.recommendation, Recommendation):
                more.append(finding.recommendation)
    without_effect = set(predicted.without_effect)
    if "workers" in without_effect:
        without_effect.add("measure_workers")
    more = [change for change in more if change.setting not in without_effect]
    changes = ordered(primary, predicted.changes, more)
    named = {change.setting for change in changes}
    return Advice(
        changes,
        predicted.without_effect,
        tuple(name for name in predicted.not_measured if name not in named),
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
        return dict.fromkeys((*names, "waiting_fraction"))
    rate, share, loss, waiting = loop.rate(), loop.au_ceiling, loop.loss, loop.waiting
    return {
        "au_mlperf": loop.metric("au_mlperf"),
        "au_ceiling": share.median if share is not None else None,
        "samples_per_second": rate.median if rate is not None and loop.farthest else None,
        "stall_fraction": loss.median if loss is not None else None,
        "waiting_fraction": waiting.median if waiting is not None else None,
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
