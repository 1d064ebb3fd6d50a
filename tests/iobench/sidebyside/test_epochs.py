"""Tests of iobench.sidebyside.epochs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from iobench.sidebyside.epochs import BATCH, steady

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("images", [100, 640, 6400])
def test_whole_epochs_until_there_are_enough(images: int) -> None:
    """Beginning with epoch 0; the first batches are not counted."""
    asked: list[int] = []

    def epoch(number: int) -> Iterator[int]:
        asked.append(number)
        yield BATCH
        yield 3

    measured = steady(epoch, images)
    warm_up = max(1, images // 16 // BATCH)
    skipped = warm_up // 2 * (BATCH + 3) + warm_up % 2 * BATCH
    assert measured.amount == len(asked) * (BATCH + 3) - skipped >= images
    assert measured.amount - (BATCH + 3) < images
    assert asked == list(range(len(asked)))
    assert measured.seconds > 0
