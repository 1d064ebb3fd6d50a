"""Kind ``loader``: the rate of a loader whose batches are dropped; in one process or in several."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from itertools import count
from typing import Any

from dataprep.schema import typed
from iobench.access import DIRECT, metered
from iobench.clock import Clock, PausedClock
from iobench.consumers.null import NullConsumer
from iobench.consumers.protocol import ConsumerSettings
from iobench.errors import TrialFailed
from iobench.loaders import Batch, Loader
from iobench.loops.aggregate import processes_as_one
from iobench.loops.cache import EpochCache, physical_bytes, physical_since
from iobench.loops.drive import LoopTimes, drive, steps_to_leave_out
from iobench.loops.figures import epoch_record, first_batch, harness_metrics, loop_metrics
from iobench.loops.loader_grid import LoaderTrial
from iobench.loops.opening import batches_of, built, check_shares, data_of, reached
from iobench.loops.ranks import run_ranks, wait_for_all
from iobench.trial import Cold, Context, Outcome, TrialSpec

_MOST_RECORDS = 100
"""Epochs of which a result has a record."""


class Epochs:
    """Batches of ``limit`` epochs, numbered from 0; without one, of epoch after epoch.

    At the end of an epoch ``between`` gets its number of samples and whether another epoch
    follows; it returns what the page cache did. ``clock`` stands still meanwhile.

    The first ``ahead`` batches of each later epoch, at most a quarter of it, are read while
    ``clock`` stands still, and are not yielded. So a rate does not contain the starts of epochs,
    which are negligible in a data set of hours. The trial ends when they took ``at_most_s``.
    """

    def __init__(
        self,
        loader: Loader,
        clock: Clock,
        limit: int | None = None,
        between: Callable[[int, bool], Cold | None] = lambda samples, more: None,
        *,
        ahead: int = 0,
        at_most_s: float = math.inf,
    ) -> None:
        self.clock = PausedClock(clock)
        self._loader, self._wall, self._limit = loader, clock, limit
        self._between = between
        self._ahead, self._at_most_s = ahead, at_most_s
        self._records: list[dict[str, Any]] = []

    def __iter__(self) -> Iterator[Batch]:
        """Begin with epoch 0.

        Raises:
            TrialFailed: an epoch has no batch.
        """
        self._records = []
        skipped, starts_s = 0, 0.0
        for number in count() if self._limit is None else range(self._limit):
            asked_s = first_s = self._wall.now_s()
            samples = steps = 0
            with ExitStack() as start:
                if skipped:
                    start.enter_context(self.clock.paused())
                for batch in batches_of(self._loader, number):
                    if not steps:
                        first_s = self._wall.now_s()
                    steps += 1
                    samples += batch.samples
                    if steps > skipped:
                        yield batch
                    elif steps == skipped:
                        starts_s += self._wall.now_s() - asked_s
                        start.close()
            if not samples:
                raise TrialFailed("the loader gave no batch")
            seconds = self._wall.now_s() - asked_s
            cold = None
            if number < _MOST_RECORDS:
                with self.clock.paused():
                    cold = self._between(samples, number + 1 != self._limit)
            self._records.append(epoch_record(number, samples, seconds, first_s - asked_s, cold))
            skipped = min(self._ahead, steps // 4)
            if starts_s > self._at_most_s:
                return

    def metrics(self, *, whole: bool) -> dict[str, Any]:
        """Of the epochs that were read to their end; empty without any.

        ``epochs`` are the records of the first hundred. If a trial consists of ``whole`` epochs,
        ``first_epoch_s`` is the time of the first one, and ``steady_samples_per_s`` the rate of
        all later ones, their starts included.
        """
        if not self._records:
            return {}
        found: dict[str, Any] = {"epochs": self._records[:_MOST_RECORDS]}
        if whole:
            found["whole_epochs"] = len(self._records)
            found["first_epoch_s"] = self._records[0]["seconds"]
            later = self._records[1:]
            seconds = sum(one["seconds"] for one in later)
            if seconds > 0:
                found["steady_samples_per_s"] = sum(one["samples"] for one in later) / seconds
        return found


def run(spec: TrialSpec, context: Context) -> Outcome:
    """Run one point of the grid."""
    trial = LoaderTrial.model_validate(spec.params)
    if trial.processes > 1:
        return _several_processes(spec, trial, context)
    place = context.places[trial.data] if trial.data else None
    loader = reached(trial, place, context)
    data = data_of(place, loader)
    cache = EpochCache(trial, trial.cache, place, data, every=False)

    def between(samples: int, more: bool) -> Cold | None:
        """Judge one epoch, while its workers are running."""
        cold = cache.after(samples)
        if more:
            cache.before()
        return cold

    whole = trial.epochs is not None or trial.access != DIRECT
    ahead = 0 if whole else _ahead(trial)
    limit, at_most_s = trial.epoch_limit, trial.seconds or math.inf
    epochs = Epochs(loader, context.clock, limit, between, ahead=ahead, at_most_s=at_most_s)
    cache.before()
    try:
        with metered(spec.params, loader, place, data) as needed:
            times = _driven(epochs, trial, context)
        parts = first_batch(loader, times.time_to_first_batch_s)
    finally:
        loader.close()
    metrics = {**loop_metrics(times, data), **parts}
    metrics |= harness_metrics(trial.loader, "null", context.clock, times)
    metrics |= {**needed, **epochs.metrics(whole=whole), "notes": list(loader.notes)}
    cold = cache.ended(times.taken)
    return Outcome(metrics, cold, origin_s=times.asked_s, counted_s=times.counted_s)


def _ahead(trial: LoaderTrial) -> int:
    """The first step, and steps whose batches are made while the loop waits for the first."""
    return steps_to_leave_out(trial.workers, trial.prefetch, None)


def _driven(epochs: Epochs, trial: LoaderTrial, context: Context) -> LoopTimes:
    """The times of one process's loop over its batches."""
    consumer = NullConsumer(ConsumerSettings(), epochs.clock)
    return drive(
        lambda: iter(epochs),
        consumer,
        epochs.clock,
        leave_out=_ahead(trial),
        max_seconds=None if trial.epochs else trial.seconds,
        progress=lambda samples: context.progress(samples, "samples"),
    )


