"""Opening the loader of a loop, and planning the steps of every rank."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

from dataprep.reading.read_counter import ReadTotals
from iobench.clock import VirtualClock
from iobench.data.data_summary import DataSummary
from iobench.errors import TrialFailed, Unavailable
from iobench.loaders import Batch, LoaderSettings, ReadPattern
from iobench.loaders.mock import MockLoader
from iobench.results.trial import Context, Location
from iobench.trials.epoch_loop import EpochTimings, run_epoch
from iobench.trials.loader_grid import LoaderTrial, LoopTrial
from iobench.trials.loader_opening import (
    ReopenedLoader,
    check_frameworks,
    check_shares_samples,
    create_loader,
    epoch_batches,
)
from iobench.trials.rate_plan import (
    check_full_batches,
    count_full_batches,
    loader_flow,
    network_classes,
    plan_rank_steps,
    plan_rate,
)
from iobench.trials.samples_in_flight import SampleFlow, sample_flow
from iobench.trials.training_settings import Training, TrainingTrial, training_points
from iobench.trials.window import Minimum
from iobench.trials.window_rules import WholeEpoch
from tests.iobench.trials.fakes import PARAMS, SAMPLES, SlowConsumer, SlowLoader, looped, warm


def test_settings_of_a_trial_are_its_loaders() -> None:
    """The trial has all settings of its loader, and ignores params of others."""
    trial = LoaderTrial.model_validate({**PARAMS, "augment": False, "item_s": 0.5})
    assert (trial.loader, trial.seconds) == ("slow", 5.0)
    reported = LoaderSettings(batch_size=SAMPLES, workers=1, prefetch=2, augment=False, item_s=0.5)
    assert trial.model_dump(include=set(LoaderSettings.model_fields)) == reported.model_dump()


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
    """A loop does not take batches of another framework; those without a framework fit all."""
    slow_loader, _ = looped(1)
    slow_loader.framework = loader  # type: ignore[assignment]
    if fits:
        check_frameworks(slow_loader, consumer)
        return
    with pytest.raises(Unavailable, match="a torch training loop does not take tensorflow batches"):
        check_frameworks(slow_loader, consumer)


@pytest.mark.parametrize("name", ["tf-data", "mxnet-record"])
def test_decoded_images_are_for_loaders_that_read_them(name: str) -> None:
    """Other loaders are refused, since they would take pixels for an encoded image."""
    location = Location("/nowhere", "shards", decoded=True)
    context = Context({}, VirtualClock(), lambda done, unit: None)
    with pytest.raises(Unavailable, match="use raw, torch-iterable, torch-map"):
        create_loader(LoaderTrial(loader=name, data="", cache="warm"), location, context)


def test_a_loader_without_batches_fails_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loader of another package that yields tuples, like torch, fails with advice."""
    loader, _ = looped(1)
    assert [batch.samples for batch in epoch_batches(loader, 0)] == [SAMPLES]
    monkeypatch.setattr(loader, "epoch", lambda number: iter([("images", "labels")]))
    with pytest.raises(TrialFailed, match=r"yields tuple, not .* Batch\(images, labels, samples\)"):
        next(epoch_batches(loader, 0))


def trial(**changes: Any) -> TrainingTrial:
    """Return a loop of 100 steps with batches of 10 and 2 workers, unless ``changes`` differ."""
    settings = {"batch_size": 10, "steps": 100, "workers": 2, "prefetch": 2, **changes}
    (params,) = training_points(Training.model_validate({"inputs": "warm", **settings}))
    return TrainingTrial.model_validate(params)


DATA = DataSummary(samples=205, bytes=1, classes=2, files=())
FLOW = SampleFlow(round_samples=20, max_in_flight=64)


