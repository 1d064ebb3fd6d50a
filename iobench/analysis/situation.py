"""PURE. The setting of a loop in a run, and whether predictions for other settings may be used.

To test the predictions, the rate of the measured loop is predicted from the other measurements
alone. Recommendations use predictions only if this rate is within 20 % of the measured rate, or if
it cannot be predicted (``Situation.is_predictable``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from iobench.analysis.capacity import Capacities, Prediction
from iobench.analysis.loader_setting import Setting, setting_of
from iobench.analysis.loops import FARTHEST, Loop, Source
from iobench.analysis.repeats import Repeats, estimate_as_dict, rate_of
from iobench.results.result import Result
from iobench.results.statistics import Estimate
from iobench.results.trial import Params
from iobench.trials.loader_grid import LoaderGrid, loader_points

ACCURATE = 0.10
"""Maximum error of a prediction for which a report calls predictions accurate."""
_USABLE = 0.20
"""Maximum error of a prediction for which recommendations use predictions."""


@dataclass(frozen=True, slots=True)
class PredictionCheck:
    """The measured rate of a loop with one input, and the rate predicted from other measurements.

    Attributes:
        group: the name of the loop.
        setting: the setting of the loop with this input.
        prediction: the prediction, for which no rate of a loop with a loader was used.
        measured: the measured rate in samples/s.
    """

    group: str
    setting: Setting
    prediction: Prediction
    measured: Estimate

    @property
    def error(self) -> float | None:
        """Predicted rate / measured rate - 1; None without a prediction."""
        predicted = self.prediction.rate
        return None if predicted is None else predicted.median / self.measured.median - 1

    def as_dict(self) -> dict[str, Any]:
        """Return the check as ``result.json`` stores it."""
        return {
            "group": self.group,
            "configuration": self.setting.as_dict(),
            "predicted": estimate_as_dict(self.prediction.rate),
            "limited_by": self.prediction.limit,
            "missing": list(self.prediction.missing),
            "measured": estimate_as_dict(self.measured),
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class Situation:
    """The current setting, from which recommendations start, and everything that was measured.

    Attributes:
        result: the run.
        capacities: the rates of the parts of the loop.
        setting: the setting of the loop with its farthest input, or of the loader if there is no
            loop.
        repeats: the trials with this setting.
        rate: their rate in samples/s.
        config_key: the dotted key of the config that describes the loop or the loader, such as
            ``training.0``.
        loop: the loop; None if only loaders were measured.
        prediction_error: predicted rate of the loop / measured rate - 1; None without a prediction.
    """

    result: Result
    capacities: Capacities
    setting: Setting
    repeats: Repeats
    rate: Estimate
    config_key: str
    loop: Loop | None
    prediction_error: float | None

    @property
    def is_predictable(self) -> bool:
        """Whether recommendations may use predictions.

        They may be used if their error for this loop is at most 20 %, or if they could not be
        tested. A loop that trains on the same CPUs as its workers needs a test, because predictions
        leave out that training and workers compete for the CPUs.
        """
        if self.prediction_error is None:
            return self.loop is None or not self.loop.on_processors
        return abs(self.prediction_error) <= _USABLE

    def limit(self) -> str:
        """Return the part that limits the rate now, as ``Prediction.limit`` has it.

        Empty if it cannot be predicted, or if predictions may not be used.
        """
        prediction = self.capacities.predict(self.setting)
        if prediction.rate is None or not self.is_predictable:
            return ""
        return prediction.limit


def situation(result: Result, capacities: Capacities, loop: Loop | None) -> Situation | None:
    """Return the situation of a loop with stored data; without a loop, of the first loader.

    None if neither has a rate with stored data.

    Args:
        result: the run.
        capacities: the rates of the parts of the loop.
        loop: the loop; None if only loaders were measured.
    """
    if loop is not None:
        return _situation_of_loop(result, capacities, loop)
    for setting, repeats in capacities.loaders.items():
        rate = rate_of(repeats)
        if rate is not None:
            key = f"loaders.{_entry_of_loader(repeats[0].params, result)}"
            return Situation(result, capacities, setting, repeats, rate, key, None, None)
    return None


def check_predictions(
    loops: Sequence[Loop], capacities_by_group: Mapping[str, Capacities]
) -> list[PredictionCheck]:
    """Compare the rates of loops over stored data with their predictions.

    There is a check for each input that reads samples.

    Args:
        loops: the loops.
        capacities_by_group: the rates of the parts of each loop, by its group.
    """
    checks = []
    for loop in loops:
        for source in FARTHEST:
            rate = loop.rate(source) if source in loop.inputs else None
            if rate is not None:
                checks.append(_check(loop, capacities_by_group[loop.group], source, rate))
    return checks


def _entry_of_loader(params: Params, result: Result) -> int:
    """Return the index, from 0, of the first entry under ``loaders`` that measures a loader.

    It is 0 if no entry is known to measure it.

    Args:
        params: the parameters of the loader's trials.
        result: the run.
    """
    point = {key: value for key, value in params.items() if key != "drop_caches"}
    for index, entry in enumerate(result.config.get("loaders") or ()):
        # An entry is not valid here if the package of its loader is not installed.
        with suppress(ValidationError):
            if point in loader_points(LoaderGrid.model_validate(entry)):
                return index
    return 0


def _situation_of_loop(result: Result, capacities: Capacities, loop: Loop) -> Situation | None:
    """Return the situation of a loop; None if it has no rate with stored data."""
    source = loop.farthest
    rate = loop.rate()
    if source is None or rate is None:
        return None
    check = _check(loop, capacities, source, rate)
    return Situation(
        result=result,
        capacities=capacities,
        setting=check.setting,
        repeats=loop.trials,
        rate=rate,
        config_key=f"training.{loop.index}",
        loop=loop,
        prediction_error=check.error,
    )


def _check(loop: Loop, capacities: Capacities, source: Source, rate: Estimate) -> PredictionCheck:
    """Compare the measured rate of a loop with its prediction.

    Args:
        loop: the loop.
        capacities: the rates of its parts.
        source: the input with which the rate was measured.
        rate: the measured rate in samples/s.
    """
    setting = setting_of(loop.inputs[source][0].params, source, loop.devices)
    prediction = capacities.predict(setting, from_loops=False)
    return PredictionCheck(loop.group, setting, prediction, rate)
