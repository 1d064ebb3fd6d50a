"""PURE. A trial's outcome with what the machine did meanwhile, on the clock of its steps."""

from __future__ import annotations

from dataclasses import replace

from iobench.machine_use import machine_use
from iobench.process_use import process_use
from iobench.samplers.recorder import Samples
from iobench.trial import Outcome


def sampled(outcome: Outcome, samples: Samples, begun_s: float) -> Outcome:
    """``outcome`` and its samples, timed from where its series are; else from ``begun_s``.

    All clocks are the machine's monotonic one, which processes share. What was read before that
    moment has a negative time: opening, warming up. Of a loop the metrics say as well what its
    processes took while its steps counted, and what the whole machine did then.
    """
    origin_s = begun_s if outcome.origin_s is None else outcome.origin_s
    times = [
        time_s - origin_s for time_s in samples.columns.get("time_s", ()) if time_s is not None
    ]
    columns = {**samples.columns, "time_s": times} if times else {}
    took = {}
    if outcome.counted_s is not None:
        counted = outcome.metrics.get("samples", 0)
        took = process_use(columns, *outcome.counted_s, counted, outcome.pauses)
        took |= machine_use(columns, *outcome.counted_s, outcome.pauses)
    metrics = {
        **outcome.metrics,
        **took,
        "sampling_core_share": samples.core_share,
        "sampling_notes": list(samples.notes),
    }
    return replace(outcome, metrics=metrics, samples=columns)
