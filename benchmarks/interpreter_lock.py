"""How much of a photo's time holds the interpreter lock, and how many threads that allows.

``python -m benchmarks.interpreter_lock SHARDS`` times the work of ``to_torch`` for one photo on one
thread, beside calls that release the lock. Those are the decoder and OpenCV; the checksum and the
wait for storage are left in Python's part, so that the share is an upper bound.

Times are processor time of the thread, which other processes on the machine hardly change. With
``photo_s`` for a photo on one thread and ``free_s`` within calls without the lock,
``lock_s = photo_s - free_s``. Only one thread at a time can be in that part, so that ``threads``
threads make at most ``min(threads / photo_s, 1 / lock_s)`` photos a second, and more than
``photo_s / lock_s`` threads gain nothing. The rate of two threads is measured too, as a check.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import cv2
import simplejpeg

import dataprep

BATCH = 64
_FREE = (
    (simplejpeg, "decode_jpeg"),
    (cv2, "resize"),
    (cv2, "split"),
    (cv2, "LUT"),
    (cv2, "flip"),
)


class Timer:
    """The seconds within calls that release the lock."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same call, timed."""

        def timed(*arguments: Any, **options: Any) -> Any:
            begun_s = time.thread_time()
            try:
                return call(*arguments, **options)
            finally:
                self.seconds += time.thread_time() - begun_s

        return timed


def epoch_s(
    dataset: dataprep.Dataset,
    threads: int,
    *,
    normalise: bool,
    clock: Callable[[], float] = time.thread_time,
) -> float:
    """Seconds a photo of one epoch from the page cache, after another one, on ``clock``."""
    augmentation = dataprep.Augmentation(normalise=normalise)
    batches = dataprep.to_torch(
        dataset, transform=augmentation, iterable=True, batch_size=BATCH, threads=threads
    )
    for _ in batches:
        pass
    begun_s = clock()
    photos = sum(len(labels) for _, labels in batches)
    return (clock() - begun_s) / photos


def free_s(dataset: dataprep.Dataset, *, normalise: bool) -> float:
    """Seconds a photo within calls that release the lock, on one thread."""
    timer = Timer()
    patches = [
        patch.object(module, name, timer.around(getattr(module, name))) for module, name in _FREE
    ]
    for patched in patches:
        patched.start()
    try:
        epoch_s(dataset, 0, normalise=normalise)
    finally:
        for patched in patches:
            patched.stop()
    return timer.seconds / (2 * len(dataset))  # both epochs are timed


def main() -> None:
    """Print the medians, and what they allow."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shards")
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args()
    dataset = dataprep.open(chosen.shards)
    for normalise in (True, False):
        photos, frees, gains = [], [], []
        for _ in range(chosen.repeats):
            photos.append(epoch_s(dataset, 0, normalise=normalise))
            frees.append(free_s(dataset, normalise=normalise))
            alone_s, pair_s = (
                epoch_s(dataset, threads, normalise=normalise, clock=time.perf_counter)
                for threads in (1, 2)
            )
            gains.append(alone_s / pair_s)
        photo, free, gain = map(statistics.median, (photos, frees, gains))
        lock = photo - free
        print(
            f"{'float32' if normalise else 'uint8'}: {photo * 1e6:,.0f} us a photo, "
            f"{lock * 1e6:,.0f} us of them with the lock ({lock / photo:.0%}); "
            f"2 threads: {gain:.2f} times as fast as 1; at most {1 / lock:,.0f} photos/s, "
            f"reached by {photo / lock:.1f} threads",
            flush=True,
        )


if __name__ == "__main__":
    main()
