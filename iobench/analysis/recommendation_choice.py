"""PURE. Choose the changes to recommend, each with its measured or predicted gain.

The gain of a change is measured if the run measured a loop with the change and a loop without it.
In a run without loops, the rates of a loader with the change and without it are enough. Otherwise
the gain is the ratio of two predictions. An error that both predictions have cancels in this ratio.

Changes are chosen one after the other, each on top of the changes before it. Remedies of the
primary cause come first. The choice ends if no further change gains 5 % or more with certainty
(``is_worthwhile``). The texts of all recommendations are in ``iobench.analysis.recommendations``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from iobench.analysis import recommendations
from iobench.analysis.candidates import AUGMENTATIONS, Candidate, candidates, settings_of
from iobench.analysis.loader_setting import Setting
from iobench.analysis.recommendations import Basis, Recommendation
from iobench.analysis.repeats import rate_ratio
from iobench.analysis.situation import Situation
from iobench.analysis.worker_scaling import FEWEST_COUNTS, REACH, extrapolated, rate_at_workers
from iobench.results.numbers import size
from iobench.results.statistics import Estimate

MIN_GAIN = 1.05
"""Minimum gain of a change that is recommended."""
_MIN_LOW = 1.005
"""Minimum lower end of a gain's interval. A smaller one would be shown as 1.00: no gain."""
_EQUAL = 1.02
"""Gains of two values of a setting that differ by at most this factor count as equal."""
_NEARLY_EQUAL = 1.05
"""Of changes whose gains differ by at most this factor, the change with the least effort is
preferred."""
_NEW_SHARDS = {"sharding", "resize", "shard_size"}
"""Settings that need new shards. At most one of them is recommended, so that the shards have to be
written only once."""


@dataclass(frozen=True, slots=True)
class Gain:
    """The gain of a change, and whether it was measured or predicted.

    Attributes:
        factor: the rate after the change / the rate before it.
        basis: ``measured`` or ``predicted``.
    """

    factor: Estimate
    basis: Basis


@dataclass(frozen=True, slots=True)
class _Option:
    """A possible change with its gain."""

    candidate: Candidate
    gain: Gain

    @property
    def factor(self) -> float:
        """The median of the gain."""
        return self.gain.factor.median

    @property
    def setting(self) -> str:
        """The setting that changes."""
        return self.candidate.setting


@dataclass(frozen=True, slots=True)
class Advice:
    """The recommended changes, and the settings that are not worth a change.

    Attributes:
        changes: the recommendations in the order in which they were chosen. Each gain assumes that
            the changes before it are made.
        without_effect: settings of which another value was judged, and none gains enough.
        not_measured: settings of which no other value has a measured or predicted gain.
    """

    changes: tuple[Recommendation, ...] = ()
    without_effect: tuple[str, ...] = ()
    not_measured: tuple[str, ...] = ()


def advise(situation: Situation, remedies: Sequence[str] = ()) -> Advice:
    """Choose the changes with a gain, one after the other.

    Args:
        situation: the current setting and everything that was measured.
        remedies: settings that can remedy the primary cause; they come before all others.
    """
    changes: list[Recommendation] = []
    now, rate = situation.setting, situation.rate.median
    changed_settings: set[str] = set()
    judged_settings: set[str] = set()
    while True:
        best_values = _best_values(situation, now, remedies)
        judged_settings |= {option.setting for option in best_values}
        worthwhile = [option for option in best_values if is_worthwhile(option.gain.factor)]
        options = [option for option in worthwhile if option.setting not in changed_settings]
        if not options:
            break
        chosen = _easiest_of_the_best(options, remedies)
        rate *= chosen.factor
        changes.append(_recommended(situation, chosen, rate))
        now = chosen.candidate.after
        if chosen.setting in _NEW_SHARDS:
            changed_settings |= _NEW_SHARDS
        else:
            changed_settings.add(chosen.setting)
    more_cpus = _more_cpus(situation, now, rate)
    if more_cpus is not None:
        changes.append(more_cpus)
    names = settings_of(situation)
    useless_settings = judged_settings - {change.setting for change in changes}
    # A setting of new shards may still gain, although other new shards are recommended already.
    useless_settings -= {option.setting for option in worthwhile}
    return Advice(
        tuple(changes),
        without_effect=tuple(name for name in names if name in useless_settings),
        not_measured=tuple(name for name in names if name not in judged_settings),
    )


