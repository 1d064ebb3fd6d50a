"""How long a photo holds the interpreter lock, and how many threads are therefore useful.

``python -m benchmarks.interpreter_lock SHARDS`` measures the processor time that ``to_torch`` takes
for one photo on one thread (``photo_s``), and the part of it in calls that release the lock
(``free_s``). These calls are the decoder and OpenCV. The checksum and the wait for storage also
release the lock, but they are counted as if they held it. The result is therefore an upper limit.
Other processes on the machine hardly change processor times.

A photo holds the lock for ``lock_s = photo_s - free_s``. Only one thread at a time can hold it.
Therefore ``threads`` threads make at most ``min(threads / photo_s, 1 / lock_s)`` photos a second,
and more than ``photo_s / lock_s`` threads gain nothing. The rate of two threads is measured as a
check.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import cv2
import simplejpeg

import dataprep

BATCH = 64
_CALLS_WITHOUT_LOCK = (
    (simplejpeg, "decode_jpeg"),
    (cv2, "resize"),
    (cv2, "split"),
    (cv2, "LUT"),
    (cv2, "flip"),
)


class Timer:
    """Adds up the processor time within calls of functions.

    Attributes:
        seconds: the time so far.
    """

    def __init__(self) -> None:
        self.seconds = 0.0

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does the same and adds its time to ``seconds``."""

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
    """Return the seconds for a photo in an epoch from the page cache. An epoch before it warms up.

    Args:
        dataset: the data set.
        threads: the number of threads of ``to_torch``.
        normalise: whether batches are float32 and normalised, not uint8.
        clock: the clock that measures the epoch.
    """
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
    """Return the seconds for a photo within calls that release the lock, on one thread."""
    timer = Timer()
    with ExitStack() as stack:
        for module, name in _CALLS_WITHOUT_LOCK:
            timed_call = timer.around(getattr(module, name))
            stack.enter_context(patch.object(module, name, timed_call))
        epoch_s(dataset, 0, normalise=normalise)
    return timer.seconds / (2 * len(dataset))  # ``epoch_s`` runs two epochs, and both are timed.


def main() -> None:
    """Print the median times, and the largest rate and number of threads that follow from them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shards")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    dataset = dataprep.open(options.shards)
    for normalise in (True, False):
        photo_times_s, free_times_s, gains = [], [], []
        for _ in range(options.repeats):
            photo_times_s.append(epoch_s(dataset, 0, normalise=normalise))
            free_times_s.append(free_s(dataset, normalise=normalise))
            one_s = epoch_s(dataset, 1, normalise=normalise, clock=time.perf_counter)
            two_s = epoch_s(dataset, 2, normalise=normalise, clock=time.perf_counter)
            gains.append(one_s / two_s)
        photo_s = statistics.median(photo_times_s)
        lock_s = photo_s - statistics.median(free_times_s)
        gain = statistics.median(gains)
        dtype = "float32" if normalise else "uint8"
        print(
            f"{dtype}: {photo_s * 1e6:,.0f} us a photo, "
            f"{lock_s * 1e6:,.0f} us of them with the lock ({lock_s / photo_s:.0%}); "
            f"2 threads: {gain:.2f} times as fast as 1; at most {1 / lock_s:,.0f} photos/s, "
            f"reached by {photo_s / lock_s:.1f} threads",
            flush=True,
        )


if __name__ == "__main__":
    main()
