"""How many steps every rank takes."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.errors import TrialFailed
from iobench.loaders import LoaderSettings
from iobench.loops.counting import classes_of, full_batches, steps_of, whole_batches
from iobench.stored import Stored
from tests.iobench.loops.fakes import SAMPLES, looped

PARAMS: dict[str, Any] = {"batch_size": 10, "steps": 100, "workers": 2, "prefetch": 2}
DATA = Stored(samples=205, bytes=1, classes=2, files=())


def test_all_ranks_take_as_many_as_the_one_with_the_fewest() -> None:
    """And none more than is asked for."""
    assert steps_of(PARAMS, DATA, [40, 37, 41]) == (37, 5)
    assert steps_of({**PARAMS, "steps": 20}, DATA, [40, 37]) == (20, 5)
    assert steps_of(PARAMS, None, ()) == (100, 5)


def test_a_rank_without_a_batch_fails_them_all() -> None:
    """With how many share the images."""
    with pytest.raises(
        TrialFailed, match="205 images among 2 ranks of 2 workers are 0 whole batch"
    ):
        steps_of(PARAMS, DATA, [9, 0])


@pytest.mark.parametrize(("rank", "batches"), [(0, 3), (1, 3), (2, 2)])
def test_a_loader_that_does_not_count_has_a_share_of_the_samples(rank: int, batches: int) -> None:
    """Of 89 samples two ranks have 30 and one 29."""
    loader, _ = looped(1)
    settings = LoaderSettings(batch_size=10, rank=rank, world_size=3)
    assert whole_batches(loader, settings, 89) == batches


def test_short_batches_are_passed_over() -> None:
    """Wherever they come."""
    loader, _ = looped(4, last_samples=SAMPLES - 1)
    assert [batch.samples for batch in full_batches(loader, SAMPLES)] == [SAMPLES] * 3


def test_a_network_has_a_class_for_each_of_the_data() -> None:
    """And for the thousand of ImageNet."""
    assert classes_of(None) == classes_of(DATA) == 1000
    assert classes_of(Stored(1, 1, 21_841, ())) == 21_841
