"""Ranks of ``dataprep.to_torch`` divide an epoch, with samplers and by the environment."""

from __future__ import annotations

import logging
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import dataprep
from dataprep.errors import ConfigError
from dataprep.reading.augment import Augmentation
from dataprep.reading.dataset import Dataset
from dataprep.reading.ranks import rank_of
from tests.dataprep.reading.torch_training import FEW_CORES, SAMPLES

torch = pytest.importorskip("torch")
data_loader = torch.utils.data.DataLoader
SMALL = Augmentation(size=8)


@pytest.fixture(scope="module")
def dataset(output: Path) -> Dataset:
    """A data set of 120 samples in several shards."""
    return dataprep.open(output)


class TestMapStyleOfRanks:
    """In the map style, each rank has a part of its own."""

    def test_a_start_within_an_epoch_leaves_no_sample_out(self, dataset: Dataset) -> None:
        """The start belongs to the sampler, and the part of a rank is the same in every epoch."""
        for rank in range(2):
            batches = dataprep.to_torch(dataset, rank=rank, world_size=2)
            resumed = dataprep.to_torch(dataset, rank=rank, world_size=2, start=50)
            assert len(resumed.sampler) == 35
            assert [resumed[i] for i in range(len(resumed))] == [batches[i] for i in range(60)]

    @pytest.mark.parametrize("even", ["keep", "drop", "pad"])
    @pytest.mark.parametrize("world_size", [1, 2, 7, 8])
    def test_any_sampler_reads_each_sample_once(
        self, dataset: Dataset, numbers: dict[bytes, int], world_size: int, even: Any
    ) -> None:
        """``shuffle=True`` on all ranks reads each sample once, in every epoch the same parts."""
        parts = []
        for rank in range(world_size):
            images = dataprep.to_torch(dataset, rank=rank, world_size=world_size, even=even)
            first, second = (
                {
                    numbers[image]
                    for batch, _ in data_loader(images, 5, shuffle=True)
                    for image in batch
                }
                for _ in range(2)
            )
            assert first == second
            assert len(images) == len({*range(len(images))})
            parts.append(first)
            with pytest.raises(IndexError, match=f"sample {len(images)} of {len(images)}"):
                images[len(images)]
            images.set_epoch(5)
            assert {numbers[images[i][0]] for i in range(len(images))} == first
        everything = set().union(*parts)
        if even == "keep" or SAMPLES % world_size == 0:
            assert sum(map(len, parts)) == SAMPLES == len(everything)
        assert len({len(part) for part in parts}) <= (2 if even == "keep" else 1)
        if even == "drop":
            assert sum(map(len, parts)) == len(everything) == SAMPLES // world_size * world_size
        if even == "pad":
            assert len(everything) == SAMPLES

    def test_the_sampler_mixes_all_ranks(self, dataset: Dataset, numbers: dict[bytes, int]) -> None:
        """Ranks together read all samples in each epoch, each rank other samples every time."""
        ranks = [dataprep.to_torch(dataset, rank=rank, world_size=3) for rank in range(3)]
        epochs = []
        for _ in range(2):
            parts = [[numbers[images[i][0]] for i in images.sampler] for images in ranks]
            assert sorted(number for part in parts for number in part) == list(range(SAMPLES))
            assert [len(images.sampler) for images in ranks] == [len(part) for part in parts]
            epochs.append(set(parts[0]))
        assert epochs[0] != epochs[1]

    @FEW_CORES
    @pytest.mark.process
    @pytest.mark.smoke
    @pytest.mark.parametrize("persistent", [False, True])
    def test_the_sampler_starts_the_next_epoch(self, dataset: Dataset, persistent: bool) -> None:
        """Order and augmentation are those of ``set_epoch``, also of two iterators at once."""
        images = dataprep.to_torch(dataset, transform=SMALL, rank=1, world_size=2)

        def expected_images(epoch: int) -> Any:
            images = dataprep.to_torch(dataset, transform=SMALL, rank=1, world_size=2)
            images.set_epoch(epoch)
            return torch.stack([images[i][0] for i in images.sampler])

        loader = data_loader(
            images, 8, sampler=images.sampler, num_workers=2, persistent_workers=persistent
        )
        next(iter(loader))
        assert torch.equal(torch.cat([batch for batch, _ in loader]), expected_images(1))
        if not persistent:
            old, new = iter(loader), iter(loader)
            next(old)
            assert torch.equal(torch.cat([batch for batch, _ in new]), expected_images(3))
            assert torch.equal(torch.cat([batch for batch, _ in old]), expected_images(2)[8:])
        images.set_epoch(7)
        assert torch.equal(torch.cat([batch for batch, _ in loader]), expected_images(7))

    @FEW_CORES
    @pytest.mark.process
    @pytest.mark.parametrize("context", [pytest.param("fork", marks=pytest.mark.smoke), "spawn"])
    def test_persistent_workers_augment_by_the_epoch_that_is_set(
        self, dataset: Dataset, context: str
    ) -> None:
        """Persistent workers augment by the set epoch, even with a sampler of torch."""
        images = dataprep.to_torch(dataset, transform=SMALL)
        loader = data_loader(
            images,
            8,
            shuffle=True,
            num_workers=2,
            persistent_workers=True,
            multiprocessing_context=context,
        )
        for epoch in (4, 5, 2):
            images.set_epoch(epoch)
            alone = dataprep.to_torch(dataset, transform=SMALL, epoch=epoch)
            expected = {alone[i][0].numpy().tobytes() for i in range(SAMPLES)}
            read = [image.numpy().tobytes() for batch, _ in loader for image in batch]
            assert len(read) == SAMPLES
            is_of_the_epoch = {*read} == expected  # a failed test need not show all pixels
            assert is_of_the_epoch, f"epoch {epoch}"

    def test_frameworks_may_set_the_epoch_of_the_sampler(self, dataset: Dataset) -> None:
        """Lightning and Accelerate call ``set_epoch`` of a sampler, not of its data set."""
        images = dataprep.to_torch(dataset, transform=SMALL)
        list(images.sampler)
        images.sampler.set_epoch(5)
        by_sampler = torch.stack([images[i][0] for i in images.sampler])
        images.set_epoch(5)
        assert torch.equal(by_sampler, torch.stack([images[i][0] for i in images.sampler]))

    def test_a_warning_where_epochs_are_not_set(self, dataset: Dataset) -> None:
        """One warning is given if all samples were read and no epoch was set."""
        images = dataprep.to_torch(dataset, transform=SMALL)
        loader = data_loader(images, 50, shuffle=True)
        for epoch in range(3):
            images.set_epoch(epoch)
            list(loader)
        with pytest.warns(UserWarning, match="120 samples were read without a call of set_epoch"):
            list(loader)
        list(loader)
        for _ in range(3):
            list(data_loader(dataprep.to_torch(dataset), 50))
            list(data_loader(images, 50, sampler=images.sampler))
        centre = Augmentation(size=8, random=False)
        still = dataprep.to_torch(dataset, transform=centre)
        for _ in range(2):
            list(data_loader(still, 50))
        of_pillow = dataprep.to_torch(dataset, transform=lambda image: image.width)
        for _ in range(2):
            list(data_loader(of_pillow, 50))

    @FEW_CORES
    @pytest.mark.process
    def test_the_warning_counts_all_workers(
        self, dataset: Dataset, capfd: pytest.CaptureFixture[str]
    ) -> None:
        """Each worker reads only a part, and its warning is written to stderr."""
        images = dataprep.to_torch(dataset, transform=SMALL)
        loader = data_loader(images, 30, num_workers=2, worker_init_fn=_show_warnings)
        list(loader)
        assert "set_epoch" not in capfd.readouterr().err
        for _ in range(2):
            list(loader)
        errors = capfd.readouterr().err
        assert errors.count("120 samples were read without a call of set_epoch") == 1


