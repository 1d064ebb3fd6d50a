"""Create the loader of a trial, check that it suits the loop, and open it again between epochs."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from dataprep.reading.read_counter import ReadTotals
from iobench.data.data_summary import DataSummary, check_data_form, summarize_data
from iobench.data.warm_part import warm_part
from iobench.errors import TrialFailed, Unavailable
from iobench.loaders import (
    LOADERS,
    Batch,
    CountsReads,
    Loader,
    TimesBatches,
    WorkerBatch,
)
from iobench.loaders.access import DownloadedLoader
from iobench.loaders.capabilities import capabilities_of, loaders_with
from iobench.loaders.frameworks import need_framework
from iobench.plug_ins import create
from iobench.results.trial import Context, Location
from iobench.trials.epoch_cache import EpochCache
from iobench.trials.epoch_loop import EpochTimings
from iobench.trials.loader_grid import LoopTrial


def import_loader(name: str) -> None:
    """Import the framework of a loader, so that the time to its first batch does not contain it.

    Raises:
        Unavailable: its framework is not installed.
    """
    framework = getattr(LOADERS.load(name), "framework", "none")
    if framework != "none":
        need_framework(framework)
    if framework == "torch":
        importlib.import_module("iobench.loaders.torch_batches")
        importlib.import_module("cv2")


def open_loader(trial: LoopTrial, location: Location | None, context: Context) -> Loader:
    """Create the loader of a trial. With access ``file`` it downloads its data first.

    Raises:
        Unavailable: the trial has no folder for a download. See also ``create_loader``.
    """
    if trial.access != "file" or location is None:
        return create_loader(trial, location, context)
    if context.scratch is None:
        raise Unavailable("access file needs a folder to download to")
    return DownloadedLoader(
        location,
        lambda local: create_loader(trial, local, context),
        context.scratch,
        batch_size=trial.batch_size,
        connections=trial.connections,
    )


def create_loader(trial: LoopTrial, location: Location | None, context: Context) -> Loader:
    """Create the loader of a trial, which reads the data at ``location``.

    Raises:
        Unavailable: the loader does not read this form of data, or something that it needs is
            missing.
        TrialFailed: the loader belongs to another package and is broken.
        ConfigError: the loader cannot be imported.
    """
    name = trial.loader
    loader_class = LOADERS.load(name)
    # ``reads`` is None if the form of the data depends on the location.
    reads = getattr(loader_class, "reads", None)
    if location is not None and reads is not None:
        check_data_form(location, reads)
    if location is not None and location.decoded and not capabilities_of(name).reads_stored_pixels:
        readers = loaders_with(lambda capabilities: capabilities.reads_stored_pixels)
        raise Unavailable(
            f"{name} does not read images that are stored as pixels: use {', '.join(readers)}"
        )
    new_loader = partial(loader_class, location, trial, context.clock)
    loader: Loader = create(LOADERS, name, Loader, new_loader)
    return loader


def with_warm_part(context: Context, name: str, *, is_warm: bool) -> tuple[Context, float]:
    """The context for reading the data ``name``, and the share of the data that the trial reads.

    A warm trial reads only the part that stays in the page cache. Other trials read everything.

    Raises:
        Unavailable: not even one shard or file fits into half of the free memory.
    """
    location = context.locations.get(name)
    if location is None or not is_warm or location.holds == "empty":
        return context, 1.0
    part = warm_part(location)
    return replace(context, locations={**context.locations, name: part.location}), part.share


def warm_metrics(share: float, *, is_warm: bool) -> dict[str, float]:
    """The share of the data that a warm trial read; empty for other trials."""
    return {"warm_share": share} if is_warm else {}


def summarize_loader_data(location: Location | None, loader: Loader) -> DataSummary | None:
    """The size and files of the data that a loader reads; None if it reads nothing."""
    if location is None or loader.reads is None:
        return None
    return summarize_data(location, loader.reads)


def epoch_batches(loader: Loader, number: int) -> Iterator[Batch]:
    """Yield the batches of an epoch.

    Raises:
        TrialFailed: the loader yields something other than batches.
    """
    for batch in loader.epoch(number):
        if not isinstance(batch, Batch):
            raise TrialFailed(
                f"the loader yields {type(batch).__name__}, not iobench.loaders.Batch: yield "
                "Batch(images, labels, samples)"
            )
        yield batch


class ReopenedLoader:
    """A loader that is closed and created again between epochs if its workers must end there.

    Args:
        loader: the loader of the first epoch.
        reopen: creates the loader again.

    Attributes:
        loader: the loader of the current epoch.
    """

    def __init__(self, loader: Loader, reopen: Callable[[], Loader]) -> None:
        self.loader, self._reopen = loader, reopen
        self._is_closed = False
        self._earlier_notes: list[str] = []
        self._earlier_batches: list[WorkerBatch] = []

    @property
    def notes(self) -> list[str]:
        """The notes of all loaders so far, without duplicates."""
        return list(dict.fromkeys([*self._earlier_notes, *self.loader.notes]))

    @property
    def read_totals(self) -> Callable[[], ReadTotals] | None:
        """A function that returns the samples and bytes that the current loader has read so far.

        None if the loader does not count its reads.
        """
        if not isinstance(self.loader, CountsReads):
            return None
        return self._read_so_far

    def worker_batches(self) -> list[WorkerBatch]:
        """The batches of the workers of all loaders so far; empty if they are not recorded."""
        batches = self.loader.worker_batches() if isinstance(self.loader, TimesBatches) else ()
        return [*self._earlier_batches, *batches]

    def _read_so_far(self) -> ReadTotals:
        assert isinstance(self.loader, CountsReads)  # noqa: S101  all loaders have the same class
        return self.loader.read_so_far()

    def request(self, number: int) -> Iterator[Batch]:
        """Request an epoch. The loader is created again if it was closed."""
        if self._is_closed:
            self.loader = self._reopen()
            self._is_closed = False
        return epoch_batches(self.loader, number)

    def prepare_next_epoch(self, cache: EpochCache, timings: EpochTimings) -> None:
        """Judge the page cache after an epoch, and prepare it for the next epoch.

        Files that a process has mapped cannot be evicted from the page cache. If such files remain
        in the cache, the loader is closed, so that its workers end. The next ``request`` creates it
        again.

        Args:
            cache: judges and prepares the page cache.
            timings: the timings of the epoch that has ended.
        """
        cache.judge_epoch(timings.all_steps.samples)
        must_close = cache.prepare()
        if must_close:
            self._earlier_notes += self.loader.notes
            self._earlier_batches = self.worker_batches()
            self.loader.close()
            self._is_closed = True
            gc.collect()  # An object in a reference cycle may keep a file mapped.
            cache.prepare()


def check_frameworks(loader: Loader, consumer_framework: str) -> None:
    """Refuse a loader whose batches belong to another framework than the consumer.

    Raises:
        Unavailable: the frameworks differ.
    """
    if consumer_framework not in ("none", loader.framework) and loader.framework != "none":
        raise Unavailable(
            f"a {consumer_framework} training loop does not take {loader.framework} batches"
        )


def check_shares_samples(loader: Loader, name: str, among: str, alternative: str) -> None:
    """Refuse a loader that would give all samples to every rank.

    Args:
        loader: the loader.
        name: its name, for the message.
        among: ``devices`` or ``processes``, for the message.
        alternative: the setting that works with any loader, for the message.

    Raises:
        Unavailable: the loader is not ``by_rank``.
    """
    if not getattr(loader, "by_rank", False):
        raise Unavailable(
            f"loader {name} does not share its samples among several {among}: use torch-iterable, "
            f"torch-map or torch-folder, or set {alternative}"
        )
