"""PURE. Compare two saved runs: did a change help?

The *base* run is compared with the *new* run. Loops are paired by their group. Therefore workers,
loader, access and stored images of a loop may differ between the runs; these differences are
listed. All other trials are paired by their settings.

The rate of each training loop with its farthest input decides the exit code. If no loop is in both
runs, the rate of each loader and probe decides. A setting may have no rate in either run, for
example if the data fit into the loader's read-ahead. Then its next figure decides: the time to the
first batch. All other figures are only listed. ``iobench.analysis.compared_figures`` pairs the
figures, and ``iobench.analysis.regressions`` judges them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dataprep.message_text import counted
from dataprep.name_encoding import escape
from iobench.analysis.analyse import analyse
from iobench.analysis.compared_figures import (
    LOOP_KINDS,
    decides,
    figures_of_both,
    incomplete_words,
    is_loop_rate,
    paired_loops,
    unpaired_words,
)
from iobench.analysis.environment_differences import (
    Difference,
    config_differences,
    environment_differences,
)
from iobench.analysis.loops import Loop, training_loops
from iobench.analysis.recommendations import Recommendation
from iobench.analysis.regressions import (
    Change,
    FigureValues,
    Verdict,
    judge_all,
    repeats_until_significant,
)
from iobench.analysis.repeats import data_name
from iobench.errors import NotComparable
from iobench.results.numbers import exact_percent
from iobench.results.result import STEADY_STATE, Result
from iobench.results.statistics import Estimate

FORCE = "--force compares them nevertheless"
"""The end of the message about runs that are not comparable."""
_WORK_PARAMS = ("model", "image_size", "batch_size")
"""Parameters of a loop that must be equal in both runs, because they change the work per sample."""
_IMAGE_KEYS = ("images", "classes", "seed")
"""Keys of the section ``data`` that must be equal in both runs, if both made their images."""
_MAX_REASONS = 4
"""Maximum number of reasons in an error message."""
_RATES_BY_RULE = (*LOOP_KINDS, "loader")
"""Kinds of trials whose rates depend on the rule of ``Result.rates``."""


@dataclass(frozen=True, slots=True)
class LabelledRun:
    """A saved run, and the name of its folder as its label."""

    label: str
    result: Result

    @property
    def started(self) -> datetime | None:
        """When the run started; None if that is unknown. A time without a zone is read as UTC."""
        try:
            started = datetime.fromisoformat(self.result.started)
        except (TypeError, ValueError):
            return None
        return started if started.tzinfo else started.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LoopChange:
    """A loop that both runs have.

    Attributes:
        group: the name of the loop in the base run.
        changed: the settings that differ: ``workers: 1 -> 2``.
        predicted: the gain that the base run predicted for the recommendations in ``applied``: the
            new rate / the base rate. None without a prediction.
        applied: the actions of the base run's recommendations that the new run follows.
        rate_change: the change of the main rate; None if it was not compared, for example because a
            run has no rate.
        device: the name of the device, or of both devices if they differ; escaped.
    """

    group: str
    changed: tuple[str, ...]
    predicted: Estimate | None
    applied: tuple[str, ...]
    rate_change: Change | None
    device: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of two runs.

    Attributes:
        base: the run that is compared with.
        new: the run that is judged.
        threshold: the smallest change of a figure that matters, as a share of its base value.
        environment: differences of the machines and of their software.
        config: differences of the configs, and of the numbers of hosts.
        loops: the loops that both runs have.
        changes: the changes of all figures that every repeat of both runs has.
        unpaired: texts about what was not compared: settings that only one run has, trials that
            were not completed, and main figures that some repeats lack.
    """

    base: LabelledRun
    new: LabelledRun
    threshold: float
    environment: tuple[Difference, ...]
    config: tuple[Difference, ...]
    loops: tuple[LoopChange, ...]
    changes: tuple[Change, ...]
    unpaired: tuple[str, ...]

    @property
    def machine_differences(self) -> tuple[Difference, ...]:
        """Differences between the machines."""
        return tuple(difference for difference in self.environment if difference.sort == "machine")

    @property
    def deciding(self) -> list[Change]:
        """The changes of the figures that decide the exit code."""
        return [change for change in self.changes if change.decides]

    @property
    def listed(self) -> list[Change]:
        """The changes of all other figures."""
        return [change for change in self.changes if not change.decides]

    @property
    def decided_by(self) -> str:
        """The figures that decide the exit code: ``the rate of each training loop``."""
        if any(change.kind in LOOP_KINDS for change in self.deciding):
            return "the rate of each training loop"
        return "the rate of each loader and probe"

    @property
    def more_repeats(self) -> int:
        """How many more repeats each run needs so that a change can be significant at all.

        0 if a change of any deciding figure can be significant already.
        """
        return repeats_until_significant(self.deciding)

    @property
    def exit_code(self) -> int:
        """1 if a figure that decides has a regression, otherwise 0."""
        return 1 if with_verdict(self.deciding, "regression") else 0

    @property
    def rule_note(self) -> str:
        """A warning if compared rates were measured by different rules; otherwise empty.

        Such runs are compared only with ``--force``.
        """
        if not _differ_in_rule(self.base.result, self.new.result, self.changes):
            return ""
        return (
            f"The rates of {_by_former_rule(self.base, self.new).label} were measured by another "
            "rule: a ratio of rates may show the rules instead of a change."
        )

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        parts = []
        if self._headline_loop is not None:
            parts.append(_loop_words(self._headline_loop))
        parts += self._words_about_deciding
        if self.listed:
            number = counted(len(self.listed), "other figure")
            worse = len(with_verdict(self.listed, "regression"))
            better = len(with_verdict(self.listed, "improvement"))
            parts.append(f"{number} listed, {worse} worse, {better} better")
        return f"{'; '.join(parts)}."

    @property
    def _words_about_deciding(self) -> list[str]:
        """How many of the deciding figures are worse, better and underpowered, in words."""
        number = counted(len(self.deciding), "deciding figure")
        threshold = exact_percent(self.threshold)
        worse = len(with_verdict(self.deciding, "regression"))
        better = len(with_verdict(self.deciding, "improvement"))
        parts = [f"{worse} of {number} worse by {threshold} or more, {better} better"]
        underpowered = len(with_verdict(self.deciding, "underpowered"))
        if self.more_repeats:
            more = counted(self.more_repeats, "more repeat")
            parts.append(
                f"underpowered: with {number} no change can be significant, run at least {more}"
            )
        elif underpowered:
            parts.append(f"{underpowered} underpowered")
        return parts

    @property
    def _headline_loop(self) -> LoopChange | None:
        """The first loop with a regression, or else the first loop whose rates were compared.

        None if no rate of a loop was compared.
        """
        compared = [loop for loop in self.loops if loop.rate_change is not None]
        for loop in compared:
            if loop.rate_change is not None and loop.rate_change.verdict == "regression":
                return loop
        return compared[0] if compared else None