@pytest.mark.parametrize(
    ("changes", "full_batches", "expected"),
    [
        # In long epochs, steps count after all that can be in flight, for 20 rounds at least.
        ({}, [500, 400], (1, 7, 100)),
        ({"steps": 20}, [54], (1, 7, 40)),
        # Short epochs count as a whole, and each rank takes as many steps as all ranks have.
        ({"steps": 20}, [53], (3, 0, 53)),
        ({}, [40, 37, 41], (3, 0, 37)),
        ({}, [9, 12], (13, 0, 9)),
        ({"epochs": 5}, [500], (5, 0, 500)),
        ({"epochs": 2}, [500], (3, 0, 500)),
        # The epochs have no end.
        ({}, [], (1, 7, 100)),
    ],
)
def test_ranks_agree_on_their_steps(
    changes: dict[str, Any], full_batches: list[int], expected: tuple[int, int, int]
) -> None:
    """The plan has the epochs, the steps that are left out, and the steps that count."""
    assert plan_rank_steps(trial(**changes), FLOW, full_batches) == expected


def test_a_rank_without_a_batch_fails_them_all() -> None:
    """The reason says how many ranks share the images, and what to do."""
    reason = "205 images among 2 ranks with 2 workers have no full batch of 10 for each: use"
    with pytest.raises(TrialFailed, match=reason):
        check_full_batches(trial(), DATA, [9, 0])
    check_full_batches(trial(), DATA, [9, 1])
    check_full_batches(trial(), None, [])


def test_a_network_has_a_class_for_each_of_the_data() -> None:
    """The network has at least the thousand classes of ImageNet."""
    assert network_classes(None) == network_classes(DATA) == 1000
    assert network_classes(DataSummary(1, 1, 21_841, ())) == 21_841


class Counting(SlowLoader):
    """A loader that has fewer whole batches than its samples would make."""

    def whole_batches(self) -> int:
        """Return thirty."""
        return 30


def test_whole_batches_of_a_rank() -> None:
    """Two of three ranks have 30 of 89 samples; a loader that counts its batches decides itself."""
    for rank, batches in ((0, 3), (1, 3), (2, 2)):
        settings = LoaderSettings(batch_size=10, rank=rank, world_size=3)
        assert count_full_batches(looped(1)[0], settings, 89) == batches
    assert count_full_batches(Counting(None, settings, VirtualClock()), settings, 400) == 30


class Counted(SlowLoader):
    """A loader that counts what it reads, 8 samples ahead of the loop."""

    def read_so_far(self) -> ReadTotals:
        """Return 8 samples."""
        return ReadTotals(8, 80)

    def read_pattern(self, sample_bytes: float) -> ReadPattern:
        """Return windows of 1,000 bytes."""
        return ReadPattern(2, int(1_000 / sample_bytes), 3)


LOOP = LoaderTrial.model_validate({**PARAMS, "workers": 2})


def test_windows_depend_on_the_size_of_samples() -> None:
    """A loader that does not count is assumed to read batch by batch."""
    data = DataSummary(samples=10, bytes=100, classes=2, files=())
    batches = {"batch_size": SAMPLES, "workers": 2, "prefetch": 2}
    counted = Counted(None, LOOP, VirtualClock())
    assert loader_flow(counted, LOOP, data) == sample_flow(ReadPattern(2, 100, 3), **batches)
    assert loader_flow(looped(1)[0], LOOP, data) == sample_flow(ReadPattern(2), **batches)


