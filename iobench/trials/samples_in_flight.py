"""PURE. How many samples a loader holds between storage and the loop: its buffers and windows."""

from __future__ import annotations

from dataclasses import dataclass

from iobench.loaders.protocol import ReadPattern
from iobench.trials.window import MIN_ROUNDS


@dataclass(frozen=True, slots=True)
class SampleFlow:
    """How samples flow through a loader.

    A *window* is the part of a shard that a reader requests with one call. A *round* consists of
    the samples that all workers together hand over, or request, at the same time.

    Attributes:
        round_samples: the samples of a round: one batch of each worker, or the windows that all
            workers request at the same time, whichever is larger. While windows grow, this is an
            upper bound.
        max_in_flight: the largest number of samples between storage and the loop.
        batch_samples: the samples of one batch of each worker.
        windows: the number of windows that all workers request at the same time.
        window_samples: the samples of the largest window.
    """

    round_samples: int
    max_in_flight: int
    batch_samples: int = 0
    windows: int = 0
    window_samples: int = 0

    def round_samples_at(self, window_samples: int) -> int:
        """The samples of a round while a window has ``window_samples`` samples.

        0 means that the present size of windows is unknown.
        """
        if not window_samples:
            return self.round_samples
        return min(self.round_samples, max(self.batch_samples, self.windows * window_samples))

    @property
    def min_epoch_samples(self) -> int:
        """The smallest epoch, in samples, that gives a steady rate.

        It has enough samples for the rounds that count, and for the samples that are in flight
        before and after these rounds.
        """
        return MIN_ROUNDS * self.round_samples + 2 * self.max_in_flight


def sample_flow(
    pattern: ReadPattern, *, batch_size: int, workers: int, prefetch: int
) -> SampleFlow:
    """The flow through a loader that reads with ``pattern`` and makes batches in ``workers``.

    Args:
        pattern: how the loader reads.
        batch_size: samples of a batch.
        workers: the number of workers; 0 if the training process loads.
        prefetch: the number of batches that each worker makes ahead.
    """
    batch_samples = max(1, workers) * batch_size
    windows = pattern.streams * pattern.windows_at_once
    # Each stream consumes one window while it requests the next windows.
    read_ahead = pattern.streams * (pattern.windows_at_once + 1) * pattern.window_samples
    shuffle_buffers = pattern.streams * pattern.buffer_samples
    # Each worker has ``prefetch`` batches ready, and works on one more.
    batches = batch_samples * (prefetch + 1)
    return SampleFlow(
        round_samples=max(batch_samples, windows * pattern.window_samples),
        max_in_flight=read_ahead + shuffle_buffers + batches,
        batch_samples=batch_samples,
        windows=windows,
        window_samples=pattern.window_samples,
    )