def with_verdict(changes: Sequence[Change], verdict: Verdict) -> list[Change]:
    """Return the changes with a verdict, the largest ratio in either direction first."""
    selected = [change for change in changes if change.verdict == verdict]
    return sorted(selected, key=lambda change: -abs(change.log_worse))


def compare(
    base: LabelledRun, new: LabelledRun, threshold: float, *, force: bool = False
) -> Comparison:
    """Compare every figure that both runs have.

    Args:
        base: the run to compare with.
        new: the run to judge.
        threshold: the smallest change of a figure that matters, as a share of its base value.
        force: whether to compare runs that are not comparable.

    Raises:
        NotComparable: the runs have no figure in common that can decide. Without ``force`` also if
            the runs differ in images, model, input size, batch size, machine, or the rule by which
            rates were measured. Without ``force`` also if no figure of a loop can decide, because
            some repeats of the loops lack their main figure.
    """
    base_result, new_result = base.result, new.result
    pairs = paired_loops(training_loops(base_result.trials), training_loops(new_result.trials))
    complete, incomplete = [], []
    for values in figures_of_both(base_result, new_result, pairs):
        if values.is_complete:
            complete.append(values)
        elif values.is_main:
            incomplete.append(values)
    changes = judge_all(complete, decides(complete), threshold)
    rate_changes = {change.values.group: change for change in changes if is_loop_rate(change)}
    loop_changes = [
        _loop_change(base_result, base_loop, new_loop, rate_changes.get(base_loop.group))
        for base_loop, new_loop in pairs
    ]
    unpaired = list(unpaired_words(base_result, new_result, pairs))
    unpaired += [incomplete_words(values) for values in incomplete]
    comparison = Comparison(
        base=base,
        new=new,
        threshold=threshold,
        environment=environment_differences(base_result.environment, new_result.environment),
        config=config_differences(_config_with_hosts(base_result), _config_with_hosts(new_result)),
        loops=tuple(loop_changes),
        changes=tuple(changes),
        unpaired=tuple(unpaired),
    )
    reasons = _reasons_against(comparison, pairs, incomplete)
    if reasons and not force:
        raise NotComparable(
            f"{new.label} is not comparable with {base.label}: {_shortened(reasons)}; {FORCE}"
        )
    if not comparison.deciding:
        raise NotComparable(
            f"{new.label} and {base.label} have no figure in common that can decide"
        )
    return comparison


