"""Loaders for a loop, and how many steps every rank takes."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.clock import VirtualClock
from iobench.errors import TrialFailed, Unavailable
from iobench.loaders import LoaderSettings
from iobench.loops.loader_grid import LoaderTrial
from iobench.loops.opening import (
    batches_of,
    built,
    check_frameworks,
    classes_of,
    full_batches,
    steps_of,
    whole_batches,
)
from iobench.loops.training_plan import Training, TrainingTrial, plan
from iobench.stored import Stored
from iobench.trial import Context, Place
from tests.iobench.loops.fakes import PARAMS, SAMPLES, SlowLoader, looped


def test_settings_of_a_trial_are_its_loaders() -> None:
    """Params that are somebody else's are left out; nothing is lost."""
    found = LoaderTrial.model_validate({**PARAMS, "augment": False, "item_s": 0.5})
    assert (found.loader, found.seconds) == ("slow", 5.0)
    told = LoaderSettings(batch_size=SAMPLES, workers=1, prefetch=2, augment=False, item_s=0.5)
    assert found.model_dump(include=set(LoaderSettings.model_fields)) == told.model_dump()


@pytest.mark.parametrize(
    ("loader", "consumer", "fits"),
    [
        ("torch", "torch", True),
        ("none", "torch", True),
        ("torch", "none", True),
        ("tensorflow", "torch", False),
    ],
)
def test_batches_must_be_what_the_loop_takes(loader: str, consumer: str, fits: bool) -> None:
    """Frameworks do not mix; what has none goes with all."""
    made, _ = looped(1)
    made.framework = loader  # type: ignore[assignment]
    if fits:
        check_frameworks(made, consumer)
        return
    with pytest.raises(Unavailable, match="a torch training loop does not take tensorflow batches"):
        check_frameworks(made, consumer)


@pytest.mark.parametrize("name", ["tf-data", "mxnet-record"])
def test_decoded_images_are_for_loaders_that_read_them(name: str) -> None:
    """Others would take pixels for an encoded image."""
    place = Place("/nowhere", "shards", decoded=True)
    context = Context({}, VirtualClock(), lambda done, unit: None)
    with pytest.raises(Unavailable, match="take raw, torch-iterable, torch-map"):
        built(LoaderTrial(loader=name, data="", cache="warm"), place, context)


def test_other_things_than_batches_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loader of another package that yields tuples, like torch, fails with advice."""
    loader, _ = looped(1)
    assert [batch.samples for batch in batches_of(loader, 0)] == [SAMPLES]
    monkeypatch.setattr(loader, "epoch", lambda number: iter([("images", "labels")]))
    with pytest.raises(TrialFailed, match=r"yields tuple, not .* Batch\(images, labels, samples\)"):
        next(batches_of(loader, 0))


def trial(**changes: Any) -> TrainingTrial:
    """A loop of 100 steps of 10 samples, unless told otherwise."""
    told = {"batch_size": 10, "steps": 100, "workers": 2, "prefetch": 2, **changes}
    (params,) = plan(Training.model_validate({"inputs": "warm", **told}))
    return TrainingTrial.model_validate(params)


DATA = Stored(samples=205, bytes=1, classes=2, files=())


def test_all_ranks_take_as_many_as_the_one_with_the_fewest() -> None:
    """And none more than is asked for."""
    assert steps_of(trial(), DATA, [40, 37, 41]) == (37, 5)
    assert steps_of(trial(steps=20), DATA, [40, 37]) == (20, 5)
    assert steps_of(trial(), None, ()) == (100, 5)


def test_a_rank_without_a_batch_fails_them_all() -> None:
    """With how many share the images."""
    with pytest.raises(
        TrialFailed, match="205 images among 2 ranks with 2 workers are 0 whole batch"
    ):
        steps_of(trial(), DATA, [9, 0])


def test_short_batches_are_passed_over() -> None:
    """Wherever they come."""
    loader, _ = looped(4, last_samples=SAMPLES - 1)
    assert [batch.samples for batch in full_batches(loader, SAMPLES)] == [SAMPLES] * 3


def test_a_network_has_a_class_for_each_of_the_data() -> None:
    """And for the thousand of ImageNet."""
    assert classes_of(None) == classes_of(DATA) == 1000
    assert classes_of(Stored(1, 1, 21_841, ())) == 21_841


class Counting(SlowLoader):
    """Has fewer whole batches than its samples would make."""

    def whole_batches(self) -> int:
        """Thirty."""
        return 30


def test_whole_batches_of_a_rank() -> None:
    """Of 89 samples two ranks have 30 and one 29; a loader that counts its batches is asked."""
    for rank, batches in ((0, 3), (1, 3), (2, 2)):
        settings = LoaderSettings(batch_size=10, rank=rank, world_size=3)
        assert whole_batches(looped(1)[0], settings, 89) == batches
    assert whole_batches(Counting(None, settings, VirtualClock()), settings, 400) == 30
