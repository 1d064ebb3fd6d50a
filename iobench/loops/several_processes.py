"""Loaders in several processes at once, as the ranks of a job on one machine: what they share.

Each has a share of the samples and workers of its own. This process counts the bytes and puts the
page cache into its state before any of them begins; it loads nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from iobench.loops.caching import LoopCache, prepared
from iobench.loops.figures import harness_metrics, loop_metrics
from iobench.loops.gate import gate
from iobench.loops.opening import built, check_shares, loader_settings
from iobench.loops.overhead import step_cost_s
from iobench.loops.ranks import run_ranks
from iobench.loops.side_by_side import side_by_side
from iobench.loops.together import times_of
from iobench.stored import Stored, stored
from iobench.trial import Cold, Context, Outcome, Params, Place, TrialSpec

RANK = "loading-rank"


def run(params: Params, context: Context) -> Outcome:
    """The trial, by ``processes`` of its params.

    Raises:
        Unavailable: the loader does not share its samples among processes.
        TrialFailed: a process failed, or they were not at it at the same time.
    """
    count = int(params["processes"])
    place = context.places[params["data"]] if params["data"] else None
    data = _data(params, place, context)
    cache = prepared(params["cache"], place, data) if place is not None and data else None
    with gate() as descriptors:
        told = {**params, "world_size": count, "gate": list(descriptors)}
        outcomes = run_ranks(
            [TrialSpec(RANK, {**told, "rank": number}) for number in range(count)],
            context.places,
            environment=dict(os.environ),
            keep=descriptors,
            progress=context.progress,
        )
    found = [outcome.metrics for outcome in outcomes]
    times = [times_of(one["times"]) for one in found]
    both = side_by_side(times)
    whole = both.whole
    metrics = {
        **loop_metrics(whole, data),
        **harness_metrics(params, step_cost_s(context.clock), times[0]),
        "process_samples_per_s": list(both.samples_per_s),
        "process_evenness": both.evenness,
        "notes": list(dict.fromkeys(str(note) for one in found for note in one["notes"])),
    }
    read = min(whole.taken, data.samples) if data and params.get("epochs") else whole.taken
    return Outcome(
        metrics=metrics,
        cold=_cold(cache, params["loader"], read, found),
        origin_s=whole.asked_s,
        counted_s=whole.counted_s,
    )


def _data(params: Params, place: Place | None, context: Context) -> Stored | None:
    """What is there to read; no sample is read for it."""
    loader = built(params["loader"], place, loader_settings(params), context)
    try:
        check_shares(loader, params["loader"], "processes", "processes: 1")
        return stored(place, loader.reads) if place is not None and loader.reads else None
    finally:
        loader.close()


def _cold(
    cache: LoopCache | None, loader: str, samples: int, found: Sequence[Mapping[str, Any]]
) -> Cold | None:
    """What the cache did for all of them, by the bytes that storage gave to any."""
    if cache is None:
        return None
    physical = [one["physical_bytes"] for one in found]
    return cache.judged_by(None if None in physical else sum(physical), loader, samples)
