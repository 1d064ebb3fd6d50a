"""PURE. What measuring cost what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from iobench.diagnosis.rule import Rule
from iobench.diagnosis.sources import OURS
from iobench.result import Finding
from iobench.trial import Trial
from iobench.words import params_words

AT_MOST = 0.01
"""Of a step, and of one processor."""

LEAST_S = 10.0
"""Of sampling, below which its cost is that of its beginning."""

TIMING = Rule(
    "instrumentation",
    "Timing the steps takes part of them",
    "measurement",
    "warning",
    f"the loop's own clock takes more than {AT_MOST:.0%} of a step",
    "harness_share: the same loop around nothing, beside the steps",
    "steps are too short to be timed one by one: take larger batches",
    OURS,
)
SAMPLING = Rule(
    "sampling",
    "Reading the machine takes processor time",
    "measurement",
    "warning",
    f"samplers take more than {AT_MOST:.0%} of one processor over all trials",
    "sampling_core_share",
    "read it less often (sampling.per_s, watch(per_s=...)), or less of it (samplers)",
    OURS,
)
RULES = (TIMING, SAMPLING)


def findings(trials: Iterable[Trial]) -> Iterator[Finding]:
    """Where the loop's own clock takes more than 1 % of a step, or sampling of a processor."""
    done = [trial for trial in trials if trial.status == "done"]
    if found := _dearest(done):
        share, trial = found
        yield TIMING.found(
            f"timing a step takes {share:.1%} of it in {params_words(trial.kind, trial.params)}"
        )
    if (share := _sampling(done)) > AT_MOST:
        yield SAMPLING.found(f"reading the machine takes {share:.1%} of a processor")


def _dearest(trials: Iterable[Trial]) -> tuple[float, Trial] | None:
    costs = [(float(trial.metrics.get("harness_share") or 0.0), trial) for trial in trials]
    above = [cost for cost in costs if cost[0] > AT_MOST]
    return max(above, key=lambda cost: cost[0]) if above else None


def _sampling(trials: Iterable[Trial]) -> float:
    """Of a processor, over the whole time of all trials: one of half a second has few readings.

    0 where all of them together lasted some seconds: opening what is read was most of it.
    """
    key = "sampling_core_share"
    sampled = [trial for trial in trials if trial.metrics.get(key) is not None]
    whole_s = sum(trial.seconds for trial in sampled)
    spent_s = sum(float(trial.metrics[key]) * trial.seconds for trial in sampled)
    return spent_s / whole_s if whole_s >= LEAST_S else 0.0