def _shortened(reasons: Sequence[str]) -> str:
    """Return the first ``_MAX_REASONS`` reasons as one text, and how many more there are."""
    text = "; ".join(reasons[:_MAX_REASONS])
    if len(reasons) > _MAX_REASONS:
        text += f"; and {len(reasons) - _MAX_REASONS} more"
    return text


def in_order(base: LabelledRun, others: Sequence[LabelledRun]) -> list[LabelledRun]:
    """Return ``base`` and ``others`` in the order of their starts.

    If the start of any run is unknown, the runs keep the order of the arguments.
    """
    runs = [base, *others]
    started = []
    for run in runs:
        if run.started is None:
            return runs
        started.append((run.started, run))
    started.sort(key=lambda start_and_run: start_and_run[0])
    return [run for _, run in started]


def _reasons_against(
    comparison: Comparison, pairs: Sequence[tuple[Loop, Loop]], incomplete: Sequence[FigureValues]
) -> list[str]:
    """Return why two runs are not comparable; empty if they are.

    Args:
        comparison: the comparison of the runs.
        pairs: the loops of both runs.
        incomplete: the main figures that some repeats lack.
    """
    base, new = comparison.base, comparison.new
    reasons = []
    if _differ_in_rule(base.result, new.result, comparison.changes):
        older = _by_former_rule(base, new).label
        reasons.append(
            f"the rates of {older} were measured by another rule, which this version has "
            f"replaced: measure {older} again with this version"
        )
    reasons += _differences_in_work(base.result, new.result, pairs)
    reasons += [str(difference) for difference in comparison.machine_differences]
    if not any(change.decides and change.kind in LOOP_KINDS for change in comparison.changes):
        # The figures of loaders and probes must not replace those of a loop that both runs have.
        reasons += [incomplete_words(values) for values in incomplete if values.kind in LOOP_KINDS]
    return reasons


def _differences_in_work(
    base: Result, new: Result, pairs: Sequence[tuple[Loop, Loop]]
) -> Iterator[str]:
    """Yield a text for each difference in images, model, input size and batch size.

    The images differ if both runs read a source and the sources differ, or if both made their
    images and made them differently. All other images are not compared.
    """
    base_data: Mapping[str, Any] = base.config.get("data") or {}
    new_data: Mapping[str, Any] = new.config.get("data") or {}
    base_source, new_source = base_data.get("source"), new_data.get("source")
    if base_source and new_source and base_source != new_source:
        yield f"data.source: {escape(str(base_source))} -> {escape(str(new_source))}"
    if _has_generated_images(base_data) and _has_generated_images(new_data):
        for key in _IMAGE_KEYS:
            if base_data.get(key) != new_data.get(key):
                yield f"data.{key}: {base_data.get(key)} -> {new_data.get(key)}"
    for base_loop, new_loop in pairs:
        for key in _WORK_PARAMS:
            base_value, new_value = base_loop.params.get(key), new_loop.params.get(key)
            if base_value != new_value:
                yield f"{base_loop.group}: {key} {base_value} -> {new_value}"


def _has_generated_images(data: Mapping[str, Any]) -> bool:
    """Return whether the run made its images itself.

    Args:
        data: the section ``data`` of the run's config.
    """
    return not data.get("source") and not data.get("shards")


def _differ_in_rule(base: Result, new: Result, changes: Sequence[Change]) -> bool:
    """Return whether a compared rate was measured by different rules in the two runs."""
    return base.rates != new.rates and any(change.kind in _RATES_BY_RULE for change in changes)


def _by_former_rule(base: LabelledRun, new: LabelledRun) -> LabelledRun:
    """Return the run whose rates were not measured by the rule of this version.

    The runs have different rules, so at most one has the rule of this version.
    """
    return base if new.result.rates == STEADY_STATE else new


