"""Epochs one after the other, on a clock that stands still."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.errors import TrialFailed
from iobench.loops.epochs import Epochs, epoch_limit
from iobench.trial import Cold
from tests.iobench.loops.fakes import SAMPLES, START_S, WAIT_S, looped


def test_epochs_follow_each_other() -> None:
    """Numbered from 0, so that each has an order of its own."""
    loader, clock = looped(2)
    batches = iter(Epochs(loader, clock))
    for _ in range(5):
        next(batches)
    assert loader.epochs == [0, 1, 2]


def test_an_empty_epoch_is_not_repeated_forever() -> None:
    """It has failed."""
    loader, clock = looped(0)
    with pytest.raises(TrialFailed, match="the loader gave no batch"):
        next(iter(Epochs(loader, clock)))


def test_there_are_as_many_as_were_told() -> None:
    """And no more."""
    loader, clock = looped(2)
    assert len(list(Epochs(loader, clock, 3))) == 6
    assert loader.epochs == [0, 1, 2]


def test_the_first_epoch_is_told_apart_from_the_rest() -> None:
    """The first has the opening in it; the rate is that of all later ones."""
    loader, clock = looped(4, last_samples=1)
    epochs = Epochs(loader, clock, 3)
    list(epochs)
    samples = 3 * SAMPLES + 1
    assert epochs.metrics(0.0) == {
        "whole_epochs": 3,
        "first_epoch_s": START_S + 4 * WAIT_S,
        "steady_samples_per_s": 2 * samples / (2 * 4 * WAIT_S),
    }
    assert epochs.metrics(1.0)["first_epoch_s"] == START_S + 4 * WAIT_S - 1.0


def test_an_epoch_that_was_left_is_no_epoch() -> None:
    """What has not ended is in no figure."""
    loader, clock = looped(4)
    epochs = Epochs(loader, clock)
    batches = iter(epochs)
    for _ in range(3):
        next(batches)
    assert epochs.metrics(0.0) == {}
    for _ in range(3):
        next(batches)
    assert epochs.metrics(0.0) == {"whole_epochs": 1, "first_epoch_s": START_S + 4 * WAIT_S}


@pytest.mark.parametrize(
    ("params", "limit"),
    [
        ({"cache": "warm"}, None),
        ({"cache": "cold"}, 1),
        ({"cache": "cold", "epochs": 3}, 3),
        ({"cache": "warm", "epochs": 2}, 2),
    ],
)
def test_a_cold_trial_has_one_epoch(params: dict[str, Any], limit: int | None) -> None:
    """Unless it is told how many."""
    assert epoch_limit(params) == limit


def test_each_epoch_has_a_record() -> None:
    """From asking for it to its end, judged between; an epoch that was left has none."""
    loader, clock = looped(4, last_samples=1)
    asked: list[int] = []

    def between(samples: int, more: bool) -> Cold:
        assert more
        asked.append(samples)
        return Cold("as left", "warm", 1.0, 0.0, why="so")

    epochs = Epochs(loader, clock, None, between)
    batches = iter(epochs)
    for _ in range(9):
        next(batches)
    samples = 3 * SAMPLES + 1
    first, second = epochs.records()["epochs"]
    assert asked == [samples, samples]
    assert first["seconds"] == START_S + 4 * WAIT_S
    assert first["time_to_first_batch_s"] == START_S + WAIT_S
    assert (second["number"], second["seconds"]) == (1, 4 * WAIT_S)
    assert second["samples_per_s"] == samples / (4 * WAIT_S)
    assert (second["label"], second["why"]) == ("warm", "so")
    assert Epochs(loader, clock).records() == {}


def test_records_are_bounded() -> None:
    """A trial of an hour has thousands of small epochs."""
    loader, clock = looped(1)
    asked: list[bool] = []
    epochs = Epochs(loader, clock, 150, lambda samples, more: asked.append(more))
    list(epochs)
    assert len(epochs.records()["epochs"]) == len(asked) == 100
    assert epochs.metrics(0.0)["whole_epochs"] == 150


def test_the_last_epoch_is_followed_by_none() -> None:
    """Where it is known which one is the last."""
    loader, clock = looped(1)
    asked: list[bool] = []
    list(Epochs(loader, clock, 3, lambda samples, more: asked.append(more)))
    assert asked == [True, True, False]
