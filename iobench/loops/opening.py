"""Make the loader of a trial, check that it suits the loop, and count its steps."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from dataprep.counted import counted
from dataprep.reading.read_counter import ReadTotals
from iobench.access import DownloadedLoader
from iobench.data.warm import warm_part
from iobench.errors import TrialFailed, Unavailable
from iobench.extensions import made
from iobench.loaders import (
    LOADERS,
    Batch,
    CountsBatches,
    CountsReads,
    Loader,
    LoaderSettings,
    ReadPattern,
    TimesBatches,
    WorkerBatch,
)
from iobench.loaders.own import SYNTHETIC, TAKE_PIXELS
from iobench.loaders.protocol import need_framework
from iobench.loops.cache import EpochCache
from iobench.loops.counted import LEAST_EPOCHS, LEAST_ROUNDS, Flow, Least, flow_of, rule_of
from iobench.loops.drive import EpochTimes
from iobench.loops.epochs import RatePlan
from iobench.loops.loader_grid import LoopTrial
from iobench.loops.training_plan import TrainingTrial
from iobench.stored import Stored, check_form, stored
from iobench.trial import Context, Place


def import_loader(name: str) -> None:
    """Import what a loader needs, so that no time to its first batch contains it.

    Raises:
        Unavailable: its framework is not installed.
    """
    framework = getattr(LOADERS.load(name), "framework", "none")
    if framework != "none":
        need_framework(framework)
    if framework == "torch":
        importlib.import_module("iobench.loaders.torch_batches")
        importlib.import_module("cv2")


def reached(trial: LoopTrial, place: Place | None, context: Context) -> Loader:
    """The loader of a trial, with its mode of access.

    Raises:
        Unavailable: the trial has no folder for a download; see also ``built``.
    """
    if trial.access != "file" or place is None:
        return built(trial, place, context)
    if context.scratch is None:
        raise Unavailable("access file needs a folder to download to")
    return DownloadedLoader(
        place,
        lambda where: built(trial, where, context),
        context.scratch,
        batch_size=trial.batch_size,
        connections=trial.connections,
    )


def built(trial: LoopTrial, place: Place | None, context: Context) -> Loader:
    """The loader of a trial, reading ``place`` its own way.

    Raises:
        Unavailable: it does not read this form of data, or something that it needs is missing.
        TrialFailed: it belongs to another package and is broken.
        ConfigError: it cannot be imported.
    """
    name = trial.loader
    kind = LOADERS.load(name)
    reads = getattr(kind, "reads", None)  # of some loaders it depends on the place
    if place is not None and reads is not None:
        check_form(place, reads)
    if place is not None and place.decoded and name not in TAKE_PIXELS:
        raise Unavailable(
            f"{name} does not read images that are stored as pixels: take "
            f"{', '.join(sorted(TAKE_PIXELS))}"
        )
    return made(LOADERS, name, Loader, lambda: kind(place, trial, context.clock))


def with_warm_part(context: Context, name: str, *, is_warm: bool) -> tuple[Context, float]:
    """The context of a trial that reads the data ``name``, and the share of them that it reads.

    A warm trial reads the part that stays in the page cache; others read all.

    Raises:
        Unavailable: not even one shard or file fits into half of the free memory.
    """
    place = context.places.get(name)
    if place is None or not is_warm or place.holds == "empty":
        return context, 1.0
    part = warm_part(place)
    return replace(context, places={**context.places, name: part.place}), part.share


def warm_metrics(share: float, *, is_warm: bool) -> dict[str, float]:
    """The share of the data that a warm trial read; empty for other trials."""
    return {"warm_share": share} if is_warm else {}


def data_of(place: Place | None, loader: Loader) -> Stored | None:
    """Size and files of the data that a loader reads; None if it reads nothing."""
    if place is None or loader.reads is None:
        return None
    return stored(place, loader.reads)


def batches_of(loader: Loader, number: int) -> Iterator[Batch]:
    """The batches of one epoch.

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


def whole_batches(loader: Loader, settings: LoaderSettings, samples: int) -> int:
    """Number of full batches of this rank, if the data have so many ``samples``."""
    if isinstance(loader, CountsBatches):
        return loader.whole_batches()
    share = len(range(settings.rank, samples, settings.world_size))
    return share // settings.batch_size


def flow_through(loader: Loader, settings: LoaderSettings, data: Stored | None) -> Flow:
    """How samples flow through a loader; for one that does not count, how batches do."""
    streams = max(1, settings.workers)
    pattern = ReadPattern(streams)
    if isinstance(loader, CountsReads):
        pattern = loader.read_pattern(data.sample_bytes if data is not None else 1.0)
    return flow_of(
        pattern,
        batch_size=settings.batch_size,
        workers=settings.workers,
        prefetch=settings.prefetch,
    )


