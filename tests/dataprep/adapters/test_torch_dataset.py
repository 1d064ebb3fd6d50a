"""Tests of dataprep.to_torch: both styles, without and with torch's DataLoader."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import dataprep
from dataprep.augment import Augmentation, sample_rng
from dataprep.errors import ConfigError, CorruptImage

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")
data_loader = torch.utils.data.DataLoader


class TestMap:
    def test_items(self, dataset: dataprep.Dataset) -> None:
        """Item i is sample i as bytes, with its 0-based label."""
        images = dataprep.to_torch(dataset)
        assert isinstance(images, torch.utils.data.Dataset)
        assert len(images) == 120
        assert [images[i] for i in range(120)] == [(bytes(s.image), s.label) for s in dataset]

    @pytest.mark.parametrize("index", [120, -1])
    def test_out_of_range(self, dataset: dataprep.Dataset, index: int) -> None:
        """What is not there is an IndexError, which also ends a plain loop."""
        with pytest.raises(IndexError, match=f"sample {index} of 120"):
            dataprep.to_torch(dataset)[index]

    def test_transform(self, dataset: dataprep.Dataset) -> None:
        """A transform is given the image and the generator of (seed, epoch, index)."""
        augmentation = Augmentation(size=32)
        images = dataprep.to_torch(dataset, transform=augmentation, seed=3)
        images.set_epoch(2)
        image, label = images[17]
        expected = augmentation(dataset[17].image, sample_rng(3, 2, 17))
        assert isinstance(image, torch.Tensor)
        assert np.array_equal(image.numpy(), expected)
        assert label == dataset[17].label

    @pytest.mark.parametrize("iterable", [False, True])
    def test_a_broken_image(self, dataset: dataprep.Dataset, iterable: bool) -> None:
        """What cannot be decoded is named: one among a million must be found."""

        def fail(image: Any, rng: np.random.Generator) -> Any:
            raise CorruptImage("truncated")

        images = dataprep.to_torch(dataset, iterable=iterable, transform=fail, shuffle=False)
        with pytest.raises(CorruptImage, match=r"^sample 0 \(.*00000.* at byte 0\): truncated$"):
            next(iter(data_loader(images, batch_size=None)))

    def test_another_transform(self, dataset: dataprep.Dataset) -> None:
        """Anything that takes image and generator will do."""
        images = dataprep.to_torch(dataset, transform=lambda image, rng: len(image))
        assert images[5] == (len(dataset[5].image), dataset[5].label)

    def test_sampler(self, dataset: dataprep.Dataset) -> None:
        """The order is of seed and epoch; unshuffled it is that of the data set."""
        images = dataprep.to_torch(dataset, seed=1)
        first = list(images.sampler)
        assert sorted(first) == list(range(120)) != first
        assert list(images.sampler) == first
        assert list(dataprep.to_torch(dataset, seed=1).sampler) == first
        assert list(dataprep.to_torch(dataset, seed=2).sampler) != first
        images.set_epoch(1)
        assert list(images.sampler) != first
        assert list(dataprep.to_torch(dataset, seed=1, epoch=1).sampler) == list(images.sampler)
        assert list(dataprep.to_torch(dataset, shuffle=False).sampler) == list(range(120))

    def test_ranks(self, dataset: dataprep.Dataset) -> None:
        """Ranks share the samples out, sizes differing by one at most."""
        parts = [
            dataprep.to_torch(dataset, seed=4, rank=rank, world_size=7).sampler for rank in range(7)
        ]
        assert sorted(index for part in parts for index in part) == list(range(120))
        assert {len(part) for part in parts} == {17, 18}
        assert [len(part) for part in parts] == [len(list(part)) for part in parts]


class TestIterable:
    def test_the_sequence_of_a_worker_is_known_beforehand(self, dataset: dataprep.Dataset) -> None:
        """Numbers, without reading: together every sample once; alone those of an iteration."""
        images = dataprep.to_torch(dataset, iterable=True, seed=3)
        images.set_epoch(1)
        labels = [label for _, label in images]
        alone = list(images.sequence(1))
        assert [int(images.records.labels[number]) for number in alone] == labels
        shares = [list(images.sequence(1, worker, 3)) for worker in range(3)]
        assert sorted(number for share in shares for number in share) == list(range(120))
        assert [len(share) for share in shares] == images.samples_by_worker(3, 1)
        assert list(images.sequence(2)) != alone

    def test_items(self, dataset: dataprep.Dataset) -> None:
        """Unshuffled it is the data set."""
        images = dataprep.to_torch(dataset, iterable=True, shuffle=False)
        assert isinstance(images, torch.utils.data.IterableDataset)
        assert list(images) == [(bytes(s.image), s.label) for s in dataset]

    def test_order(self, dataset: dataprep.Dataset) -> None:
        """Shards come one after the other, shuffled and shuffled within, by seed and epoch."""
        images = dataprep.to_torch(dataset, iterable=True, seed=1)
        first = list(images)
        assert sorted(first) == sorted((bytes(s.image), s.label) for s in dataset)
        assert list(images) == first
        images.set_epoch(1)
        assert list(images) != first
        place = {bytes(sample.image): number for number, sample in enumerate(dataset)}
        shards = dataset.samples["shard"].to_numpy()
        order = [int(shards[place[image]]) for image, _ in first]
        changes = sum(a != b for a, b in pairwise(order))
        assert changes == len(set(order)) - 1
        within = [place[image] for image, _ in first if shards[place[image]] == order[0]]
        assert within != sorted(within)

    def test_transform_is_that_of_the_map_style(self, dataset: dataprep.Dataset) -> None:
        """A sample is augmented in the same way, whichever style gives it."""
        options: dict[str, Any] = {"transform": Augmentation(size=32), "seed": 5, "epoch": 2}
        images = dataprep.to_torch(dataset, iterable=True, shuffle=False, **options)
        indexed = dataprep.to_torch(dataset, **options)
        for index, (image, _) in zip(range(9), images, strict=False):
            assert torch.equal(image, indexed[index][0])

    @pytest.mark.filterwarnings("ignore:This DataLoader will create")
    @pytest.mark.parametrize("workers", [0, 1, 2, 5])
    def test_workers_give_what_was_said(self, dataset: dataprep.Dataset, workers: int) -> None:
        """Samples by worker, known before anything is read, are those of torch's own workers."""
        images = dataprep.to_torch(dataset, iterable=True, seed=2)
        told = images.samples_by_worker(workers, epoch=0)
        assert (len(told), sum(told)) == (max(workers, 1), len(dataset))
        loader = torch.utils.data.DataLoader(
            images, batch_size=7, num_workers=workers, collate_fn=len
        )
        assert sorted(loader) == sorted(
            size for count in told for size in [7] * (count // 7) + [count % 7] if size
        )

    def test_ranks(self, dataset: dataprep.Dataset) -> None:
        """Ranks share the shards out; some may have none."""
        parts = [
            list(dataprep.to_torch(dataset, iterable=True, rank=rank, world_size=9))
            for rank in range(9)
        ]
        everything = sorted(pair for part in parts for pair in part)
        assert everything == sorted((bytes(s.image), s.label) for s in dataset)
        assert parts[-1] == []


@pytest.mark.parametrize("iterable", [False, True], ids=["map", "iterable"])
class TestDataLoader:
    def loader(self, images: Any, **options: Any) -> Any:
        """torch's own, two workers, nothing else said."""
        if hasattr(images, "sampler"):
            options["sampler"] = images.sampler
        return data_loader(images, batch_size=32, num_workers=2, **options)

    def test_default_collate(self, dataset: dataprep.Dataset, iterable: bool) -> None:
        """Items collate to a float32 batch and int64 labels without any help."""
        images = dataprep.to_torch(dataset, iterable=iterable, transform=Augmentation(size=32))
        batches = list(self.loader(images))
        assert batches[0][0].shape == (32, 3, 32, 32)
        assert batches[0][0].dtype == torch.float32
        assert batches[0][1].dtype == torch.int64
        labels = torch.cat([labels for _, labels in batches])
        assert sorted(labels.tolist()) == sorted(dataset.labels.tolist())

    def test_epoch_reaches_persistent_workers(
        self, dataset: dataprep.Dataset, iterable: bool
    ) -> None:
        """After ``set_epoch`` living workers shuffle and augment as new ones would."""
        options: dict[str, Any] = {"iterable": iterable, "transform": Augmentation(size=16)}
        images = dataprep.to_torch(dataset, **options)
        loader = self.loader(images, persistent_workers=True)
        first = torch.cat([batch for batch, _ in loader])
        images.set_epoch(1)
        second = torch.cat([batch for batch, _ in loader])
        assert not torch.equal(first, second)
        fresh = dataprep.to_torch(dataset, epoch=1, **options)
        assert torch.equal(second, torch.cat([batch for batch, _ in self.loader(fresh)]))

    def test_spawn(self, dataset: dataprep.Dataset, iterable: bool) -> None:
        """Workers that are started anew are sent everything they need."""
        images = dataprep.to_torch(dataset, iterable=iterable)
        loader = self.loader(images, multiprocessing_context="spawn")
        assert sum(len(labels) for _, labels in loader) == 120

    def test_pickle(self, dataset: dataprep.Dataset, iterable: bool) -> None:
        """A data set survives pickling, epoch included."""
        images = dataprep.to_torch(dataset, iterable=iterable, epoch=3)
        copy = pickle.loads(pickle.dumps(images))
        assert next(iter(copy)) == next(iter(images))


@pytest.mark.parametrize(("rank", "world_size"), [(1, 1), (-1, 2), (0, 0)])
def test_no_such_rank(dataset: dataprep.Dataset, rank: int, world_size: int) -> None:
    """A rank outside is refused at once."""
    with pytest.raises(ConfigError, match=f"rank {rank} of {world_size}"):
        dataprep.to_torch(dataset, rank=rank, world_size=world_size)
