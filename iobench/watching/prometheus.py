"""Figures of a loop while it runs, for Prometheus: ``watch(loader, metrics_port=N)``.

The loop only adds numbers. When Prometheus reads the page, a thread of the server makes its text.
The server uses ``prometheus-client``, which is imported only if ``metrics_port`` is set.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol, TypeAlias

from dataprep.errors import ConfigError
from iobench.watching.batches import bytes_in

HIGHEST_PORT = 65535
BUCKETS_S = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
"""Upper bounds of the buckets of the histogram of steps, in seconds. One more bucket has no upper
bound."""

_LABELS = ("loader", "rank")
_LabelValues: TypeAlias = tuple[str, str]
_HELP = {
    "samples": "Samples that the loop got from its loader",
    "batch_bytes": "Bytes of the arrays in the batches that the loop got from its loader",
    "storage_read_samples": "Samples that arrived from storage",
    "storage_read_bytes": "Bytes that were read from storage",
    "wait_seconds": "Seconds that the loop waited for batches",
    "step_seconds": "Seconds of a step, from the request for its batch to the next request",
    "repeated_steps": "Steps on repeated batches (watch with replay), which count nowhere else",
    "epoch": "Number of the current pass over the loader, from 0",
    "ceiling_samples_per_second": "Samples/s of the loop without its loader, from the replay",
}


class _Family(Protocol):
    """A family of metrics of ``prometheus-client``: one name, with a value for each loop."""

    def add_metric(self, labels: Sequence[str], value: float) -> None:
        """Add the value of the loop with these labels."""


class Reads(Protocol):
    """Counts what has arrived from storage: ``dataprep.ReadCounter``."""

    def totals(self) -> Any:
        """An object with the sums so far, ``samples`` and ``bytes``."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The figures of one loop at one moment.

    Attributes:
        counters: sums, by the exported name without ``iobench_`` and ``_total``.
        gauges: current values, by the exported name without ``iobench_``.
        steps_by_bucket: the number of steps in each bucket of ``BUCKETS_S``, and in the bucket
            without an upper bound.
        total_step_s: the sum of the times of all steps, in seconds.
    """

    counters: dict[str, float]
    gauges: dict[str, float]
    steps_by_bucket: tuple[int, ...]
    total_step_s: float


class LiveFigures:
    """Sums of the loop over one loader, which the thread of the server may read at any moment.

    The class uses no lock, because a forked worker could inherit the lock in its locked state.
    Instead, the order of the statements ensures that a reader counts no wait twice.
    """

    def __init__(
        self,
        loader: str,
        rank: int,
        reads: Reads | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Begin with all sums at 0.

        Args:
            loader: the name of the loader in the report.
            rank: the rank of this process in its job.
            reads: counts what the loader reads from storage; None if the reads are not counted.
            clock: returns the time in seconds.
        """
        self.labels = (loader, str(rank))
        self._reads, self._clock = reads, clock
        self._samples = self._bytes = self._epoch = 0
        self._wait_s = self._total_step_s = 0.0
        # The largest wait of all snapshots so far.
        self._shown_wait_s = 0.0
        self._requested_s: float | None = None
        self._steps_by_bucket = [0] * (len(BUCKETS_S) + 1)
        self._is_repeated = False
        self._repeated_steps = self._repeated_samples = 0
        # The number of repeated samples, and the moment, at which the measured part of the replay
        # began.
        self._measured_from: tuple[int, float] | None = None
        self._ceiling_per_s: float | None = None

    def note_request(self, epoch: int, now_s: float) -> None:
        """Note that the loop requests a batch of the epoch with this number, from 0."""
        self._epoch, self._requested_s = epoch, now_s

    def note_batch(
        self, batch: Any, samples: float | None, now_s: float, *, is_repeated: bool = False
    ) -> None:
        """Add a batch and the wait for it.

        A repeated batch did not come from the loader. It is counted separately, and the wait for it
        is not counted.

        Args:
            batch: the batch.
            samples: the number of samples in it; None if it is unknown, which counts as 0.
            now_s: the moment at which the batch arrived.
            is_repeated: whether the batch is a repeated batch of a replay.
        """
        self._is_repeated = is_repeated
        if is_repeated:
            self._requested_s = None
            self._repeated_steps += 1
            self._repeated_samples += int(samples or 0)
            return
        self._add_wait(now_s)
        self._samples += int(samples or 0)
        self._bytes += bytes_in(batch)

    def note_no_batch(self, now_s: float) -> None:
        """Add the wait for an answer that is no batch: the end of the epoch, or an error."""
        self._add_wait(now_s)

    def note_step_end(self, step_s: float) -> None:
        """Add the step on the last batch; ``step_s`` includes the wait for that batch."""
        if not self._is_repeated:
            self._steps_by_bucket[bisect_left(BUCKETS_S, step_s)] += 1
            self._total_step_s += step_s

    def note_replay_measurement(self, now_s: float) -> None:
        """Note that the repeated steps from now on give the ceiling."""
        self._measured_from = self._repeated_samples, now_s

    def note_replay_end(self, now_s: float) -> None:
        """Compute the ceiling from the measured steps of the replay.

        So far, the current request has only waited for the device. This is no wait for a batch, so
        the wait begins now.
        """
        if self._requested_s is not None:
            self._requested_s = now_s
        if self._measured_from is not None:
            samples, begun_s = self._measured_from
            if now_s > begun_s and self._repeated_samples > samples:
                self._ceiling_per_s = (self._repeated_samples - samples) / (now_s - begun_s)

    def snapshot(self) -> Snapshot:
        """The figures of this moment. A wait that has not ended yet is included."""
        wait_s = self._wait_s  # This must be read before the request (see _add_wait).
        requested_s = self._requested_s
        if requested_s is not None:
            wait_s += max(0.0, self._clock() - requested_s)
        # A counter must not fall: Prometheus would see a fall as a restart of the script.
        self._shown_wait_s = max(self._shown_wait_s, wait_s)
        counters: dict[str, float] = {
            "samples": self._samples,
            "batch_bytes": self._bytes,
            "wait_seconds": self._shown_wait_s,
            "repeated_steps": self._repeated_steps,
        }
        if self._reads is not None:
            totals = self._reads.totals()
            counters["storage_read_samples"] = totals.samples
            counters["storage_read_bytes"] = totals.bytes
        gauges: dict[str, float] = {"epoch": self._epoch}
        if self._ceiling_per_s is not None:
            gauges["ceiling_samples_per_second"] = self._ceiling_per_s
        return Snapshot(counters, gauges, tuple(self._steps_by_bucket), self._total_step_s)

    def _add_wait(self, now_s: float) -> None:
        # Clear the request before the sum grows. ``snapshot`` reads the sum before the request, so
        # that it never adds an open wait to a sum which already contains that wait.
        requested_s, self._requested_s = self._requested_s, None
        if requested_s is not None:
            self._wait_s += now_s - requested_s


