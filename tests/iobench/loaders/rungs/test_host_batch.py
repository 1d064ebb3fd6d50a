"""A batch in host memory."""

from __future__ import annotations

import pytest

from iobench.loaders import LoaderSettings
from iobench.loaders.rungs.host_batch import host_batch

torch = pytest.importorskip("torch")


def settings(*, normalise: bool) -> LoaderSettings:
    """Three images of 32 pixels."""
    return LoaderSettings(batch_size=3, image_size=32, normalise=normalise)


def test_it_is_as_a_loader_gives_it() -> None:
    """Contiguous (N, 3, S, S) in host memory, labels of the classes that there are."""
    batch = host_batch(settings(normalise=True), 7)
    assert batch.images.shape == (3, 3, 32, 32)
    assert batch.images.dtype == torch.float32
    assert batch.images.is_contiguous()
    assert abs(float(batch.images.mean())) < 0.1
    assert batch.labels.dtype == torch.int64
    assert batch.samples == len(batch.labels) == 3
    assert 0 <= int(batch.labels.min()) <= int(batch.labels.max()) < 7
    assert batch.images.device.type == "cpu"


def test_what_the_device_normalises_is_bytes() -> None:
    """A quarter of what is copied otherwise."""
    images = host_batch(settings(normalise=False), 7).images
    assert images.dtype == torch.uint8
    assert int(images.max()) > 200


def test_it_repeats() -> None:
    """One seed, one batch."""
    first, second = (host_batch(settings(normalise=True), 7) for _ in range(2))
    assert torch.equal(first.images, second.images)
    assert torch.equal(first.labels, second.labels)
