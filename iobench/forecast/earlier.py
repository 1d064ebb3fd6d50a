"""PURE. How long trials took in a run that is there: this one, resumed, or another."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from iobench.forecast.predicted import Predicted
from iobench.trial import Trial, TrialSpec

_KIND = ("loader", "client", "access", "consumer")


class Earlier:
    """Seconds of trials that are done, starts and preparation included."""

    def __init__(self, trials: Iterable[Trial]) -> None:
        points: dict[str, list[float]] = defaultdict(list)
        starts: dict[str, list[float]] = defaultdict(list)
        for trial in trials:
            if trial.status != "done" or trial.seconds <= 0:
                continue
            points[_point(trial.kind, trial.params)].append(trial.seconds)
            measured = trial.metrics.get("seconds")
            if isinstance(measured, (int, float)):
                starts[_like(trial.kind, trial.params)].append(max(0.0, trial.seconds - measured))
        self._points = {point: statistics.median(each) for point, each in points.items()}
        self._starts = {kind: statistics.median(each) for kind, each in starts.items()}

    def told(self, spec: TrialSpec, found: Predicted) -> Predicted:
        """A prediction with the median of the same point's trials in place of an assumption.

        Without such trials those of the same kind and loader say how long it takes to start.
        """
        if (seconds := self._points.get(_point(spec.kind, spec.params))) is not None:
            known = tuple(why for why in found.unknown if not why.startswith("how long"))
            return replace(found, likely_s=seconds, unknown=known, assumed=(_MEASURED,))
        start_s = self._starts.get(_like(spec.kind, spec.params))
        measured_s = spec.params.get("seconds")
        if start_s is None or measured_s is None:
            return found
        return replace(found, likely_s=measured_s + start_s, assumed=(_STARTED,))


_MEASURED = "trials that were measured before take as long again"
_STARTED = "other trials start as fast as those like them did"


def _point(kind: str, params: Mapping[str, Any]) -> str:
    return json.dumps([kind, params], sort_keys=True, default=list)


def _like(kind: str, params: Mapping[str, Any]) -> str:
    named = [str(params.get(key, "")) for key in _KIND]
    return "/".join((kind, *named, str(params.get("data", "")).rpartition("@")[2]))
