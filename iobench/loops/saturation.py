"""PURE. Whether more workers are worth a trial."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from iobench.stats import median
from iobench.trial import Trial, TrialSpec


def saturated(spec: TrialSpec, trials: Iterable[Trial], gain: float) -> str:
    """Why a loader is not tried with so many workers; empty where it is to be tried.

    Among the trials so far that differ from ``spec`` in fewer workers alone, some raise of the
    workers brought less than ``gain`` of the rate, medians of the repeats that there are. Each
    round decides anew: what one noisy trial kept from the first is in the next. One worker in the
    place of none moves the work to another process, and says nothing about a second one.
    """
    workers = spec.params.get("workers")
    if spec.kind != "loader" or not isinstance(workers, int):
        return ""
    alike = {**spec.params, "workers": None}
    rates: dict[int, list[float]] = {}
    for trial in trials:
        fewer = trial.params.get("workers")
        if (
            trial.kind == spec.kind
            and trial.status == "done"
            and {**trial.params, "workers": None} == alike
            and isinstance(fewer, int)
            and 0 < fewer < workers
        ):
            rates.setdefault(fewer, []).append(float(trial.metrics.get("samples_per_s", 0.0)))
    for few, more in pairwise(sorted(rates)):
        before = median(rates[few])
        brought = median(rates[more]) / before - 1 if before > 0 else gain
        if brought < gain:
            return (
                f"{more} workers brought {brought:+.1%} over {few}: more are not tried "
                "(more_workers_gain)"
            )
    return ""