class OpenedLoader:
    """A loader that is made again between epochs if its workers must end there.

    Attributes:
        loader: the loader of the current epoch.
        notes: notes of all loaders so far, each once.
    """

    def __init__(self, loader: Loader, reopen: Callable[[], Loader]) -> None:
        self.loader, self._reopen = loader, reopen
        self._is_closed = False
        self._earlier_notes: list[str] = []
        self._earlier_batches: list[WorkerBatch] = []

    @property
    def notes(self) -> list[str]:
        """Notes of all loaders so far, each once."""
        return list(dict.fromkeys([*self._earlier_notes, *self.loader.notes]))

    @property
    def arrivals(self) -> Callable[[], ReadTotals] | None:
        """What the current loader has read so far; None if it does not count."""
        if not isinstance(self.loader, CountsReads):
            return None
        return self._read_so_far

    def worker_batches(self) -> list[WorkerBatch]:
        """The batches that workers of all loaders so far have made; empty if they are not known."""
        batches = self.loader.worker_batches() if isinstance(self.loader, TimesBatches) else ()
        return [*self._earlier_batches, *batches]

    def _read_so_far(self) -> ReadTotals:
        assert isinstance(self.loader, CountsReads)  # noqa: S101  loaders of a trial are of one kind
        return self.loader.read_so_far()

    def request(self, number: int) -> Iterator[Batch]:
        """Request an epoch; makes the loader again if it was closed."""
        if self._is_closed:
            self.loader = self._reopen()
            self._is_closed = False
        return batches_of(self.loader, number)

    def between(self, cache: EpochCache, times: EpochTimes) -> None:
        """Judge an epoch, and prepare the page cache for the next one.

        Files that a process has mapped cannot be evicted. Only then the loader's workers end, and
        the loader is made again.
        """
        cache.after(times.whole.samples)
        if cache.before():
            self._earlier_notes += self.loader.notes
            self._earlier_batches = self.worker_batches()
            self.loader.close()
            self._is_closed = True
            gc.collect()  # An object in a reference cycle may keep a file mapped.
            cache.before()


def rate_plan(
    loader: Loader,
    trial: LoopTrial,
    data: Stored | None,
    least: Least,
    *,
    epoch_samples: int | None,
    by_epochs: bool,
    give_up_s: float,
) -> RatePlan:
    """The rule by which the rate of a loader is measured.

    Args:
        loader: the loader, before its first epoch.
        trial: its settings.
        data: what it reads; None if it reads nothing.
        least: what the trial asks for at least.
        epoch_samples: samples of an epoch of this process; None if there is no end.
        by_epochs: whether whole epochs were asked for.
        give_up_s: the moment after which the trial ends by itself.
    """
    flow = flow_through(loader, trial, data)
    rule = rule_of(
        flow,
        counts_reads=isinstance(loader, CountsReads),
        epoch_samples=epoch_samples,
        # The epochs of loaders that read nothing have no end.
        by_epochs=(by_epochs or trial.access == "file") and trial.loader not in SYNTHETIC,
    )
    return RatePlan(rule, flow, least, give_up_s, epoch_samples)


def check_batches(trial: TrainingTrial, data: Stored | None, whole: Sequence[int]) -> None:
    """Refuse data that have no whole batch for some rank.

    Args:
        trial: the settings of the loop.
        data: what is read.
        whole: whole batches of each rank; empty if nothing is read.

    Raises:
        TrialFailed: a rank would have no step.
    """
    if not whole or min(whole) > 0:
        return
    raise TrialFailed(
        f"{data.samples if data else 0:,} images among {counted(len(whole), 'rank')} with "
        f"{counted(trial.workers, 'worker')} have no whole batch of {trial.batch_size} for each: "
        "give more images, more shards, a smaller batch_size or fewer workers"
    )


def steps_of_ranks(trial: TrainingTrial, flow: Flow, whole: Sequence[int]) -> tuple[int, int, int]:
    """Epochs, steps that are left out, and steps that count, the same for every rank.

    Ranks exchange gradients in every step, so that they agree beforehand on the number of steps.
    Where an epoch is long enough, the steps after everything that can be in flight count; else
    whole epochs do, of which each rank takes the steps that all ranks have. ``whole`` holds the
    whole batches of each rank; it is empty for loaders whose epochs have no end.
    """
    left_out = -(-flow.most_in_flight // trial.batch_size)
    rounds = -(-LEAST_ROUNDS * flow.round_samples // trial.batch_size)
    steps = max(trial.steps, rounds)
    if not whole:
        return 1, left_out, steps
    each = min(whole)
    if trial.epochs is None and left_out + steps + left_out <= each:
        return 1, left_out, steps
    later_steps = max(1, each - 1)  # Quantiles leave out the first step of an epoch.
    epochs = max(LEAST_EPOCHS, trial.epochs or 1, -(-trial.steps // later_steps))
    return epochs, 0, each


def classes_of(data: Stored | None) -> int:
    """Classes of the network's last layer: ImageNet's 1,000, or more if the data have more."""
    return max(data.classes if data else 2, 1000)


def check_frameworks(loader: Loader, consumer_framework: str) -> None:
    """Refuse a loader whose batches belong to another framework.

    Raises:
        Unavailable: the frameworks differ.
    """
    if consumer_framework not in ("none", loader.framework) and loader.framework != "none":
        raise Unavailable(
            f"a {consumer_framework} training loop does not take {loader.framework} batches"
        )


def check_shares(loader: Loader, name: str, among: str, instead: str) -> None:
    """Refuse a loader that would give all samples to every rank.

    Args:
        loader: the loader.
        name: its name.
        among: ``devices`` or ``processes``.
        instead: the setting that works with any loader, for the message.

    Raises:
        Unavailable: the loader is not ``by_rank``.
    """
    if not getattr(loader, "by_rank", False):
        raise Unavailable(
            f"loader {name} does not share its samples among several {among}: take torch-iterable, "
            f"torch-map or torch-folder, or {instead}"
        )
