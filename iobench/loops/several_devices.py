"""A training loop on several devices: a process each, and one loop of all that they tell.

This process counts the steps and puts the page cache into its state before any rank begins; it
holds neither a network nor a batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from iobench.access import Fetched, added, downloaded
from iobench.errors import Unavailable
from iobench.loops.caching import LoopCache, prepared
from iobench.loops.counting import classes_of, steps_of, whole_batches
from iobench.loops.devices import Devices
from iobench.loops.in_a_row import epoch_of, records
from iobench.loops.opening import built, check_frameworks, check_shares, loader_settings
from iobench.loops.outcome import loop_outcome
from iobench.loops.ranks import run_ranks
from iobench.loops.threads import rank_environment
from iobench.loops.together import rank_metrics, times_of, together
from iobench.machine.page_cache import WHEN_NEEDED
from iobench.stored import Stored, stored
from iobench.trial import Cold, Context, Metrics, Outcome, Params, Place, TrialSpec

# Ranks talk among themselves: no other network is asked, and no name of this host.
_LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo"}

DIFFER = "parameters differ between ranks: their gradients were not exchanged"


@dataclass(frozen=True, slots=True)
class _Shared:
    """The work: what each rank is told, of which data, and how many whole batches each has."""

    ranks: Sequence[Params]
    data: Stored | None
    whole: Sequence[int]

    @property
    def steps(self) -> int:
        """That every rank takes."""
        return int(self.ranks[0]["steps"])


@dataclass(frozen=True, slots=True)
class _Computed:
    """What computed, of all ranks."""

    device: str
    precision: str
    notes: tuple[str, ...]
    emulated: bool = False


def run(
    params: Params, context: Context, devices: Devices, environment: Mapping[str, str]
) -> Outcome:
    """The trial, by a rank on each of ``devices``; they start with ``environment``."""
    place = context.places[params["data"]] if params["data"] else None
    download_s = None
    if place is not None and params.get("access") == "file":
        begun_s = context.clock.now_s()
        place = _downloaded(params, context, place)
        context = replace(context, places={**context.places, params["data"]: place})
        download_s = context.clock.now_s() - begun_s
    shared = _shared(params, context, place, devices)
    data = shared.data
    drop = params.get("drop_caches", WHEN_NEEDED)
    cache = None
    if place is not None and data:
        cache = prepared(params["input"], place, data, drop_caches=drop)
    limited = rank_environment(
        *(environment, params.get("threads"), params["workers"], devices.count),
        on_cpu=not devices.on_gpu,
    )
    with _meeting() as (path, descriptor):
        outcomes = run_ranks(
            [TrialSpec("rank", {**told, "meeting": path}) for told in shared.ranks],
            context.places,
            environment={**_LOOPBACK, **limited},
            keep=[descriptor],
            progress=context.progress,
        )
    found = [outcome.metrics for outcome in outcomes]
    times = [times_of(one["times"]) for one in found]
    whole = together(times)
    agree = len({one["fingerprint"] for one in found}) == 1
    real = params["input"] != "synthetic"
    notes = [*(_each_once(found, "loaded") if real else ()), *_uneven(shared)]
    cold = _cold(cache, params["loader"], whole.taken, found)
    outcome = loop_outcome(
        whole,
        _computed(found, devices),
        params,
        context.clock,
        notes=notes if agree else [*notes, DIFFER],
        data=data if real else None,
        cold=cold,
    )
    more = {"devices": devices.count, "ranks_agree": agree, **rank_metrics(times, whole)}
    if real and place is not None and place.uri.startswith("s3://"):
        more |= added(Fetched(*one["fetched"]) for one in found).metrics
    if download_s is not None:
        more["download_s"] = download_s
    epochs = {"epochs": records([epoch_of(whole, cold)])} if real else {}
    return replace(outcome, metrics={**outcome.metrics, **more, **epochs})


def _downloaded(params: Params, context: Context, place: Place) -> Place:
    """The data on a local disk, copied once before any rank begins."""
    if context.scratch is None:
        raise Unavailable("access file needs a folder to download to")
    reads = built(params["loader"], place, loader_settings(params), context).reads
    folder = context.scratch / "download"
    folder.mkdir(parents=True)
    return downloaded(place, reads or "files", folder, params["connections"])


def _shared(params: Params, context: Context, place: Place | None, devices: Devices) -> _Shared:
    """Every rank's loader is asked what it has; no sample is read.

    Raises:
        Unavailable: the loader does not go with such a loop.
        TrialFailed: too few batches for a step that counts.
    """
    over = context.places[params["over"]] if params["over"] else None
    ranks = [{**params, "rank": n, "world_size": devices.count} for n in range(devices.count)]
    settings = [loader_settings(told) for told in ranks]
    loaders = [built(params["loader"], place or over, one, context) for one in settings]
    if params["input"] != "synthetic":
        check_frameworks(loaders[0], "torch")
        check_shares(loaders[0], params["loader"], "devices", "devices: 1")
    reads = loaders[0].reads
    data = stored(over, reads) if over is not None and reads else None
    whole: list[int] = []
    if data is not None:
        pairs = zip(loaders, settings, strict=True)
        whole = [whole_batches(loader, one, data.samples) for loader, one in pairs]
    for loader in loaders:
        loader.close()
    steps, leave_out = steps_of(params, data, whole)
    same = {
        "device": "gpu" if devices.on_gpu else "cpu",
        "steps": steps,
        "leave_out": leave_out,
        "classes": classes_of(data),
    }
    return _Shared([{**told, **same} for told in ranks], data, whole)


@contextmanager
def _meeting() -> Iterator[tuple[str, int]]:
    """A file without a name by which ranks find each other, and its descriptor, which they keep.

    Nothing of it is left, however the trial ends.
    """
    descriptor = os.memfd_create("iobench-ranks")
    try:
        yield f"/proc/self/fd/{descriptor}", descriptor
    finally:
        os.close(descriptor)


def _computed(found: Sequence[Metrics], devices: Devices) -> _Computed:
    return _Computed(
        device=devices.named([one["device"] for one in found]),
        precision=", ".join(dict.fromkeys(one["precision"] for one in found)),
        notes=tuple(_each_once(found, "computed")),
    )


def _each_once(found: Sequence[Metrics], key: str) -> list[str]:
    return list(dict.fromkeys(str(note) for one in found for note in one[key]))


def _uneven(shared: _Shared) -> list[str]:
    """A word where some ranks have more whole batches than all ranks take."""
    whole, steps = shared.whole, shared.steps
    if not whole or min(whole) == max(whole) or steps < min(whole):
        return []
    return [
        f"ranks have {min(whole):,} to {max(whole):,} whole batches: each takes {steps:,}, since "
        "gradients are exchanged in every step"
    ]


def _cold(
    cache: LoopCache | None, loader: str, samples: int, found: Sequence[Metrics]
) -> Cold | None:
    """What the cache did for all ranks, by the bytes that storage gave to any of them."""
    if cache is None:
        return None
    physical = [one["physical_bytes"] for one in found]
    return cache.judged_by(None if None in physical else sum(physical), loader, samples)
