"""What a training loop found, on one device or on several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Protocol

from iobench.clock import Clock
from iobench.loops.drive import LoopTimes
from iobench.loops.figures import harness_metrics, loop_metrics
from iobench.loops.overhead import step_cost_s
from iobench.stats import quantiles
from iobench.stored import Stored
from iobench.trial import Cold, Outcome


class Computed(Protocol):
    """What a reader must know of who computed; see ``Consumer``."""

    @property
    def emulated(self) -> bool:
        """Whether no real work was done."""
        ...

    @property
    def device(self) -> str:
        """What it ran on."""
        ...

    @property
    def precision(self) -> str:
        """Of its arithmetic."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """And the rest."""
        ...


def loop_outcome(
    times: LoopTimes,
    computed: Computed,
    params: Mapping[str, Any],
    clock: Clock,
    *,
    notes: Sequence[str],
    more: Mapping[str, Any] = MappingProxyType({}),
    data: Stored | None = None,
    cold: Cold | None = None,
) -> Outcome:
    """Figures and series of a loop; ``notes`` and ``more`` metrics are those of its loader."""
    metrics = {**loop_metrics(times, data), **more}
    metrics |= {f"step_s_{name}": value for name, value in quantiles(times.step_s).items()}
    metrics |= harness_metrics(params, step_cost_s(clock), times)
    metrics |= {
        "steps": len(times.step_s),
        "wait_share": sum(times.wait_s) / times.seconds,
        "au_mlperf": times.au_mlperf,
        "emulated": computed.emulated,
        "device": computed.device,
        "precision": computed.precision,
        "notes": [*computed.notes, *notes],
    }
    ends = tuple(accumulate(times.step_s))
    series = {
        "step_end_s": ends,
        "wait_s": times.wait_s,
        "compute_s": times.compute_s,
        "time_s": tuple(times.begun_s + end_s for end_s in ends),
    }
    return Outcome(
        metrics=metrics,
        cold=cold,
        series=series,
        origin_s=times.asked_s,
        counted_s=times.counted_s,
    )