class MetricsServer:
    """Serves the figures of watched loops of this process as text for Prometheus.

    A thread of the server answers the requests, until ``close`` is called.
    """

    def __init__(self, port: int) -> None:
        """Listen on a port of all addresses of this machine.

        Raises:
            ConfigError: ``prometheus-client`` is not installed, or the port cannot be used.
        """
        try:
            from prometheus_client import CollectorRegistry, start_http_server
        except ImportError:
            raise ConfigError(
                "metrics_port needs prometheus-client: pip install 'dataprep-iobench[metrics]'"
            ) from None
        self.port = port
        self._loops: list[LiveFigures] = []
        self._process = os.getpid()
        registry = CollectorRegistry()
        collector: Any = self
        registry.register(collector)
        try:
            self._server, self._thread = start_http_server(port, registry=registry)
        except OSError as error:
            raise ConfigError(
                f"metrics_port: port {port} cannot be used ({error.strerror}). Choose another "
                "port. Each process of a job uses metrics_port plus its local rank on the machine "
                "(LOCAL_RANK, OMPI_COMM_WORLD_LOCAL_RANK or SLURM_LOCALID)"
            ) from None

    def add(self, loader: str, rank: int, reads: Reads | None = None) -> LiveFigures:
        """Serve the figures of one more loop, and return the object to which the loop adds them.

        Args:
            loader: the name of the loader. If it is in use, a number is appended.
            rank: the rank of this process in its job.
            reads: counts what the loader reads from storage; None if the reads are not counted.
        """
        used_names = [figures.labels[0] for figures in self._loops]
        name, number = loader, 1
        while name in used_names:
            number += 1
            name = f"{loader} {number}"
        figures = LiveFigures(name, rank, reads)
        self._loops.append(figures)
        return figures

    def close(self) -> None:
        """Stop listening. In a forked process, only close the copy of the socket."""
        if os.getpid() != self._process:
            self._server.socket.close()
            return
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def collect(self) -> Iterator[Any]:
        """Yield the figures of all loops. ``prometheus-client`` calls this for each scrape."""
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        snapshots = [(figures.labels, figures.snapshot()) for figures in self._loops]
        counters = [(labels, snapshot.counters) for labels, snapshot in snapshots]
        gauges = [(labels, snapshot.gauges) for labels, snapshot in snapshots]
        yield from _families(CounterMetricFamily, counters)
        yield from _families(GaugeMetricFamily, gauges)
        steps = HistogramMetricFamily("iobench_step_seconds", _HELP["step_seconds"], labels=_LABELS)
        bounds = [*map(str, BUCKETS_S), "+Inf"]
        for labels, snapshot in snapshots:
            buckets = list(zip(bounds, accumulate(snapshot.steps_by_bucket), strict=True))
            steps.add_metric(labels, buckets, snapshot.total_step_s)
        yield steps


def _families(
    family_class: Callable[..., _Family],
    values_of_loops: Sequence[tuple[_LabelValues, Mapping[str, float]]],
) -> Iterable[_Family]:
    """A family of metrics for each name, with the values of all loops.

    Args:
        family_class: a class of ``prometheus-client``.
        values_of_loops: the labels of each loop, and its values by their names.
    """
    families: dict[str, _Family] = {}
    for labels, values in values_of_loops:
        for name, value in values.items():
            if name not in families:
                families[name] = family_class(f"iobench_{name}", _HELP[name], labels=_LABELS)
            families[name].add_metric(labels, value)
    return families.values()