@pytest.mark.parametrize(
    ("kind", "changes", "samples", "by_epochs", "rule"),
    [
        (Counted, {}, None, False, "steady"),
        (Counted, {}, "least", False, "steady"),
        (Counted, {}, "less", False, "epochs"),
        (Counted, {}, None, True, "epochs"),
        (Counted, {"access": "file"}, None, False, "epochs"),
        (SlowLoader, {}, None, False, "bounds"),
        (SlowLoader, {}, "least", True, "epochs"),
    ],
)
def test_which_rule_is_for_which_loader(
    kind: type[SlowLoader],
    changes: dict[str, Any],
    samples: str | None,
    by_epochs: bool,
    rule: str,
) -> None:
    """A steady rate needs a loader that counts and an epoch that is long enough."""
    settings = LOOP.model_copy(update=changes)
    loader = kind(None, settings, VirtualClock())
    min_epoch_samples = loader_flow(loader, settings, None).min_epoch_samples
    lengths = {None: None, "least": min_epoch_samples, "less": min_epoch_samples - 1}
    chosen = plan_rate(
        loader,
        settings,
        None,
        Minimum(),
        epoch_samples=lengths[samples],
        by_epochs=by_epochs,
        give_up_s=5.0,
    )
    assert (chosen.rule, chosen.give_up_s) == (rule, 5.0)


class EvictingCache:
    """A page cache in which files may stay while a loader is open."""

    def __init__(self, loaders: list[SlowLoader], stays: bool) -> None:
        self._loaders, self._stays = loaders, stays
        self.done: list[str] = []

    def judge_epoch(self, samples: int) -> None:
        """Note the samples of an epoch."""
        self.done.append(f"after {samples}")

    def prepare(self) -> bool:
        """Evict the files, and return whether some are still mapped."""
        is_mapped = self._stays and not self._loaders[-1].closed
        self.done.append("mapped" if is_mapped else "evicted")
        return is_mapped


@pytest.mark.parametrize("stays", [True, False])
def test_a_loader_is_made_again_only_if_its_files_stay(stays: bool) -> None:
    """Its workers end before the files are evicted, and notes of all loaders are kept once."""
    loaders: list[SlowLoader] = []

    def opened() -> SlowLoader:
        loader, _ = looped(2)
        loader.notes = ("a fake", f"loader {len(loaders)}")
        loaders.append(loader)
        return loader

    loader = ReopenedLoader(opened(), opened)
    cache: Any = EvictingCache(loaders, stays)
    times = driven(loader.request(0))
    loader.prepare_next_epoch(cache, times)
    assert cache.done == ["after 20", *(["mapped"] if stays else []), "evicted"]
    assert [opened_loader.closed for opened_loader in loaders] == [stays]
    assert sum(batch.samples for batch in loader.request(1)) == 20
    expected_epochs = [[0], [1]] if stays else [[0, 1]]
    assert [opened_loader.epochs for opened_loader in loaders] == expected_epochs
    assert loader.notes == ["a fake", "loader 0", *(["loader 1"] if stays else [])]
    assert loader.read_totals is None


def driven(batches: Iterator[Batch]) -> EpochTimings:
    """Return the timings of a loop over these batches."""
    clock = VirtualClock()
    return run_epoch(lambda: batches, warm(SlowConsumer, clock), clock, WholeEpoch())


def test_a_loader_that_is_made_again_counts_anew() -> None:
    """The count of arrived samples is that of the present loader."""
    loader = ReopenedLoader(Counted(None, LOOP, VirtualClock()), lambda: looped(1)[0])
    assert loader.read_totals is not None
    assert loader.read_totals() == ReadTotals(8, 80)


def test_a_loader_that_does_not_share_is_refused() -> None:
    """The message names loaders that do, and the setting for this one."""
    with pytest.raises(Unavailable, match=r"loader mine does not share .* processes: use "):
        check_shares_samples(looped(1)[0], "mine", "processes", "processes: 1")


def test_loaders_that_read_nothing_are_not_measured_by_epochs() -> None:
    """Whole epochs are no rule for them, since their epochs are nearly endless."""
    clock = VirtualClock()
    settings = LoopTrial(loader="mock", data="", epochs=2, item_s=0.01, workers=1)
    mock = MockLoader(None, settings, clock)
    minimum = Minimum(1)
    limits: dict[str, Any] = {"epoch_samples": None, "give_up_s": math.inf}
    rates = plan_rate(mock, settings, None, minimum, by_epochs=True, **limits)
    assert rates.rule == "steady"
