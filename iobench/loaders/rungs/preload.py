"""A loop's samples, read and prepared before it begins, as far as memory holds them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from dataprep.adapters.augment import Augmentation, Transform
from dataprep.image.rgb import decode_whole
from iobench.errors import TrialFailed
from iobench.loaders.augmentation import augmentation_of
from iobench.loaders.protocol import LoaderSettings, MemoryRung, Readable
from iobench.loaders.rungs import MOST_THREADS
from iobench.loaders.rungs.held import Held
from iobench.pixels import packed


def preloaded(
    readable: Readable,
    rung: MemoryRung,
    settings: LoaderSettings,
    *,
    samples: int,
    limit_bytes: int,
    decoded: bool,
) -> Held:
    """The first ``samples`` of epoch 0, or as many of them as ``limit_bytes`` hold.

    For every other sample one of those is given, in turn.

    Args:
        readable: the data set as a torch loader opened it.
        rung: how the samples are to lie in memory.
        settings: of the loader.
        samples: how many the loop takes.
        limit_bytes: how much memory they may take.
        decoded: whether they are stored as pixels.

    Raises:
        TrialFailed: not one of them fits.
        ImageError: an image that has to be decoded cannot be; its name is told.
    """
    from dataprep.adapters.torch import Items

    records = readable.dataset.records
    prepare = _preparing(rung, settings, decoded=decoded)
    items = Items(records, prepare, settings.seed)

    def made(number: int) -> NDArray[np.uint8]:
        found, _ = items.item(records.image(number), number, 0)
        pixels = found.numpy().reshape(-1) if hasattr(found, "numpy") else found
        return np.frombuffer(pixels, np.uint8)

    numbers = list(islice(first_numbers(readable), samples))
    if rung == "collate":
        limit_bytes = min(limit_bytes, len(numbers) * 3 * settings.image_size**2)
    data, offsets = _filled(_side_by_side(made, numbers), limit_bytes)
    count = len(offsets) - 1
    if not count:
        raise TrialFailed(
            f"input {rung}: a quarter of the memory that is free ({limit_bytes:,} bytes) holds not "
            "one sample"
        )
    return Held(
        rung=rung,
        side=settings.image_size,
        data=data,
        offsets=offsets,
        places=_places(len(records.labels), numbers[:count]),
        wanted=len(numbers),
    )


def first_numbers(readable: Readable) -> Iterator[int]:
    """The numbers of the samples of epoch 0 in the order in which a loop takes them.

    Workers take turns by batch, so their number has no effect.
    """
    readable.set_epoch(0)
    if readable.sampler is not None:
        yield from readable.sampler
    else:
        yield from readable.dataset.sequence(0).tolist()


def _preparing(rung: MemoryRung, settings: LoaderSettings, *, decoded: bool) -> Transform:
    if rung == "collate":
        return _finishing(settings, decoded=decoded)
    if rung == "augment" and not decoded:
        return lambda data, rng: packed(decode_whole(data))
    return lambda data, rng: data


def _finishing(settings: LoaderSettings, *, decoded: bool) -> Augmentation:
    return replace(augmentation_of(settings, decoded=decoded), normalise=False)


def _side_by_side(
    made: Callable[[int], NDArray[np.uint8]], numbers: Sequence[int]
) -> Iterator[NDArray[np.uint8]]:
    """In order, by threads: codecs do not hold Python's lock. Few are held at a time."""
    threads = min(MOST_THREADS, len(os.sched_getaffinity(0)))
    with ThreadPoolExecutor(threads) as pool:
        for start in range(0, len(numbers), 2 * threads):
            yield from pool.map(made, numbers[start : start + 2 * threads])


def _filled(
    samples: Iterable[NDArray[np.uint8]], limit_bytes: int
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """As many of ``samples`` as fit, end to end; where each begins, and where the last ends."""
    data = np.empty(limit_bytes, np.uint8)  # pages that are never written to are not taken
    offsets = [0]
    for sample in samples:
        end = offsets[-1] + len(sample)
        if end > limit_bytes:
            break
        data[offsets[-1] : end] = sample
        offsets.append(end)
    return data[: offsets[-1]], np.array(offsets, np.int64)


def _places(samples: int, held: Iterable[int]) -> NDArray[np.int64]:
    """For each sample of the data set the one that is given: itself where it is held."""
    numbers = np.fromiter(held, np.int64)
    places = np.arange(samples, dtype=np.int64) % len(numbers)
    places[numbers] = np.arange(len(numbers))
    return places
