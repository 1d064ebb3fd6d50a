"""``dataprep.to_torch`` gives samples and batches, with and without torch's DataLoader."""

from __future__ import annotations

import gc
import pickle
import threading
from collections import Counter
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dataprep
from dataprep.errors import ConfigError, CorruptImage
from dataprep.reading.augment import Augmentation, sample_rng
from dataprep.reading.dataset import Dataset
from tests.dataprep.reading.conftest import stored_samples
from tests.dataprep.reading.torch_training import FEW_CORES, STATEFUL, STYLES

torch = pytest.importorskip("torch")
data_loader = torch.utils.data.DataLoader
SMALL = Augmentation(size=24)


@pytest.fixture
def dataset(output: Path) -> Dataset:
    """The data set. ``test_record_reader`` covers both formats."""
    return dataprep.open(output)


def loader(samples: Any, size: int | None, workers: int = 0, **options: Any) -> Any:
    """torch's DataLoader, with the sampler of the map style."""
    if hasattr(samples, "sampler"):
        options["sampler"] = samples.sampler
    return data_loader(samples, batch_size=size, num_workers=workers, **options)


def same(ours: list[Any], others: list[Any]) -> bool:
    """Whether two lists of batches are equal, images and labels."""
    if len(ours) != len(others):
        return False
    for (images, labels), (other_images, other_labels) in zip(ours, others, strict=True):
        if not (torch.equal(images, other_images) and torch.equal(labels, other_labels)):
            return False
    return True


class TestMapStyle:
    def test_items(self, dataset: Dataset) -> None:
        """Item i is sample i as bytes, with its 0-based label."""
        images = dataprep.to_torch(dataset)
        assert isinstance(images, torch.utils.data.Dataset)
        assert [images[i] for i in range(len(images))] == stored_samples(dataset)
        for index in (120, -1):
            with pytest.raises(IndexError, match=f"sample {index} of 120"):
                images[index]

    def test_transform(self, dataset: Dataset) -> None:
        """The transform is called with the image and the generator of (seed, epoch, index)."""
        images = dataprep.to_torch(dataset, transform=SMALL, seed=3)
        images.set_epoch(2)
        image, label = images[17]
        assert np.array_equal(image.numpy(), SMALL(dataset[17].image, sample_rng(3, 2, 17)))
        assert label == dataset[17].label
        sizes = dataprep.to_torch(dataset, transform=lambda image, rng: len(image))
        assert sizes[5] == (len(dataset[5].image), dataset[5].label)

    def test_sampler(self, dataset: Dataset) -> None:
        """The order depends on seed and epoch. Without shuffling it is that of the data set."""
        images = dataprep.to_torch(dataset, seed=1)
        first = list(images.sampler)
        assert sorted(first) == list(range(120)) != first
        assert list(dataprep.to_torch(dataset, seed=1).sampler) == first
        second = list(images.sampler)
        assert second != first
        assert list(dataprep.to_torch(dataset, seed=1, epoch=1).sampler) == second
        images.set_epoch(1)
        assert list(images.sampler) == second
        assert list(dataprep.to_torch(dataset, shuffle=False).sampler) == list(range(120))

    def test_ranks(self, dataset: Dataset) -> None:
        """Ranks share the samples in both styles, and their sizes differ by one at most."""
        parts = [
            dataprep.to_torch(dataset, seed=4, rank=rank, world_size=7).sampler for rank in range(7)
        ]
        assert sorted(index for part in parts for index in part) == list(range(120))
        assert {len(part) for part in parts} == {17, 18}
        assert [len(part) for part in parts] == [len(list(part)) for part in parts]
        streams = [
            list(dataprep.to_torch(dataset, iterable=True, rank=rank, world_size=9))
            for rank in range(9)
        ]
        assert sorted(pair for part in streams for pair in part) == sorted(stored_samples(dataset))
        assert {len(part) for part in streams} == {13, 14}