def is_worthwhile(gain: Estimate) -> bool:
    """Return whether a gain is at least 5 %, and its whole interval is above 1."""
    return gain.median >= MIN_GAIN and gain.low >= _MIN_LOW


def gain_of(situation: Situation, before: Setting, after: Setting) -> Gain | None:
    """Return the gain of a change; None if it was not measured and cannot be predicted.

    Args:
        situation: the current setting and everything that was measured.
        before: the setting before the change.
        after: the setting after the change.
    """
    measured = _measured_gain(situation, before, after)
    if measured is not None:
        return Gain(measured, "measured")
    if not situation.is_predictable:
        return None
    capacities = situation.capacities
    predicted_before, predicted_after = capacities.predict(before), capacities.predict(after)
    rate_before, rate_after = predicted_before.rate, predicted_after.rate
    if rate_before is None or rate_after is None:
        return None
    both_decode = predicted_before.limit == predicted_after.limit == "decode"
    if both_decode and situation.loop is not None:
        # The ratio of two loaders in the same rounds of repeats has a smaller error than the ratio
        # of two predictions.
        within_rounds = rate_ratio(
            capacities.loaders.get(replace(after, source="warm", devices=1), ()),
            capacities.loaders.get(replace(before, source="warm", devices=1), ()),
        )
        if within_rounds is not None:
            return Gain(within_rounds, "predicted")
    if predicted_after.limit == "device" and before == situation.setting:
        # The rate after the change is the measured rate of the device. An error of the predicted
        # rate before the change would not cancel, so the measured rate is used there, too.
        rate_before = situation.rate
    return Gain(_predicted_gain(rate_before, rate_after, situation.prediction_error), "predicted")


def _measured_gain(situation: Situation, before: Setting, after: Setting) -> Estimate | None:
    """Return the ratio of two measured rates; None if no round of repeats has both."""
    capacities = situation.capacities
    measured = capacities.loops if situation.loop is not None else capacities.loaders
    repeats_before = measured.get(before, ())
    if before == situation.setting:
        repeats_before = situation.repeats
    return rate_ratio(measured.get(after, ()), repeats_before)


def _predicted_gain(before: Estimate, after: Estimate, prediction_error: float | None) -> Estimate:
    """Return the ratio of two predicted rates.

    Args:
        before: the rate before the change.
        after: the rate after it.
        prediction_error: the error of the prediction for the current setting; None if it could not
            be tested. The interval of the ratio is wide enough for this error.
    """
    factor = after.median / before.median
    error = 1 + abs(prediction_error or 0.0)
    return Estimate(
        factor,
        min(after.low / before.high, factor / error),
        max(after.high / before.low, factor * error),
        coverage=0,
        repeats=min(after.repeats, before.repeats),
    )


def _best_values(situation: Situation, now: Setting, remedies: Sequence[str]) -> list[_Option]:
    """Return one option for each setting: the first value whose gain is within 2 % of the best.

    The first value is the one that ``candidates`` prefers. Leaving out an augmentation is proposed
    only as a remedy, because it changes the images that the model sees.

    Args:
        situation: the current setting and everything that was measured.
        now: the setting with the changes that were chosen so far.
        remedies: settings that can remedy the primary cause.
    """
    by_setting: dict[str, list[_Option]] = {}
    for candidate in candidates(situation, now):
        if candidate.setting in AUGMENTATIONS and candidate.setting not in remedies:
            continue
        gain = gain_of(situation, now, candidate.after)
        if gain is not None:
            by_setting.setdefault(candidate.setting, []).append(_Option(candidate, gain))
    best_values = []
    for options in by_setting.values():
        best_factor = max(option.factor for option in options)
        best = [option for option in options if option.factor * _EQUAL >= best_factor]
        best_values.append(best[0])
    return best_values


def _easiest_of_the_best(options: Sequence[_Option], remedies: Sequence[str]) -> _Option:
    """Return the change with the least effort, of those whose gain is nearly the largest.

    If some of the changes are remedies, only these are considered.

    Args:
        options: the changes; at least one.
        remedies: settings that can remedy the primary cause.
    """
    preferred = [option for option in options if option.setting in remedies] or options
    best_factor = max(option.factor for option in preferred)
    nearly_best = [option for option in preferred if option.factor * _NEARLY_EQUAL >= best_factor]
    return min(nearly_best, key=lambda option: (option.candidate.effort, -option.factor))