def _loop_words(loop: LoopChange) -> str:
    """Return ``The loop 'g' is faster: 1.58 times the base rate``; empty without a rate."""
    change = loop.rate_change
    if change is None:
        return ""
    rate = f"{change.ratio.ratio:.2f} times the base rate"
    if change.verdict == "improvement":
        return f"The loop {loop.group!r} is faster: {rate}"
    if change.verdict == "regression":
        return f"The loop {loop.group!r} is slower: {rate}"
    unsure = ", with too few repeats to be sure" if change.verdict == "underpowered" else ""
    return f"The loop {loop.group!r} runs at {rate}{unsure}"


def _config_with_hosts(result: Result) -> Mapping[str, Any]:
    """Return the config of a run, with the key ``hosts`` if several hosts measured together.

    The number of hosts is not in a config, but must be listed if it differs.
    """
    if not result.hosts:
        return result.config
    return {**result.config, "hosts": len(result.hosts)}


def _loop_change(
    base: Result, base_loop: Loop, new_loop: Loop, rate_change: Change | None
) -> LoopChange:
    """Return how two loops differ, and the gain that the base run predicted for the differences.

    Args:
        base: the base run, whose recommendations are compared with the changed settings.
        base_loop: the loop of the base run.
        new_loop: the loop of the new run.
        rate_change: the change of the loop's main rate; None if it was not compared.
    """
    changed = _changed_settings(base_loop, new_loop)
    applied: list[Recommendation] = []
    if changed:
        recommended = analyse(base, base_loop.group).advice.changes
        applied = [change for change in recommended if _is_applied(change, base_loop, new_loop)]
    devices = [str(loop.facts.get("device") or "?") for loop in (base_loop, new_loop)]
    return LoopChange(
        group=base_loop.group,
        changed=tuple(changed),
        predicted=_predicted_gain(applied),
        applied=tuple(change.action for change in applied),
        rate_change=rate_change,
        device=escape(" -> ".join(dict.fromkeys(devices))),
    )


def _changed_settings(base_loop: Loop, new_loop: Loop) -> list[str]:
    """Return the settings of a loop that differ between the runs: ``workers: 1 -> 2``.

    Parameters that must be equal in both runs are left out. So are ``group``, which is only a name,
    and ``over``, which repeats the name of the data. Of the inputs, only the farthest ones are
    compared; this difference comes last.
    """
    names = base_loop.params.keys() | new_loop.params.keys()
    names -= {"group", "input", "over", *_WORK_PARAMS}
    changed = []
    for name in sorted(names):
        base_value, new_value = base_loop.params.get(name), new_loop.params.get(name)
        if base_value != new_value:
            changed.append(escape(f"{name}: {base_value} -> {new_value}"))
    if base_loop.farthest != new_loop.farthest:
        changed.append(f"input: {base_loop.farthest} -> {new_loop.farthest}")
    return changed


def _predicted_gain(applied: Sequence[Recommendation]) -> Estimate | None:
    """Return the product of the gains of recommendations; None if none has a gain.

    Its coverage is 0, because the product of the ends of intervals is not an interval of a known
    coverage.
    """
    gains = [change.gain for change in applied if change.gain is not None]
    if not gains:
        return None
    return Estimate(
        math.prod(gain.median for gain in gains),
        math.prod(gain.low for gain in gains),
        math.prod(gain.high for gain in gains),
        coverage=0.0,
        repeats=min(gain.repeats for gain in gains),
    )


def _is_applied(change: Recommendation, base_loop: Loop, new_loop: Loop) -> bool:
    """Return whether the new loop follows a recommendation for the base loop.

    A recommendation of another sharding or image size counts as followed if the loop reads other
    data, even if these are not the recommended data. Recommendations of all other settings than
    those below are never recognised.
    """
    if change.setting == "stage":
        return base_loop.farthest == "store" and new_loop.farthest in ("cold", "warm")
    if change.setting in ("sharding", "resize", "shard_size"):
        return data_name(base_loop.params) != data_name(new_loop.params)
    if change.setting in ("workers", "prefetch", "pin_memory", "loader", "normalise"):
        base_value = base_loop.params.get(change.setting)
        new_value = new_loop.params.get(change.setting)
        return bool(new_value == change.value and base_value != change.value)
    return False
