"""One trial of the layout probe."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial

from iobench.machine.coldness import judge_remote
from iobench.machine.page_cache import WHEN_NEEDED, prepared
from iobench.probes.disk.engine import Lane, Tally, drive
from iobench.probes.layout.items import Item, find_items
from iobench.probes.layout.readers import reading
from iobench.stats import quantiles
from iobench.trial import Context, Metrics, Outcome, Place, TrialSpec

_READS_PER_S = 100_000  # more than Python can do: bounds what is prepared


def run(spec: TrialSpec, context: Context) -> Outcome:
    """Read shards, records or files with several processes, for a while; nothing is decoded.

    Process ``i`` of ``k`` reads items ``i, i + k, ...``. Cold trials read each item once and
    end with the last; others go round.

    Raises:
        TrialFailed: the place holds something else, or less than it says.
        DatasetError, SourceError, StoreError: it cannot be read.
    """
    params = spec.params
    place = context.places[params["data"]]
    at_most = int(params["seconds"] * _READS_PER_S) + params["parallelism"]
    items = find_items(place, params["access"], at_most=at_most, seed=spec.repeat)
    drop = params.get("drop_caches", WHEN_NEEDED)
    cache = None if place.is_remote else prepared(params["cache"], items.paths(place), drop)
    # More processes than items would only be started.
    shares = [items.reads[i :: params["parallelism"]] for i in range(params["parallelism"])]
    shares = [share for share in shares if share]
    rounds = 1 if params["cache"] == "cold" and not place.is_remote else at_most
    lanes = [
        Lane(
            partial(reading, place, share[0]),
            itertools.chain.from_iterable(itertools.repeat(share, rounds)),
        )
        for share in shares
    ]
    tally = drive(
        lanes,
        context.clock,
        params["seconds"],
        lambda done_bytes: context.progress(done_bytes, "bytes"),
    )
    if cache is None:
        cold = judge_remote(params["cache"])
    else:
        cold = cache.judged(tally.physical_ratio, sequential=items.reads[0].whole)
    return Outcome(_metrics(tally, shares, place), cold)


def _metrics(tally: Tally, shares: Sequence[Sequence[Item]], place: Place) -> Metrics:
    samples = sum(
        samples_of(share, count) for share, count in zip(shares, tally.operations, strict=True)
    )
    seconds = max(tally.seconds, 1e-9)
    latency = quantiles(tally.latencies_s)
    remote = "read through dataprep's store, which checks whole objects against their MD5"
    return {
        "mb_per_s": tally.bytes / 1e6 / seconds,
        "samples_per_s": samples / seconds,
        "bytes": tally.bytes,
        "seconds": tally.seconds,
        "samples": samples,
        "operations": len(tally.latencies_s),
        "processes": len(shares),
        **_object_bytes(tally, shares),
        **{f"latency_s_{name}": value for name, value in latency.items()},
        "notes": [remote] if place.is_remote else [],
    }


def _object_bytes(tally: Tally, shares: Sequence[Sequence[Item]]) -> Metrics:
    """The mean size of what was read, where that were whole shards or files."""
    whole = all(item.whole for share in shares for item in share)
    return {"mean_object_bytes": tally.bytes / len(tally.latencies_s)} if whole else {}


def samples_of(share: Sequence[Item], reads: int) -> int:
    """Samples in the first ``reads`` items of a share that is read round and round."""
    rounds, rest = divmod(reads, len(share))
    once = sum(item.samples for item in share) if rounds else 0
    return rounds * once + sum(item.samples for item in share[:rest])