def _recommended(situation: Situation, option: _Option, rate: float) -> Recommendation:
    """Return the recommendation of a change with its gain and its evidence.

    Args:
        situation: the current setting and everything that was measured.
        option: the change.
        rate: samples/s after the change.
    """
    after, gain = option.candidate.after, option.gain
    prediction = situation.capacities.predict(after)
    why = prediction.basis
    if gain.basis == "measured":
        why = "both settings were measured"
    elif after.workers != situation.setting.workers:
        why += _memory_words(situation, after)
    return replace(
        option.candidate.recommendation,
        gain=gain.factor,
        basis=gain.basis,
        rate=rate,
        limit=prediction.limit,
        why=why,
    )


def _memory_words(situation: Situation, after: Setting) -> str:
    """Return how much memory the loader takes after a change; empty if it is unknown."""
    loader_bytes = situation.capacities.memory_of(after)
    memory_bytes = situation.capacities.memory_bytes
    if not loader_bytes or not memory_bytes:
        return ""
    return f"; takes about {size(loader_bytes)} of {size(memory_bytes)} of memory"


def _more_cpus(situation: Situation, now: Setting, rate: float) -> Recommendation | None:
    """Recommend more CPUs, if decoding is the limit and every CPU has a worker.

    The gain is extrapolated from measured rates. Only numbers of workers up to the number of CPUs
    are used, because each of these workers had a CPU of its own. The limits of any extrapolation
    apply (``iobench.analysis.worker_scaling``).

    The result is None if there is no loop, if the rate of its device or the number of CPUs is
    unknown, if the rates do not support a prediction, or if the gain is too small.

    Args:
        situation: the current setting and everything that was measured.
        now: the setting with all changes that were chosen.
        rate: samples/s with these changes.
    """
    capacities, consumption = situation.capacities, situation.capacities.consumption
    if situation.loop is None or consumption is None or not capacities.processors:
        return None
    cpus = int(capacities.processors)
    is_limited_by_cpus = capacities.predict(now).limit == "decode" and now.all_workers >= cpus
    if not situation.is_predictable or not is_limited_by_cpus:
        return None
    measured = capacities.rates_by_workers(now)
    curve = {workers: point for workers, point in measured.items() if 0 < workers <= cpus}
    with_all_cpus = rate_at_workers(curve, cpus, None)
    predicted = _rates_with_more_cpus(curve, cpus)
    if with_all_cpus is None or not predicted:
        return None
    enough_cpus = [
        count for count, point in predicted.items() if point.median >= consumption.median
    ]
    cpus_after = min(enough_cpus) if enough_cpus else max(predicted)
    gain = _gain_of_cpus(with_all_cpus, predicted[cpus_after], consumption, rate)
    if not is_worthwhile(gain):
        return None
    counts = ", ".join(map(str, sorted(curve)))
    change = recommendations.use_more_cpus(
        cpus_after, capacities.processors, is_enough=bool(enough_cpus)
    )
    return replace(
        change,
        gain=gain,
        basis="predicted",
        rate=rate * gain.median,
        limit="device" if enough_cpus else "decode",
        why=f"the curve of {counts} workers on this machine",
    )


def _rates_with_more_cpus(curve: Mapping[int, Estimate], cpus: int) -> dict[int, Estimate]:
    """Return the predicted rates with more CPUs, each of which has a worker.

    Args:
        curve: the measured rates by number of workers, up to the number of CPUs.
        cpus: the number of CPUs of this machine.

    Returns:
        Rates by number of CPUs; empty if the measured rates do not support a prediction.
    """
    if len(curve) < FEWEST_COUNTS:
        return {}
    predicted: dict[int, Estimate] = {}
    for more_cpus in range(cpus + 1, REACH * max(curve) + 1):
        point = extrapolated(curve, more_cpus)
        if point is not None:
            predicted[more_cpus] = point
    return predicted


def _gain_of_cpus(
    before: Estimate, after: Estimate, consumption: Estimate, rate: float
) -> Estimate:
    """Return the gain of more CPUs, which is at most what the rate of the device allows.

    Args:
        before: the loader's rate with all CPUs of this machine.
        after: its rate with more CPUs.
        consumption: the rate of the device.
        rate: the rate of the loop before the change.
    """
    max_gain = consumption.median / rate
    return Estimate(
        min(after.median / before.median, max_gain),
        min(after.low / before.high, max_gain),
        min(after.high / before.low, consumption.high / rate),
        coverage=0.0,
        repeats=after.repeats,
    )