def _several_processes(spec: TrialSpec, trial: LoaderTrial, context: Context) -> Outcome:
    """Run loaders in several processes at the same time, like the ranks of a job.

    Each has a share of the samples and its own workers. This process counts the bytes and
    prepares the page cache before they begin; it loads nothing itself.

    Raises:
        Unavailable: the loader does not share its samples among processes.
        TrialFailed: a process failed, or they did not run at the same time.
    """
    place = context.places[trial.data] if trial.data else None
    loader = built(trial, place, context)
    check_shares(loader, trial.loader, "processes", "processes: 1")
    data = data_of(place, loader)
    loader.close()
    cache = EpochCache(trial, trial.cache, place, data, every=False)
    cache.before()
    environment = dict(os.environ)
    found = run_ranks(
        "loading-rank", spec.params, trial.processes, context, environment=environment
    )
    times = [typed(LoopTimes, one["times"]) for one in found]
    whole, rates = processes_as_one(times)
    metrics = {
        **loop_metrics(whole, data),
        **harness_metrics(trial.loader, "null", context.clock, times[0]),
        "process_samples_per_s": rates,
        # 1 if all have the same rate.
        "process_evenness": min(rates) / max(rates) if max(rates) > 0 else 1.0,
        "notes": list(dict.fromkeys(str(note) for one in found for note in one["notes"])),
    }
    read = min(whole.taken, data.samples) if trial.epochs and data else whole.taken
    cold = cache.after(read, [one["physical_bytes"] for one in found])
    return Outcome(metrics, cold, origin_s=whole.asked_s, counted_s=whole.counted_s)


def run_rank(spec: TrialSpec, context: Context) -> Outcome:
    """Kind ``loading-rank``: one of several processes that load at the same time.

    Its metrics are its times, which ``aggregate`` combines. ``params`` are those of the trial, with
    ``rank``, ``world_size`` and ``meeting``.
    """
    trial = LoaderTrial.model_validate(spec.params)
    place = context.places[trial.data] if trial.data else None
    loader = built(trial, place, context)
    epochs = Epochs(loader, context.clock, trial.epoch_limit)
    before = physical_bytes()
    wait_for_all(spec.params["meeting"], trial.world_size)
    try:
        times = _driven(epochs, trial, context)
    finally:
        loader.close()
    return Outcome(
        {
            "times": asdict(times),
            "physical_bytes": physical_since(before),
            "notes": list(loader.notes),
        }
    )
