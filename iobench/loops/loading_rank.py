"""One process of several that load at once; the trial's own process starts it and waits."""

from __future__ import annotations

from dataclasses import asdict

from iobench.loops.epochs import Epochs, epoch_limit
from iobench.loops.gate import wait_at
from iobench.loops.loading import driven
from iobench.loops.opening import built, loader_settings
from iobench.machine import page_cache
from iobench.trial import Context, Outcome, TrialSpec


def run(spec: TrialSpec, context: Context) -> Outcome:
    """Its share of the samples. Its times are metrics: ``side_by_side`` makes figures of them.

    ``params`` are those of the trial, with ``rank``, ``world_size`` and ``gate``.
    """
    params = spec.params
    settings = loader_settings(params)
    place = context.places[params["data"]] if params["data"] else None
    loader = built(params["loader"], place, settings, context)
    epochs = Epochs(loader, context.clock, epoch_limit(params))
    before = page_cache.physical_read_bytes()
    wait_at(params["gate"], settings.rank, settings.world_size)
    try:
        times = driven(epochs, settings, params, context, context.clock)
    finally:
        loader.close()
    after = page_cache.physical_read_bytes()
    return Outcome(
        {
            "times": asdict(times),
            "physical_bytes": None if before is None or after is None else after - before,
            "notes": list(loader.notes),
        }
    )
