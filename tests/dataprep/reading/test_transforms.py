"""``to_torch`` takes functions as transforms, and chooses their arguments by the signature."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, assert_type

import numpy as np
import pytest
import torch
from PIL import Image

import dataprep
from dataprep.errors import ConfigError
from dataprep.formats.protocol import Buffer
from dataprep.image.rgb import decode_rgb
from dataprep.reading.torch import BatchedRecords, IterableRecords, MapRecords

Generator = np.random.Generator


def of_pillow(image: Image.Image) -> torch.Tensor:
    """All pixels of an image, scaled to a fixed size."""
    assert isinstance(image, Image.Image)
    assert image.mode == "RGB"
    return torch.from_numpy(np.asarray(image.resize((16, 16))).copy())


def of_bytes(data: Buffer, rng: Generator) -> torch.Tensor:
    """All pixels of an encoded image, scaled to a fixed size."""
    assert isinstance(rng, Generator)
    return of_pillow(Image.fromarray(decode_rgb(data)))


class FirstVersion(torch.nn.Module):
    """A module like those of the first version of torchvision's transforms."""

    def forward(self, image: Image.Image) -> torch.Tensor:
        return of_pillow(image)


class SecondVersion(torch.nn.Module):
    """A module like those of the second version of torchvision's transforms."""

    def forward(self, *inputs: Any) -> Any:
        (image,) = inputs
        return of_pillow(image)


class Compose:
    """A callable like ``torchvision.transforms.Compose``, which is no module."""

    def __call__(self, img: Image.Image) -> torch.Tensor:
        return of_pillow(img)


def scaled(image: Image.Image, size: int) -> torch.Tensor:
    """A function whose second argument is a setting."""
    assert size == 16
    return of_pillow(image)


def with_default(data: bytes, rng: Generator | None = None) -> torch.Tensor:
    """A function that creates a generator if it gets none."""
    assert rng is not None
    return of_bytes(data, rng)


def wrapped(*arguments: Any) -> torch.Tensor:
    """A function that passes all arguments on."""
    return of_bytes(*arguments)


class OfBytes(torch.nn.Module):
    """A module that takes an encoded image and a generator."""

    def forward(self, data: bytes, rng: Generator) -> torch.Tensor:
        return of_bytes(data, rng)


@pytest.mark.parametrize(
    "transform",
    [
        of_pillow,
        FirstVersion(),
        SecondVersion(),
        Compose(),
        lambda image: of_pillow(image),
        partial(scaled, size=16),
        dataprep.PillowTransform(of_pillow),
        dataprep.PillowTransform(partial(scaled, size=16)),
        of_bytes,
        OfBytes(),
        with_default,
        wrapped,
    ],
    ids=lambda transform: getattr(transform, "__name__", type(transform).__name__),
)
@pytest.mark.parametrize("threads", [0, 2])
def test_a_function_gets_what_its_signature_asks_for(
    dataset: dataprep.Dataset, transform: Callable[..., Any], threads: int
) -> None:
    """A function with one argument gets a Pillow image; one with two gets bytes and a generator."""
    batches = dataprep.to_torch(
        dataset.of_shards([0]), transform=transform, batch_size=8, shuffle=False, threads=threads
    )
    images, _ = next(iter(batches))
    expected = [of_bytes(dataset[number].image, np.random.default_rng(0)) for number in range(8)]
    assert torch.equal(images, torch.stack(expected))


@pytest.mark.parametrize(
    "transform",
    [lambda: 0, lambda a, b, c: 0, lambda image, size=224: 0, lambda image, rng, size: 0],
)
def test_a_function_that_can_be_meant_in_two_ways_is_refused(
    dataset: dataprep.Dataset, transform: Callable[..., Any]
) -> None:
    """The message names the adapter, and nothing is read before."""
    with pytest.raises(ConfigError, match="PillowTransform"):
        dataprep.to_torch(dataset, transform=transform)


def test_the_types_say_what_is_returned(dataset: dataprep.Dataset) -> None:
    """The type distinguishes batches, a stream of samples, and samples by number."""
    flag: bool = len(dataset) > 0
    batches = assert_type(dataprep.to_torch(dataset, batch_size=2), BatchedRecords)
    streamed = assert_type(dataprep.to_torch(dataset, iterable=True, batch_size=2), BatchedRecords)
    stream = assert_type(dataprep.to_torch(dataset, iterable=True), IterableRecords)
    samples = assert_type(dataprep.to_torch(dataset), MapRecords)
    either = assert_type(
        dataprep.to_torch(dataset, iterable=flag), MapRecords | IterableRecords | BatchedRecords
    )
    assert [type(iterable) for iterable in (batches, streamed, stream, samples, either)] == [
        *(BatchedRecords, BatchedRecords, IterableRecords, MapRecords, IterableRecords)
    ]


@pytest.mark.parametrize("name", ["to_torch", "to_tf", "to_mxnet"])
def test_no_adapter_returns_just_anything(name: str) -> None:
    """The annotation of each adapter names a type."""
    assert getattr(dataprep, name).__annotations__["return"] not in (Any, "Any")
