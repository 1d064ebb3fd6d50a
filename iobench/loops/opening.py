"""Loaders for a loop: made, checked against what it takes, and counted in steps."""

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
    """The loader of a trial, which reaches its data as ``access`` says.

    Raises:
        Unavailable: the trial has no folder for a download; what ``built`` raises.
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
    """The loader of a trial, for data that it reads.

    Raises:
        Unavailable: the data have another form, or what it needs is not there.
        TrialFailed: it is another package's, and broken.
        ConfigError: it cannot be imported.
    """
    name = trial.loader
    kind = LOADERS.load(name)
    reads = getattr(kind, "reads", None)  # some only know once they have a place
    if place is not None and reads is not None:
        check_form(place, reads)
    if place is not None and place.decoded and name not in TAKE_PIXELS:
        raise Unavailable(
            f"{name} reads encoded images, and these are stored as pixels: "
            f"{', '.join(sorted(TAKE_PIXELS))} read them"
        )
    loader: Loader = context.around.loader(
        made(LOADERS, name, Loader, lambda: kind(place, trial, context.clock))
    )
    return loader


def data_of(place: Place | None, loader: Loader) -> Stored | None:
    """What a loader finds at its place; None where it reads nothing."""
    return stored(place, loader.reads) if place is not None and loader.reads else None


def batches_of(loader: Loader, number: int) -> Iterator[Batch]:
    """An epoch of a loader, whoever wrote it.

    Raises:
        TrialFailed: it gives something else than batches.
    """
    for batch in loader.epoch(number):
        if not isinstance(batch, Batch):
            raise TrialFailed(
                f"the loader gives {type(batch).__name__} where iobench.loaders.Batch belongs: "
                "Batch(images, labels, samples)"
            )
        yield batch


def full_batches(loader: Loader, batch_size: int, number: int = 0) -> Iterator[Batch]:
    """One epoch without its short batches, for each size of which a GPU would tune anew."""
    return (batch for batch in batches_of(loader, number) if batch.samples == batch_size)


def whole_batches(loader: Loader, settings: LoaderSettings, samples: int) -> int:
    """How many full batches there are, where the data have so many ``samples``."""
    if isinstance(loader, CountsBatches):
        return loader.whole_batches()
    share = len(range(settings.rank, samples, settings.world_size))
    return share // settings.batch_size


def steps_of(trial: TrainingTrial, data: Stored | None, whole: Sequence[int]) -> tuple[int, int]:
    """How many steps are run, and how many of them do not count: the same for every input.

    ``whole``: batches of each rank, none where nothing is read. All ranks take as many steps as
    the one with the fewest can: gradients are exchanged in each.

    Raises:
        TrialFailed: none of them would count.
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
    """Classes of the network's last layer: ImageNet's 1,000, or more where the data have more."""
    return max(data.classes if data else 2, 1000)


def check_frameworks(loader: Loader, consumer_framework: str) -> None:
    """Refuse a loader whose batches the consumer cannot take.

    Raises:
        Unavailable: their frameworks differ.
    """
    if consumer_framework not in ("none", loader.framework) and loader.framework != "none":
        raise Unavailable(
            f"a {consumer_framework} training loop does not take {loader.framework} batches"
        )


def check_shares(loader: Loader, name: str, among: str, instead: str) -> None:
    """Refuse a loader that would give every rank all samples.

    Args:
        loader: the loader that is to be one of several.
        name: its name.
        among: what there are several of: ``devices``, ``processes``.
        instead: what else to ask for.

    Raises:
        Unavailable: it does not say that it shares them.
    """
    if not getattr(loader, "by_rank", False):
        raise Unavailable(
            f"loader {name} does not share its samples among several {among}: take torch-iterable, "
            f"torch-map or torch-folder, or {instead}"
        )
