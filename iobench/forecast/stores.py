"""PURE. What trials of object stores send and move, and how long they last.

The counts follow ``probes.object_store`` step by step: the bucket is asked for, two listings look
for what is to be read, each connection is opened by one byte, and requests go on until time or
their number is up.
"""

from __future__ import annotations

from iobench.forecast.bounds import Bounds, up_to
from iobench.forecast.facts import Facts
from iobench.forecast.predicted import Predicted
from iobench.forecast.rates import rates_of
from iobench.probes.object_store import pool
from iobench.requests import STORED, Requests
from iobench.trial import Params

START_S = 1.0
COPYING = frozenset({"s5cmd", "awscli"})
"""Clients of this package that copy whole objects: they list, and may read a large one in parts."""

_COPIED_BYTES = 5 * 2**20
_BEFORE = Requests(gets=1, lists=2)
_ASSUMED = f"an object-store trial takes {START_S:g} s beside the seconds that it measures"


def objects(params: Params, facts: Facts, timeout_s: float) -> Predicted:
    """Requests of one kind; what was written is deleted, which costs nothing."""
    store, streams = f"store/{params['store']}", params["connections"]
    # Billed where nobody could find out.
    amazon = store not in facts.stores or facts.stores[store].is_amazon
    rates = rates_of(is_amazon=amazon)
    possible = rates.most_requests(streams, params["seconds"], params["object_bytes"])
    most = min(max(params["max_requests"], streams), int(possible))
    copying = params["client"] in COPYING
    if copying:
        # Whole rounds over all objects, the first of them in any case.
        most += pool.to_get(params["object_bytes"], params["pool_bytes"]).count
    before = _BEFORE + Requests(gets=streams)
    one, size = _one(params), float(params["object_bytes"])
    each = one
    if copying:
        each += Requests(gets=1 + params["object_bytes"] // _COPIED_BYTES, lists=1)
    moved = Bounds(0.0, most * size)
    reads = params["operation"] in ("get", "range_get")
    return Predicted(
        seconds=Bounds(0.0, timeout_s),
        likely_s=params["seconds"] + START_S,
        store_read=moved.plus(up_to(streams)) if reads else up_to(streams),
        store_written=Bounds() if reads else moved,
        store=store,
        requests=(before + one, before + each * most),
        assumed=(_ASSUMED, rates.words),
    )


def to_be_read(params: Params) -> pool.Objects | None:
    """The objects that a trial reads, put by the first that finds them missing."""
    size, pool_bytes = params["object_bytes"], params["pool_bytes"]
    if params["operation"] == "get":
        return pool.to_get(size, pool_bytes)
    if params["operation"] == "range_get":
        return pool.to_range(size, pool_bytes)
    return None


def put(found: pool.Objects, store: str, bytes_per_s: float) -> Predicted:
    """Those objects stored, or all of them there already from a run that was stopped."""
    size = float(found.bytes * found.count)
    return Predicted(
        seconds=Bounds(0.0, None),
        likely_s=size / bytes_per_s,
        store_written=up_to(size),
        store=store,
        requests=(Requests(), STORED * found.count),
        assumed=(f"a store takes {bytes_per_s / 1e6:g} MB/s",),
    )


def _one(params: Params) -> Requests:
    """What one operation costs."""
    if params["operation"] in ("get", "range_get"):
        return Requests(gets=1)
    if params["operation"] == "multipart":
        return Requests(puts=-(-params["object_bytes"] // params["part_bytes"]) + 2)
    return Requests(puts=1)
