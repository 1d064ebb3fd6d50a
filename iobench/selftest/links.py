"""Measure loaders of a store in memory behind a link whose bandwidth and latency are known."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dataprep
from iobench.clock import Clock, SystemClock
from iobench.errors import Unavailable
from iobench.faults import Delay, Match, RateLimit, Rule
from iobench.loaders.protocol import need_framework
from iobench.loops import loader_grid, loading, training, training_plan
from iobench.numbers import number
from iobench.selftest.known import WITHIN, Check, NotRun
from iobench.selftest.store import MemoryStore, memory_store
from iobench.trial import Context, Metrics, TrialSpec

_DATA = "shards@s3"
_SIDE = 288
"""Pixels of a side of a stored image: 249 kB."""
_BATCH = 2
_FAST_DEVICE = 100
"""How many times as fast as the link the device of a loop is."""


@dataclass(frozen=True, slots=True)
class Link:
    """The link between loaders and the store.

    Attributes:
        bytes_per_s: the bandwidth, which all connections share.
        latency_s: from a request to the first byte of its answer.
    """

    bytes_per_s: float
    latency_s: float = 0.0

    def __str__(self) -> str:
        name = f"link of {number(self.bytes_per_s / 1e6)} MB/s"
        return f"{name} and {self.latency_s * 1e3:g} ms" if self.latency_s else name

    @property
    def rules(self) -> list[Rule]:
        """The rules of a proxy that is this link."""
        gets = Match("GET")
        return [Rule(gets, RateLimit(self.bytes_per_s)), Rule(gets, Delay(self.latency_s))]


@dataclass(frozen=True, slots=True)
class LinkPlan:
    """The data, the link, and how loaders read them.

    Images are stored as pixels, which takes nearly no time to decode.

    Attributes:
        images: number of images drawn; enough for ``raw`` to have a steady rate.
        link: the link without latency.
        latency_s: the latency of the checks that have one.
        raw_threads, torch_workers: workers of ``raw`` and of ``torch-iterable``.
        every: ``torch-iterable`` reads every so many shards, since it needs three whole epochs.
    """

    images: int = 140
    link: Link = Link(bytes_per_s=8e6)
    latency_s: float = 0.050
    raw_threads: int = 1
    torch_workers: int = 2
    every: int = 2


def checks(plan: LinkPlan | None = None, clock: Clock | None = None) -> Iterator[Check | NotRun]:
    """Measure loaders alone and in a loop; the link is the slowest part of all of them."""
    plan, clock = plan or LinkPlan(), clock or SystemClock()
    # The shards of pixels have as many samples as those that they are made from: a PNG that is not
    # compressed is as large as its pixels.
    policy = dataprep.ImagePolicy(mode="crop", size=_SIDE, encoding="png", png_compression=0)
    with (
        tempfile.TemporaryDirectory(prefix="iobench-selftest-") as folder,
        memory_store(
            *(Path(folder), plan.images, policy, clock), shard_size=10**6, as_pixels=True
        ) as store,
    ):
        yield from raw_checks(plan, store, clock)
        try:
            need_framework("torch")
        except Unavailable as error:
            yield NotRun("torch-iterable behind a link", str(error))
        else:
            yield from torch_checks(plan, store, clock)


def raw_checks(plan: LinkPlan, store: MemoryStore, clock: Clock) -> Iterator[Check]:
    """Shards that are read one after the other: each takes its latency and its transfer."""
    for link in (plan.link, replace(plan.link, latency_s=plan.latency_s)):
        metrics = loader_metrics(store, link, clock, {"loader": "raw", "workers": plan.raw_threads})
        shard_bytes = metrics["mean_object_bytes"]
        shard_s = link.latency_s + shard_bytes / link.bytes_per_s
        expected = shard_bytes / _sample_bytes(metrics) / shard_s
        yield _check(f"raw, {link}", expected, metrics)


def torch_checks(plan: LinkPlan, store: MemoryStore, clock: Clock) -> Iterator[Check]:
    """A loader of torch alone, and in a loop whose device is faster than the link."""
    part = replace(store, remote=replace(store.remote, every=plan.every))
    reader = {"loader": "torch-iterable", "workers": plan.torch_workers}
    for link in (plan.link, replace(plan.link, latency_s=plan.latency_s)):
        alone = loader_metrics(part, link, clock, reader)
        yield _check(f"torch-iterable, {link}", link_rate(link, alone, part), alone)
        device_per_s = _FAST_DEVICE * link.bytes_per_s / _sample_bytes(alone)
        loop = loop_metrics(part, link, clock, reader, device_per_s)
        name = f"torch-iterable in a loop with a fast device, {link}"
        yield _check(name, link_rate(link, loop, part), loop)
    expected, later_per_s = _later_rate(alone), _later_rate(loop)
    name = f"its later epochs beside those of the loader alone, {link}"
    yield Check(name, expected, later_per_s, WITHIN * expected, "samples/s")


def link_rate(link: Link, metrics: Metrics, store: MemoryStore) -> float:
    """The samples/s that a link allows a loader that requests everything ahead.

    Where whole epochs count, nothing is requested before an epoch. Each takes at least a latency
    and the transfer of all bytes that the proxy has sent since the trial began. The start of the
    loader, as far as it is known, is part of the first one.
    """
    if metrics["rate_rule"] != "epochs":
        return link.bytes_per_s / _sample_bytes(metrics)
    epochs = len(metrics["epochs"])
    sent_bytes = sum(request.response_bytes for request in store.proxy.requests)
    epoch_s = link.latency_s + sent_bytes / epochs / link.bytes_per_s
    start_s = metrics["first_batch_listing_s"] + metrics["first_batch_worker_start_s"]
    # A new worker connects to the store before it reads.
    first_s = start_s + max(epoch_s, metrics["first_batch_fetch_s"])
    return float(metrics["samples"] / (first_s + (epochs - 1) * epoch_s))


def loader_metrics(store: MemoryStore, link: Link, clock: Clock, reader: dict[str, Any]) -> Metrics:
    """Measure a loader alone; ``reader`` are keys of a grid of loaders."""
    usual = {"data": _DATA, "batch_size": _BATCH, "image_size": 32, "seconds": 0.001}
    grid = loader_grid.LoaderGrid.model_validate({**usual, **reader})
    spec = TrialSpec("loader", next(loader_grid.plan(grid)))
    _begin(store, link)
    return loading.run(spec, _context(store, clock)).metrics


def loop_metrics(
    store: MemoryStore, link: Link, clock: Clock, reader: dict[str, Any], device_per_s: float
) -> Metrics:
    """Measure a training loop on an emulated device of ``device_per_s`` images/s."""
    usual = {
        "consumer": "paced",
        "images_per_s": device_per_s,
        "device": "cpu",
        "batch_size": _BATCH,
        "image_size": 32,
        "inputs": ["store"],
        "steps": 4,
    }
    loop = training_plan.Training.model_validate({**usual, **reader})
    spec = TrialSpec("train", next(training_plan.plan(loop)))
    _begin(store, link)
    return training.run(spec, _context(store, clock)).metrics


def _begin(store: MemoryStore, link: Link) -> None:
    """Forget earlier requests, and be another link."""
    store.proxy.clear()
    store.proxy.replace_rules(link.rules)


def _context(store: MemoryStore, clock: Clock) -> Context:
    return Context({_DATA: store.remote}, clock, lambda done, unit: None)


def _later_rate(metrics: Metrics) -> float:
    """The rate of the epochs after the first one, in which workers start.

    The start of workers takes as long as the machine lets it.
    """
    later = metrics["epochs"][1:] if metrics["rate_rule"] == "epochs" else [metrics]
    samples = sum(epoch["samples"] for epoch in later)
    return float(samples / sum(epoch["seconds"] for epoch in later))


def _sample_bytes(metrics: Metrics) -> float:
    """Mean stored bytes of a sample."""
    return float(metrics["mb_per_s"] / metrics["samples_per_s"] * 1e6)


def _check(name: str, expected: float, metrics: Metrics) -> Check:
    return Check(name, expected, metrics["samples_per_s"], WITHIN * expected, "samples/s")