def _write_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Write a warning to stderr."""
    sys.stderr.write(f"{message}\n")


def _show_warnings(worker: int) -> None:
    """Show warnings as outside of pytest, which captures them."""
    warnings.simplefilter("default")
    setattr(warnings, "showwarning", _write_warning)  # noqa: B010


class TestRankOfTheEnvironment:
    """If no rank is given, some readers take it from the environment."""

    @pytest.fixture
    def second_of_three(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """torch.distributed as rank 1 of 3 sees it. ``test_ranks`` has real processes."""
        monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
        monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 3)

    @pytest.mark.usefixtures("second_of_three")
    @pytest.mark.parametrize(
        "options",
        [{"iterable": True}, {"iterable": True, "batch_size": 4}, {"batch_size": 4}],
        ids=str,
    )
    def test_torch_distributed(
        self, dataset: Dataset, options: dict[str, Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        """A reader that only this package can divide takes the rank of torch.distributed."""
        caplog.set_level(logging.INFO, "dataprep")
        numbers_read = list(map(str, dataprep.to_torch(dataset, **options)))
        (line,) = [record.getMessage() for record in caplog.records]
        assert line.startswith("to_torch reads as rank 1 of 3, from torch.distributed")
        stated = dataprep.to_torch(dataset, rank=1, world_size=3, **options)
        assert numbers_read == list(map(str, stated))
        batches = dataprep.to_torch(dataset, rank=0, world_size=1, **options)
        assert batches.state_dict()["samples"] == 0
        assert sum(1 for _ in batches) > 2 * len(numbers_read)
        assert len(caplog.records) == 1

    @pytest.mark.usefixtures("second_of_three")
    def test_the_map_style_warns(self, dataset: Dataset) -> None:
        """A DistributedSampler may divide the map style, which warns unless a rank is given."""
        with pytest.warns(UserWarning, match="to_torch reads all .* torch.distributed has 3"):
            images = dataprep.to_torch(dataset)
        assert len(images) == SAMPLES
        assert len(dataprep.to_torch(dataset, rank=0, world_size=1)) == SAMPLES

    @pytest.mark.usefixtures("second_of_three")
    @pytest.mark.parametrize("reader", ["to_tf", "to_mxnet"])
    def test_readers_of_other_frameworks_warn(self, reader: str) -> None:
        """Readers of other frameworks take no rank from torch.distributed, and warn."""
        message = (
            f"{reader} reads all samples in this process, but torch.distributed has 3 processes"
        )
        with pytest.warns(UserWarning, match=message):
            assert rank_of(None, None, reader) == (0, 1)

    @pytest.mark.parametrize("iterable", [False, True])
    def test_world_size_alone(
        self, dataset: Dataset, monkeypatch: pytest.MonkeyPatch, iterable: bool
    ) -> None:
        """The world size of a launcher causes a warning, and is not used as a rank."""
        for processes in (2, 8):
            monkeypatch.setenv("WORLD_SIZE", str(processes))
            with pytest.warns(UserWarning, match=f"SIZE says {processes} processes: give rank"):
                dataprep.to_torch(dataset, iterable=iterable)
        dataprep.to_torch(dataset, iterable=iterable, rank=0, world_size=1)
        for size in ("1", "", "eight"):
            monkeypatch.setenv("WORLD_SIZE", size)
            dataprep.to_torch(dataset, iterable=iterable)

    def test_half_a_rank(self, dataset: Dataset) -> None:
        """A rank without a number of ranks, and the reverse, is refused."""
        halves: list[dict[str, Any]] = [{"rank": 1}, {"world_size": 4}]
        for options in halves:
            with pytest.raises(ConfigError, match="give both, or neither"):
                dataprep.to_torch(dataset, **options)