class TestIterableStyle:
    def test_unshuffled(self, dataset: Dataset) -> None:
        """Without shuffling the samples are those of the data set, also with a buffer."""
        images = dataprep.to_torch(dataset, iterable=True, shuffle=False)
        assert isinstance(images, torch.utils.data.IterableDataset)
        assert list(images) == stored_samples(dataset)
        options: dict[str, Any] = {"shuffle": False, "shuffle_buffer": 20}
        assert list(dataprep.to_torch(dataset, iterable=True, **options)) == stored_samples(dataset)

    def test_order(self, dataset: Dataset) -> None:
        """Shards follow one another, shuffled among and within themselves, by seed and epoch."""
        images = dataprep.to_torch(dataset, iterable=True, seed=1)
        first = list(images)
        assert sorted(first) == sorted(stored_samples(dataset))
        images.set_epoch(0)
        assert list(images) == first
        assert list(images) != first
        number_by_image = {
            image: number for number, (image, _) in enumerate(stored_samples(dataset))
        }
        numbers = [number_by_image[image] for image, _ in first]
        shards = dataset.places.shards[numbers].tolist()
        assert sum(a != b for a, b in pairwise(shards)) == len(set(shards)) - 1
        assert shards != sorted(shards)
        within = [number for number, shard in zip(numbers, shards, strict=True) if shard == 0]
        assert within != sorted(within)

    def test_sequence(self, dataset: Dataset) -> None:
        """The numbers of a worker's samples are known without reading."""
        images = dataprep.to_torch(dataset, iterable=True, seed=3, epoch=1)
        labels = [label for _, label in images]
        assert [int(dataset.labels[number]) for number in images.samples_of_worker(1)] == labels
        parts = [images.samples_of_worker(1, worker, 3).tolist() for worker in range(3)]
        assert sorted(number for part in parts for number in part) == list(range(120))
        assert [len(part) for part in parts] == [images.samples_in_epoch(w, 3) for w in range(3)]

    def test_samples_are_those_of_the_map_style(self, dataset: Dataset) -> None:
        """A sample is augmented in the same way in both styles."""
        options: dict[str, Any] = {"transform": SMALL, "seed": 5, "epoch": 2}
        images = dataprep.to_torch(dataset, iterable=True, shuffle=False, **options)
        indexed = dataprep.to_torch(dataset, **options)
        for index, (image, _) in zip(range(9), images, strict=False):
            assert torch.equal(image, indexed[index][0])

    @FEW_CORES
    @pytest.mark.parametrize("workers", [0, 1, 5])
    @pytest.mark.parametrize("buffer", [0, 10])
    def test_workers_share_the_shards(self, dataset: Dataset, workers: int, buffer: int) -> None:
        """Workers together give every sample once, each of them the announced number."""
        images = dataprep.to_torch(dataset, iterable=True, seed=2, shuffle_buffer=buffer)
        sample_counts = Counter(map(tuple, loader(images, None, workers)))
        assert sample_counts == Counter(stored_samples(dataset))
        sizes = list(loader(images, 7, workers, collate_fn=len))
        counts = [images.samples_in_epoch(w, workers or 1) for w in range(workers or 1)]
        assert Counter(sizes)[7] == sum(count // 7 for count in counts)
        assert sum(counts) == 120

    @pytest.mark.parametrize("buffer", [1, 60, 1000])
    def test_a_buffer_mixes_shards(self, dataset: Dataset, buffer: int) -> None:
        """Every sample comes once, in an order of seed and epoch, also in batches."""
        options: dict[str, Any] = {"iterable": True, "shuffle_buffer": buffer, "seed": 1}
        samples = list(dataprep.to_torch(dataset, **options))
        assert Counter(samples) == Counter(stored_samples(dataset))
        images = dataprep.to_torch(dataset, **options)
        assert list(images) == samples
        with pytest.raises(ConfigError, match="has to be 0 to resume"):
            images.state_dict()
        assert list(dataprep.to_torch(dataset, epoch=1, **options)) != samples
        batches = dataprep.to_torch(dataset, batch_size=16, **options)
        assert [image for images, _ in batches for image in images] == [
            image for image, _ in samples
        ]
        number_by_image = {
            image: number for number, (image, _) in enumerate(stored_samples(dataset))
        }
        shards = [int(dataset.places.shards[number_by_image[image]]) for image, _ in samples]
        assert buffer == 1 or sum(a != b for a, b in pairwise(shards)) > 30


@STYLES
class TestBothStyles:
    def test_default_collate(self, dataset: Dataset, iterable: bool) -> None:
        """DataLoader makes float32 batches with int64 labels in its workers."""
        images = dataprep.to_torch(dataset, iterable=iterable, transform=SMALL)
        batches = list(loader(images, 32, 2))
        assert batches[0][0].shape == (32, 3, 24, 24)
        assert (batches[0][0].dtype, batches[0][1].dtype) == (torch.float32, torch.int64)
        labels = torch.cat([labels for _, labels in batches])
        assert sorted(labels.tolist()) == sorted(dataset.labels.tolist())

    @pytest.mark.slow
    def test_persistent_workers_see_the_epoch(self, dataset: Dataset, iterable: bool) -> None:
        """After ``set_epoch``, running workers shuffle and augment as new ones would."""
        options: dict[str, Any] = {"iterable": iterable, "transform": SMALL}
        images = dataprep.to_torch(dataset, **options)
        persistent = loader(images, 32, 2, persistent_workers=True)
        first = list(persistent)
        images.set_epoch(1)
        second = list(persistent)
        assert not same(first, second)
        assert same(second, list(loader(dataprep.to_torch(dataset, epoch=1, **options), 32, 2)))

    @pytest.mark.slow
    def test_spawned_workers(self, dataset: Dataset, iterable: bool) -> None:
        """A data set can be pickled with its epoch, which spawned workers need."""
        images = dataprep.to_torch(dataset, iterable=iterable, epoch=3)
        spawned = loader(images, 32, 2, multiprocessing_context="spawn")
        assert sum(len(labels) for _, labels in spawned) == 120
        copy = pickle.loads(pickle.dumps(images))
        assert next(iter(copy)) == next(iter(images))

    @pytest.mark.parametrize("size", [None, 4])
    def test_a_broken_image(self, dataset: Dataset, iterable: bool, size: int | None) -> None:
        """The error names the sample, so that one of a million can be found."""

        def fails(data: Any, rng: np.random.Generator) -> Any:
            raise CorruptImage("truncated")

        class Fails(Augmentation):
            def part(self, *_: Any) -> Any:
                raise CorruptImage("truncated")

        options: dict[str, Any] = {"iterable": iterable, "shuffle": False, "batch_size": size}
        for transform in (Fails(), fails):
            samples = dataprep.to_torch(dataset, transform=transform, **options)
            with pytest.raises(CorruptImage, match=r"^sample 0 \(.*00000.* at byte 0\): truncated"):
                next(iter(loader(samples, None)))


@STYLES
class TestBatches:
    @pytest.mark.parametrize("threads", [None, 0, 3])
    @pytest.mark.parametrize("buffer", [False, True], ids=["", "buffer"])
    def test_they_are_the_samples(
        self, dataset: Dataset, iterable: bool, threads: int | None, buffer: bool
    ) -> None:
        """Batches equal DataLoader's batches of single samples, with any number of threads."""
        options: dict[str, Any] = {"iterable": iterable, "transform": SMALL, "seed": 3, "epoch": 1}
        options["shuffle_buffer"] = 9 if buffer and iterable else 0
        batches = dataprep.to_torch(dataset, batch_size=50, threads=threads, **options)
        batch_list = list(batches)
        assert [tuple(images.shape) for images, _ in batch_list] == [
            (count, 3, 24, 24) for count in (50, 50, 20)
        ]
        assert len(batches) == 3
        assert {labels.dtype for _, labels in batch_list} == {torch.int64}
        assert same(batch_list, list(loader(dataprep.to_torch(dataset, **options), 50)))

    @pytest.mark.parametrize("layout", ["CHW", "HWC"])
    @pytest.mark.parametrize("normalise", [True, False])
    def test_layouts(self, dataset: Dataset, iterable: bool, layout: Any, normalise: bool) -> None:
        """A batch has the layout and type of the augmentation."""
        transform = Augmentation(size=16, layout=layout, normalise=normalise, jitter=0.4, noise=0.1)
        options: dict[str, Any] = {"iterable": iterable, "transform": transform}
        batch_list = list(dataprep.to_torch(dataset, batch_size=32, **options))
        assert batch_list[0][0].shape == (32, *transform.shape)
        assert batch_list[0][0].dtype == (torch.float32 if normalise else torch.uint8)
        assert same(batch_list, list(loader(dataprep.to_torch(dataset, **options), 32)))

    def test_other_transforms(self, dataset: Dataset, iterable: bool) -> None:
        """Numbers, arrays and dicts are collated as in DataLoader, and bytes stay a list."""

        def both(image: Any, rng: np.random.Generator) -> Any:
            return {"size": len(image), "drawn": rng.random(3)}

        options: dict[str, Any] = {"iterable": iterable, "shuffle": False, "batch_size": 7}
        batch, labels = next(iter(dataprep.to_torch(dataset, transform=both, **options)))
        assert batch["size"].tolist() == [len(dataset[i].image) for i in range(7)]
        assert batch["drawn"].shape == (7, 3)
        assert labels.tolist() == dataset.labels[:7].tolist()
        images, _ = next(iter(dataprep.to_torch(dataset, **options)))
        assert images == [bytes(dataset[i].image) for i in range(7)]

    def test_epochs(self, dataset: Dataset, iterable: bool) -> None:
        """Each epoch differs and can be repeated, also by a pickled copy."""
        batches = dataprep.to_torch(dataset, iterable=iterable, transform=SMALL, batch_size=60)
        first = list(batches)
        assert not same(first, list(batches))
        batches.set_epoch(0)
        copy = pickle.loads(pickle.dumps(batches))
        assert same(first, list(batches))
        assert same(first, list(copy))

    def test_drop_last(self, dataset: Dataset, iterable: bool) -> None:
        """A smaller last batch is dropped on request."""
        options: dict[str, Any] = {"iterable": iterable, "batch_size": 50, "drop_last": True}
        batches = dataprep.to_torch(dataset, **options)
        assert [len(labels) for _, labels in batches] == [50, 50] == [50] * len(batches)

    def test_ranks(self, dataset: Dataset, iterable: bool) -> None:
        """Each rank has batches of its own part, and together they have all samples."""
        labels: list[int] = []
        for rank in range(3):
            batches = dataprep.to_torch(
                dataset, iterable=iterable, batch_size=9, rank=rank, world_size=3
            )
            results = [part.tolist() for _, part in batches]
            assert len(results) == len(batches)
            labels += [label for part in results for label in part]
        assert sorted(labels) == sorted(dataset.labels.tolist())

    @pytest.mark.parametrize(
        "view",
        [
            lambda images: images[1:],
            lambda images: images.numpy(),
            lambda images: images.view(-1)[5:6],
            lambda images: memoryview(images.numpy()[2].T),
        ],
        ids=["slice", "array", "element", "buffer"],
    )
    def test_a_batch_does_not_change(self, dataset: Dataset, iterable: bool, view: Any) -> None:
        """A batch keeps its values while it or a view is referenced.

        Then its memory is used again.
        """
        batches = dataprep.to_torch(
            dataset, iterable=iterable, transform=SMALL, batch_size=10, prefetch=1
        )
        views, copies_of_views, addresses = [], [], set()
        for images, _ in batches:
            views.append(view(images))
            copies_of_views.append(view(images.clone()))
            addresses.add(images.data_ptr())
        assert len(addresses) == 12
        assert all(np.array_equal(*pair) for pair in zip(views, copies_of_views, strict=True))
        del images, views
        gc.collect()
        assert len({images.data_ptr() for images, _ in batches}) < 12

    def test_ended_early(self, dataset: Dataset, iterable: bool) -> None:
        """A closed iterator leaves no thread behind."""
        before = set(threading.enumerate())
        options: dict[str, Any] = {"iterable": iterable, "transform": SMALL, "batch_size": 4}
        batches: Any = iter(dataprep.to_torch(dataset, threads=3, prefetch=9, **options))
        next(batches)
        assert set(threading.enumerate()) - before
        batches.close()
        assert not set(threading.enumerate()) - before

    @pytest.mark.parametrize("even", ["keep", "drop", "pad"])
    @pytest.mark.parametrize("world_size", [1, 2, 5])
    def test_it_goes_on(self, dataset: Dataset, iterable: bool, even: Any, world_size: int) -> None:
        """After two steps on three ranks, other ranks have the other samples in full batches."""
        options: dict[str, Any] = {"iterable": iterable, "even": even, "epoch": 2, "seed": 3}
        numbers = {image: number for number, (image, _) in enumerate(stored_samples(dataset))}

        def batches_of_rank(rank: int, world_size: int, **more: Any) -> Any:
            size = dataprep.per_rank_batch(25, rank, world_size)
            spread: dict[str, Any] = {"rank": rank, "world_size": world_size, "global_batch": 25}
            return dataprep.to_torch(dataset, batch_size=size, **spread, **options, **more)

        def read(batches: Any) -> list[int]:
            return [numbers[image] for images, _ in batches for image in images]

        before = []
        for rank in range(3):
            batches = batches_of_rank(rank, 3)
            state = batches.state_dict()
            assert (state["epoch"], state["seed"], state["samples"]) == (2, 3, 0)
            before += read(islice(batches, 2))
        state = batches.state_dict()
        assert (state["epoch"], state["seed"], state["samples"]) == (2, 3, 50)
        after = []
        for rank in range(world_size):
            resumed = batches_of_rank(rank, world_size)
            resumed.load_state_dict(state)
            content = read(resumed)
            assert content == read(batches_of_rank(rank, world_size, start=50))
            after += content
            resumed.set_epoch(3)
            assert len(read(resumed)) == sum(
                len(part) for _, part in batches_of_rank(rank, world_size)
            )
        counts = Counter(before + after)
        assert max(counts.values()) == (2 if even == "pad" else 1)
        assert len(counts) == (100 if even == "drop" else 120)

    @FEW_CORES
    @pytest.mark.parametrize("number", [1, 3])
    def test_in_workers(self, dataset: Dataset, iterable: bool, number: int) -> None:
        """Workers make the batches of one process, and a running worker uses a new epoch."""
        options: dict[str, Any] = {"iterable": iterable, "transform": SMALL, "batch_size": 16}
        batches = dataprep.to_torch(dataset, seed=8, **options)
        workers = data_loader(batches, batch_size=None, num_workers=number, persistent_workers=True)
        for epoch in range(2):
            batches.set_epoch(epoch)
            batch_list = list(workers)
            assert same(
                batch_list, list(dataprep.to_torch(dataset, seed=8, epoch=epoch, **options))
            )
            assert all(images.is_shared() for images, _ in batch_list)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size is at least 1"),
        ({"batch_size": 4, "threads": -1}, "threads and prefetch are at least 0"),
        ({"prefetch": -1}, "threads and prefetch are at least 0"),
        ({"shuffle_buffer": -1, "iterable": True}, "shuffle_buffer -1: give 0 for no buffer"),
        ({"shuffle_buffer": 10}, "for the iterable style only"),
        ({"rank": 2, "world_size": 2}, "rank 2 of 2"),
        ({"batch_size": 4, "global_batch": 9}, "rank 0 of 1 has 9 samples of a global batch of 9"),
        ({"iterable": True, "shuffle_buffer": 9, "start": 4}, "has to be 0 to resume"),
    ],
    ids=str,
)
def test_out_of_range(dataset: Dataset, options: dict[str, Any], message: str) -> None:
    """A value out of range is refused when the object is created."""
    with pytest.raises(ConfigError, match=message):
        dataprep.to_torch(dataset, **options)


@FEW_CORES
@STYLES
@STATEFUL
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("size", [None, 8])
def test_stateful_data_loader(
    dataset: Dataset, iterable: bool, workers: int, size: int | None
) -> None:
    """torchdata's DataLoader continues after any batch, of single samples and of whole batches."""
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader

    def opened() -> Any:
        options: dict[str, Any] = {"iterable": iterable, "batch_size": size, "seed": 4}
        images = dataprep.to_torch(dataset, **options)
        sampler = {"sampler": images.sampler} if hasattr(images, "sampler") else {}
        batches = {} if size else {"batch_size": 8}
        return stateful(images, num_workers=workers, **{"batch_size": None} | batches | sampler)

    all_batches = [tuple(images) for images, _ in opened()]
    for batch_count in (1, 4):
        loader = opened()
        before = [tuple(images) for images, _ in islice(loader, batch_count)]
        state = loader.state_dict()
        resumed = opened()
        resumed.load_state_dict(state)
        assert before + [tuple(images) for images, _ in resumed] == all_batches
