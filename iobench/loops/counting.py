"""How many steps a loop takes: whole batches, as many for every input and on every rank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dataprep.counted import counted
from iobench.errors import TrialFailed
from iobench.loaders import Batch, CountsBatches, Loader, LoaderSettings
from iobench.loops.drive import steps_to_leave_out
from iobench.loops.opening import batches_of
from iobench.stored import Stored


def full_batches(loader: Loader, batch_size: int, number: int = 0) -> Iterator[Batch]:
    """One epoch without its short batches, for each size of which a GPU would tune anew."""
    return (batch for batch in batches_of(loader, number) if batch.samples == batch_size)


def whole_batches(loader: Loader, settings: LoaderSettings, samples: int) -> int:
    """How many of those there are, where the data have so many ``samples``."""
    if isinstance(loader, CountsBatches):
        return loader.whole_batches()
    share = len(range(settings.rank, samples, settings.world_size))
    return share // settings.batch_size


def steps_of(
    params: Mapping[str, Any], data: Stored | None, whole: Sequence[int]
) -> tuple[int, int]:
    """How many steps are run, and how many of them do not count: the same for every input.

    ``whole``: batches of each rank, none where nothing is read. All ranks take as many steps as
    the one with the fewest can: gradients are exchanged in each.

    Raises:
        TrialFailed: none of them would count.
    """
    steps = min([params["steps"], *whole])
    leave_out = steps_to_leave_out(params["workers"], params["prefetch"], steps)
    if steps > leave_out:
        return steps, leave_out
    sharing = [f"{len(whole)} ranks"] if len(whole) > 1 else []
    sharing += [f"{params['workers']} workers"] if params["workers"] > 1 else []
    among = f" among {' of '.join(sharing)}" if sharing else ""
    fewest = " for the rank with the fewest" if len(whole) > 1 else ""
    shards = " more shards," if len(whole) > 1 else ""
    raise TrialFailed(
        f"{data.samples if data else 0:,} images{among} are {counted(steps, 'whole batch')} of "
        f"{params['batch_size']}{fewest}: give more images,{shards} a smaller batch_size or fewer "
        "workers"
    )


def classes_of(data: Stored | None) -> int:
    """Those of the network's last layer: ImageNet's 1,000, or more where the data have more."""
    return max(data.classes if data else 2, 1000)
