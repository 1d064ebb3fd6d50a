"""Measure loaders that read a store over a link with known bandwidth and latency."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import dataprep
from iobench.clock import Clock, SystemClock
from iobench.errors import Unavailable
from iobench.loaders.frameworks import need_framework
from iobench.results.numbers import number
from iobench.results.trial import Context, Metrics, TrialSpec
from iobench.selftest.known_rates import MAX_ERROR_SHARE, Check, NotRun
from iobench.selftest.memory_store import MemoryStore, memory_store
from iobench.servers.fault_proxy import Delay, Match, RateLimit, Rule
from iobench.trials import loader_grid, loader_trial, training_settings, training_trial

_DATA = "shards@s3"
_SIDE = 288
"""The side of the stored images in pixels. Each image has 249 kB."""
_BATCH = 2
_DEVICE_FACTOR = 100
"""The rate of the emulated device, divided by the rate of the link."""


@dataclass(frozen=True, slots=True)
class Link:
    """The link between loaders and the store.

    Attributes:
        bytes_per_s: the bandwidth, which all connections share.
        latency_s: seconds from a request to the first byte of its answer.
    """

    bytes_per_s: float
    latency_s: float = 0.0

    def __str__(self) -> str:
        name = f"link of {number(self.bytes_per_s / 1e6)} MB/s"
        return f"{name} and {self.latency_s * 1e3:g} ms" if self.latency_s else name

    @property
    def rules(self) -> list[Rule]:
        """The rules by which a proxy acts as this link."""
        gets = Match("GET")
        return [Rule(gets, RateLimit(self.bytes_per_s)), Rule(gets, Delay(self.latency_s))]


@dataclass(frozen=True, slots=True)
class Reader:
    """A loader that reads the store. Its fields are keys of a loader in a config."""

    loader: str
    workers: int


@dataclass(frozen=True, slots=True)
class LinkPlan:
    """The data, the link, and the settings of the loaders.

    Images are stored as pixels, so that decoding takes nearly no time.

    Attributes:
        images: the number of images. ``raw`` needs this number for a steady rate.
        link: the link without latency.
        latency_s: the latency of the link in the checks with latency.
        raw_threads: the number of threads of ``raw``.
        torch_workers: the number of workers of ``torch-iterable``.
        every: with 2, ``torch-iterable`` reads only every second shard. This saves time, because it
            must read three whole epochs.
    """

    images: int = 140
    link: Link = Link(bytes_per_s=8e6)
    latency_s: float = 0.050
    raw_threads: int = 1
    torch_workers: int = 2
    every: int = 2


def checks(plan: LinkPlan | None = None, clock: Clock | None = None) -> Iterator[Check | NotRun]:
    """Measure loaders without training, and in a loop. The link is always the slowest part."""
    plan, clock = plan or LinkPlan(), clock or SystemClock()
    # A PNG without compression is as large as its pixels. The shards of pixels, which are made from
    # shards of PNGs, therefore have about the requested size.
    policy = dataprep.ImagePolicy(mode="crop", size=_SIDE, encoding="png", png_compression=0)
    with (
        tempfile.TemporaryDirectory(prefix="iobench-selftest-") as folder,
        memory_store(
            Path(folder),
            plan.images,
            policy,
            clock,
            shard_bytes=10**6,
            as_pixels=True,
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
    """Measure ``raw``, which reads shards one after the other.

    The time of each shard is the latency of the link plus the time of the transfer.
    """
    for link in (plan.link, replace(plan.link, latency_s=plan.latency_s)):
        metrics = loader_metrics(store, link, clock, Reader("raw", plan.raw_threads))
        shard_bytes = metrics["mean_object_bytes"]
        shard_s = link.latency_s + shard_bytes / link.bytes_per_s
        expected = shard_bytes / _sample_bytes(metrics) / shard_s
        yield _check(f"raw, {link}", expected, metrics)


def torch_checks(plan: LinkPlan, store: MemoryStore, clock: Clock) -> Iterator[Check]:
    """Measure a loader of torch without training, and in a loop with a fast device."""
    part = replace(store, remote=replace(store.remote, every=plan.every))
    reader = Reader("torch-iterable", plan.torch_workers)
    for link in (plan.link, replace(plan.link, latency_s=plan.latency_s)):
        alone = loader_metrics(part, link, clock, reader)
        yield _check(f"torch-iterable, {link}", link_rate(link, alone, part), alone)
        device_per_s = _DEVICE_FACTOR * link.bytes_per_s / _sample_bytes(alone)
        loop = loop_metrics(part, link, clock, reader, device_per_s)
        name = f"torch-iterable in a loop with a fast device, {link}"
        yield _check(name, link_rate(link, loop, part), loop)
    expected, later_per_s = _later_rate(alone), _later_rate(loop)
    name = f"later epochs of this loop compared with the loader without training, {link}"
    yield Check(name, expected, later_per_s, MAX_ERROR_SHARE * expected, "samples/s")


def link_rate(link: Link, metrics: Metrics, store: MemoryStore) -> float:
    """Return the samples/s of a loader that requests its data in advance, over a link.

    If whole epochs count, the loader requests no data before an epoch begins. Each epoch then takes
    the latency plus the transfer of its bytes, which the proxy has counted. The first epoch also
    takes the time to start the loader, as far as the loader reports it.
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


def loader_metrics(store: MemoryStore, link: Link, clock: Clock, reader: Reader) -> Metrics:
    """Measure a loader without training."""
    settings = {"data": _DATA, "batch_size": _BATCH, "image_size": 32, "seconds": 0.001}
    grid = loader_grid.LoaderGrid.model_validate({**settings, **asdict(reader)})
    spec = TrialSpec("loader", next(loader_grid.loader_points(grid)))
    _begin(store, link)
    return loader_trial.run(spec, _context(store, clock)).metrics


def loop_metrics(
    store: MemoryStore, link: Link, clock: Clock, reader: Reader, device_per_s: float
) -> Metrics:
    """Measure a training loop on an emulated device of ``device_per_s`` images/s."""
    settings = {
        "consumer": "paced",
        "images_per_s": device_per_s,
        "device": "cpu",
        "batch_size": _BATCH,
        "image_size": 32,
        "inputs": ["store"],
        "steps": 4,
    }
    loop = training_settings.Training.model_validate({**settings, **asdict(reader)})
    spec = TrialSpec("train", next(training_settings.training_points(loop)))
    _begin(store, link)
    return training_trial.run(spec, _context(store, clock)).metrics


def _begin(store: MemoryStore, link: Link) -> None:
    """Remove the record of earlier requests from the proxy, and let it act as this link."""
    store.proxy.clear()
    store.proxy.replace_rules(link.rules)


def _context(store: MemoryStore, clock: Clock) -> Context:
    return Context({_DATA: store.remote}, clock, lambda done, unit: None)


def _later_rate(metrics: Metrics) -> float:
    """Return the rate of the epochs after the first epoch.

    Workers start in the first epoch, and the time of their start depends on the machine.
    """
    later = metrics["epochs"][1:] if metrics["rate_rule"] == "epochs" else [metrics]
    samples = sum(epoch["samples"] for epoch in later)
    return float(samples / sum(epoch["seconds"] for epoch in later))


def _sample_bytes(metrics: Metrics) -> float:
    """Return the mean bytes of a stored sample."""
    return float(metrics["mb_per_s"] / metrics["samples_per_s"] * 1e6)


def _check(name: str, expected: float, metrics: Metrics) -> Check:
    return Check(name, expected, metrics["samples_per_s"], MAX_ERROR_SHARE * expected, "samples/s")
