"""Make the loader of a trial, check that it suits the loop, and count its steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dataprep.counted import counted
from iobench.access import DownloadedLoader
from iobench.errors import TrialFailed, Unavailable
from iobench.extensions import made
from iobench.loaders import LOADERS, Batch, CountsBatches, Loader, LoaderSettings
from iobench.loaders.own import TAKE_PIXELS
from iobench.loops.drive import steps_to_leave_out
from iobench.loops.loader_grid import LoopTrial
from iobench.loops.training_plan import TrainingTrial
from iobench.stored import Stored, check_form, stored
from iobench.trial import Context, Place


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
    loader: Loader = context.around.loader(
        made(LOADERS, name, Loader, lambda: kind(place, trial, context.clock))
    )
    return loader


def data_of(place: Place | None, loader: Loader) -> Stored | None:
    """Size and files of the data that a loader reads; None if it reads nothing."""
    return stored(place, loader.reads) if place is not None and loader.reads else None


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


def full_batches(loader: Loader, batch_size: int, number: int = 0) -> Iterator[Batch]:
    """The full batches of one epoch: a GPU would tune itself again for each other size."""
    return (batch for batch in batches_of(loader, number) if batch.samples == batch_size)


def whole_batches(loader: Loader, settings: LoaderSettings, samples: int) -> int:
    """Number of full batches of this rank, if the data have so many ``samples``."""
    if isinstance(loader, CountsBatches):
        return loader.whole_batches()
    share = len(range(settings.rank, samples, settings.world_size))
    return share // settings.batch_size


def steps_of(trial: TrainingTrial, data: Stored | None, whole: Sequence[int]) -> tuple[int, int]:
    """The number of steps to run, and how many of them do not count; the same for every input.

    ``whole``: full batches of each rank; empty if nothing is read. All ranks take the same number
    of steps, since they exchange gradients in each.

    Raises:
        TrialFailed: no step would count.
    """
    workers, ranks = trial.workers, len(whole)
    steps = min([trial.steps, *whole])
    leave_out = steps_to_leave_out(workers, trial.prefetch, steps)
    if steps > leave_out:
        return steps, leave_out
    raise TrialFailed(
        f"{data.samples if data else 0:,} images among {counted(max(ranks, 1), 'rank')} with "
        f"{counted(workers, 'worker')} are {counted(steps, 'whole batch')} of "
        f"{trial.batch_size} for each: give more images, more shards, a smaller "
        "batch_size or fewer workers"
    )


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
