"""Tests of batches from dataprep.to_torch, without and with torch's DataLoader."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import numpy as np
import pytest

import dataprep
from dataprep.augment import Augmentation
from dataprep.errors import ConfigError, CorruptImage

torch = pytest.importorskip("torch")
SMALL = Augmentation(size=24)


def plain(dataset: dataprep.Dataset, size: int, **options: Any) -> list[Any]:
    """What torch's DataLoader makes of the samples in this process."""
    samples = dataprep.to_torch(dataset, **options)
    loader = torch.utils.data.DataLoader(
        samples, batch_size=size, sampler=getattr(samples, "sampler", None)
    )
    return list(loader)


def same(ours: list[Any], others: list[Any]) -> bool:
    """Whether two lists of batches are equal, images and labels."""
    return len(ours) == len(others) and all(
        torch.equal(images, other_images) and torch.equal(labels, other_labels)
        for (images, labels), (other_images, other_labels) in zip(ours, others, strict=True)
    )


@pytest.mark.parametrize("iterable", [False, True], ids=["map", "iterable"])
class TestBatches:
    @pytest.mark.parametrize("threads", [None, 0, 1, 3])
    def test_are_the_samples(
        self, dataset: dataprep.Dataset, iterable: bool, threads: int | None
    ) -> None:
        """They are what DataLoader puts together, in its order, at any number of threads."""
        options: dict[str, Any] = {"iterable": iterable, "transform": SMALL, "seed": 3, "epoch": 1}
        batches = dataprep.to_torch(dataset, batch_size=50, threads=threads, **options)
        made = list(batches)
        assert [tuple(images.shape) for images, _ in made] == [
            (count, 3, 24, 24) for count in (50, 50, 20)
        ]
        assert len(batches) == 3
        assert {labels.dtype for _, labels in made} == {torch.int64}
        assert same(made, plain(dataset, 50, **options))

    @pytest.mark.parametrize("layout", ["CHW", "HWC"])
    @pytest.mark.parametrize("normalise", [True, False])
    def test_layouts(
        self, dataset: dataprep.Dataset, iterable: bool, layout: Any, normalise: bool
    ) -> None:
        """Whatever the augmentation makes, a batch holds it."""
        transform = Augmentation(size=16, layout=layout, normalise=normalise, jitter=0.4, noise=0.1)
        options: dict[str, Any] = {"iterable": iterable, "transform": transform}
        made = list(dataprep.to_torch(dataset, batch_size=32, **options))
        assert made[0][0].shape == (32, *transform.shape)
        assert made[0][0].dtype == (torch.float32 if normalise else torch.uint8)
        assert same(made, plain(dataset, 32, **options))

    def test_other_transforms(self, dataset: dataprep.Dataset, iterable: bool) -> None:
        """Numbers, arrays and dicts are put together as DataLoader does it; bytes stay a list."""

        def both(image: Any, rng: np.random.Generator) -> Any:
            return {"size": len(image), "drawn": rng.random(3)}

        options: dict[str, Any] = {"iterable": iterable, "shuffle": False}
        found, labels = next(
            iter(dataprep.to_torch(dataset, transform=both, batch_size=7, **options))
        )
        assert found["size"].tolist() == [len(dataset[i].image) for i in range(7)]
        assert found["drawn"].shape == (7, 3)
        assert labels.tolist() == dataset.labels[:7].tolist()
        images, _ = next(iter(dataprep.to_torch(dataset, batch_size=7, **options)))
        assert images == [bytes(dataset[i].image) for i in range(7)]

    def test_epochs(self, dataset: dataprep.Dataset, iterable: bool) -> None:
        """Each epoch is another, and repeats itself."""
        batches = dataprep.to_torch(dataset, iterable=iterable, transform=SMALL, batch_size=60)
        first, again = list(batches), list(batches)
        assert same(first, again)
        batches.set_epoch(1)
        assert not same(first, list(batches))
        batches.set_epoch(0)
        assert same(first, list(batches))

    def test_drop_last(self, dataset: dataprep.Dataset, iterable: bool) -> None:
        """A short batch is left out where it is asked for."""
        batches = dataprep.to_torch(
            dataset, iterable=iterable, transform=SMALL, batch_size=50, drop_last=True
        )
        assert [len(labels) for _, labels in batches] == [50, 50]
        assert len(batches) == 2

    def test_ranks(self, dataset: dataprep.Dataset, iterable: bool) -> None:
        """Each rank has batches of its own part; together they are everything."""
        labels: list[int] = []
        for rank in range(3):
            batches = dataprep.to_torch(
                dataset, iterable=iterable, batch_size=9, rank=rank, world_size=3
            )
            made = [part.tolist() for _, part in batches]
            assert len(made) == len(batches)
            labels += [label for part in made for label in part]
        assert sorted(labels) == sorted(dataset.labels.tolist())

    def test_batches_are_the_callers(self, dataset: dataprep.Dataset, iterable: bool) -> None:
        """A batch that is kept does not change while others are made."""
        batches = dataprep.to_torch(
            dataset, iterable=iterable, transform=SMALL, batch_size=10, prefetch=1
        )
        kept, copies = [], []
        for images, _ in batches:
            kept.append(images)
            copies.append(images.clone())
        assert len({images.data_ptr() for images in kept}) == 12
        assert all(torch.equal(*pair) for pair in zip(kept, copies, strict=True))

    def test_memory_comes_round(self, dataset: dataprep.Dataset, iterable: bool) -> None:
        """Batches that are let go lie in few places."""
        batches = dataprep.to_torch(
            dataset, iterable=iterable, transform=SMALL, batch_size=10, prefetch=1
        )
        assert len({images.data_ptr() for images, _ in batches}) < 12

    def test_broken_image(self, dataset: dataprep.Dataset, iterable: bool) -> None:
        """What cannot be decoded is named."""

        class Fails(Augmentation):
            def __call__(self, data: Any, rng: np.random.Generator) -> Any:
                raise CorruptImage("no image")

            def write(self, data: Any, rng: np.random.Generator, out: Any) -> None:
                raise CorruptImage("no image")

        batches = dataprep.to_torch(
            dataset, iterable=iterable, shuffle=False, transform=Fails(), batch_size=4
        )
        with pytest.raises(CorruptImage, match=r"sample 0 \(.*no image"):
            next(iter(batches))

    def test_ended_early(self, dataset: dataprep.Dataset, iterable: bool) -> None:
        """Whoever stops after a batch leaves no thread behind."""
        before = set(threading.enumerate())
        batches = iter(
            dataprep.to_torch(
                dataset, iterable=iterable, transform=SMALL, batch_size=4, threads=3, prefetch=9
            )
        )
        next(batches)
        assert set(threading.enumerate()) - before
        batches.close()  # type: ignore[attr-defined]
        assert not set(threading.enumerate()) - before


