"""PURE. How large records will be, learnt from a few conversions.

Whole numbers only: the plan that follows must be the same on every processor. The model is a
line through a handful of points (source bytes, record bytes), each the mean of one slice of
the calibration sample ordered by size. On 1,000 ImageNet photographs the image's own size
predicts nearly as well as its dimensions do (standard deviation of 27 % against 23 % of the
mean, one image), and it needs no file to be opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAX_SLICES = 8
_PER_SLICE = 16
_LEAST, _MOST = 32, 128


def sample_size(samples: int) -> int:
    """How many conversions to calibrate with: a tenth, at least 32, at most 128."""
    return min(samples, max(_LEAST, min(_MOST, samples // 10)))


def pick(sizes: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """``count`` rows, evenly spread over the samples in order of size."""
    order = np.argsort(sizes, kind="stable")
    places = (2 * np.arange(count, dtype=np.int64) + 1) * len(order) // (2 * count)
    return order[places].astype(np.int64)


@dataclass(frozen=True)
class Calibration:
    """Points of the line, in ascending source bytes."""

    points: tuple[tuple[int, int], ...]

    @classmethod
    def fit(cls, pairs: Sequence[tuple[int, int]]) -> Calibration:
        """Learn from (source bytes, record bytes); a failed conversion counts as 0 bytes."""
        if not pairs:
            return cls(((1, 1),))
        ordered = sorted(pairs)
        slices = max(1, min(MAX_SLICES, len(ordered) // _PER_SLICE))
        points: list[tuple[int, int]] = []
        for i in range(slices):
            part = ordered[i * len(ordered) // slices : (i + 1) * len(ordered) // slices]
            source = sum(pair[0] for pair in part) // len(part)
            record = sum(pair[1] for pair in part) // len(part)
            if not points or source > points[-1][0]:
                points.append((max(1, source), record))
        return cls(tuple(points))

    def predict(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Record bytes for each of ``sizes``: int64, never negative."""
        sizes = sizes.astype(np.int64)
        if len(self.points) == 1:
            source, record = self.points[0]
            # One slice: a constant part and a slope cannot be told apart.
            return np.where(sizes > 0, np.maximum(1, sizes * record // source), 0)
        x = np.array([point[0] for point in self.points], dtype=np.int64)
        y = np.array([point[1] for point in self.points], dtype=np.int64)
        segment = np.clip(np.searchsorted(x, sizes, side="right") - 1, 0, len(x) - 2)
        x0, x1, y0, y1 = x[segment], x[segment + 1], y[segment], y[segment + 1]
        rise = y1 - y0
        # Beyond the ends the line goes on, but never falls and never outgrows the source.
        outside = (sizes < x0) | (sizes > x1)
        rise = np.where(outside, np.clip(rise, 0, x1 - x0), rise)
        anchor_x, anchor_y = np.where(sizes > x1, x1, x0), np.where(sizes > x1, y1, y0)
        predicted = anchor_y + rise * (sizes - anchor_x) // (x1 - x0)
        return np.where(sizes > 0, np.maximum(1, predicted), 0)
