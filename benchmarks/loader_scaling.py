"""Measure the rate of ``dataprep.to_torch`` for several numbers of threads and of workers.

``python -m benchmarks.loader_scaling SHARDS`` measures each number of threads of one process, then
each number of worker processes of a ``DataLoader``, with uint8 and with float32 batches of 64.
Samples are read in random order from the page cache. Each image is cropped at random to 224 pixels
and may be flipped. Nothing consumes the batches. The rate follows the rules of ``iobench``
(docs/loaders.md). If an epoch is long enough for all workers, it is the rate in steady state.
Otherwise it covers three whole epochs with their starts.

Each point is measured in a process of its own. It is a fork of a process that has imported all
libraries.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import dataprep
from benchmarks.loading_peers import BATCH, SIZE
from benchmarks.shard_scaling import counts
from iobench.clock import SystemClock
from iobench.consumers.null import NullConsumer
from iobench.consumers.protocol import ConsumerSettings
from iobench.loaders.protocol import Batch, ReadPattern
from iobench.trials.loop_timings import combine_epochs
from iobench.trials.rate_measurement import measure_rate
from iobench.trials.rate_plan import RatePlan
from iobench.trials.samples_in_flight import sample_flow
from iobench.trials.window import Minimum
from iobench.trials.window_rules import choose_rule

PREFETCH = 2
"""The number of batches that each worker prepares in advance: the default of ``DataLoader``."""

_IMPORTED_BEFORE = ["torch", "torch.utils.data", "cv2", "dataprep.reading.torch"]


@dataclass(frozen=True, slots=True)
class Point:
    """A number (``count``) of threads or workers that make batches of one type."""

    by: Literal["threads", "workers"]
    count: int
    dtype: Literal["uint8", "float32"]


@dataclass(frozen=True, slots=True)
class LoaderRate:
    """The rate at a point.

    Attributes:
        by, count, dtype: the point.
        samples_per_s: the rate.
        rule: the rule by which it was measured.
        balance: samples that arrived / samples that were consumed in the measured time; None if it
            is unknown.
    """

    by: str
    count: int
    dtype: str
    samples_per_s: float
    rule: str
    balance: float | None


def rate_at(shards: str, point: Point, seconds: float) -> LoaderRate:
    """Measure a point.

    Args:
        shards: an output of ``dataprep shard``.
        point: the point.
        seconds: the minimum time of the measurement.
    """
    dataset = dataprep.open(shards)
    counter = dataset.count_reads()
    loader = _loader(dataset, point)

    def request(_: int) -> Iterator[Batch]:
        for images, labels in loader:
            yield Batch(images, labels, len(labels))

    streams = point.count if point.by == "workers" else 1
    flow = sample_flow(ReadPattern(streams), batch_size=BATCH, workers=streams, prefetch=PREFETCH)
    rule = choose_rule(flow, counts_reads=True, epoch_samples=len(dataset), by_epochs=False)
    plan = RatePlan(rule, flow, Minimum(seconds=seconds), epoch_samples=len(dataset))
    clock = SystemClock()
    measured = measure_rate(
        request, NullConsumer(ConsumerSettings(), clock), clock, plan, read_totals=counter.totals
    )
    times = combine_epochs(measured.counted_timings())
    return LoaderRate(
        point.by, point.count, point.dtype, times.samples_per_s, measured.rule, times.balance
    )


def _loader(dataset: dataprep.Dataset, point: Point) -> Any:
    from torch.utils.data import DataLoader

    augmentation = dataprep.Augmentation(size=SIZE, normalise=point.dtype == "float32")
    threads = point.count if point.by == "threads" else 0
    batches = dataprep.to_torch(
        dataset, transform=augmentation, batch_size=BATCH, threads=threads, rank=0, world_size=1
    )
    if point.by == "threads":
        return batches
    return DataLoader(
        batches,
        batch_size=None,
        num_workers=point.count,
        prefetch_factor=PREFETCH,
        persistent_workers=True,
        multiprocessing_context="fork",
    )


def main() -> None:
    """Measure all points. The file with the results is written again after each point."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loader_scaling")
    parser.add_argument("shards", help="an output of dataprep shard")
    parser.add_argument("--counts", type=counts, default=[1, 2, 4, 8, 16], metavar="N,N")
    parser.add_argument("--seconds", type=float, default=2.0, help="minimum time of a point")
    parser.add_argument("--to", type=Path, help="a JSON file for the rates of all points")
    options = parser.parse_args()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED_BEFORE)
    rates: list[LoaderRate] = []
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as pool:
        for by, dtype, count in product(
            ("threads", "workers"), ("uint8", "float32"), options.counts
        ):
            point = Point(by, count, dtype)  # type: ignore[arg-type]
            rates.append(pool.submit(rate_at, options.shards, point, options.seconds).result())
            print(f"{dtype}, {count} {by}: {rates[-1].samples_per_s:,.0f} img/s", file=sys.stderr)
            if options.to:
                content = {"batch_size": BATCH, "rates": [asdict(rate) for rate in rates]}
                options.to.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