@pytest.mark.parametrize("iterable", [False, True], ids=["map", "iterable"])
class TestInDataLoader:
    def test_every_sample_once(self, dataset: dataprep.Dataset, iterable: bool) -> None:
        """Workers share the batches, or the shards, out; a living worker sees the epoch."""
        batches = dataprep.to_torch(dataset, iterable=iterable, transform=SMALL, batch_size=16)
        loader = torch.utils.data.DataLoader(
            batches, batch_size=None, num_workers=2, persistent_workers=True
        )
        means = []
        for epoch in range(2):
            batches.set_epoch(epoch)
            made = list(loader)
            labels = torch.cat([labels for _, labels in made])
            assert sorted(labels.tolist()) == sorted(dataset.labels.tolist())
            means.append(float(torch.cat([images for images, _ in made]).double().mean()))
        assert means[0] != means[1]

    def test_pickle(self, dataset: dataprep.Dataset, iterable: bool) -> None:
        """A copy gives the same, also after the first was used."""
        batches = dataprep.to_torch(
            dataset, iterable=iterable, transform=SMALL, batch_size=40, epoch=2
        )
        made = list(batches)
        assert same(made, list(pickle.loads(pickle.dumps(batches))))


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_workers_change_nothing(dataset: dataprep.Dataset, workers: int) -> None:
    """In fully random order the batches and their order are those of one process."""
    batches = dataprep.to_torch(dataset, transform=SMALL, batch_size=16, seed=8)
    loader = torch.utils.data.DataLoader(batches, batch_size=None, num_workers=workers)
    assert same(list(loader), list(batches))


@pytest.mark.parametrize(
    "options", [{"batch_size": 0}, {"batch_size": 4, "threads": -1}, {"prefetch": -1}], ids=str
)
def test_what_cannot_be(dataset: dataprep.Dataset, options: dict[str, int]) -> None:
    """Batches of nothing, and fewer than no threads, are refused at once."""
    with pytest.raises(ConfigError, match="batches hold at least one sample"):
        dataprep.to_torch(dataset, **options)  # type: ignore[call-overload]
