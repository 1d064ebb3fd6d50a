"""Batches that NumPy collates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dataprep.adapters.augment import IMAGENET_MEAN, IMAGENET_STD

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("normalise", [True, False])
def test_batches_are_those_of_the_default_collate(workers: int, normalise: bool) -> None:
    """In this process and in a worker, of pixels and of normalised images."""
    from iobench.loaders.torch_collate import normalised_batch, uint8_batch

    pixels = np.random.default_rng(0).integers(0, 256, (50, 3, 8, 9), np.uint8)
    items = [(torch.from_numpy(image), label) for label, image in enumerate(pixels)]
    collate = normalised_batch if normalise else uint8_batch
    loader: Any = torch.utils.data.DataLoader(
        items,
        batch_size=20,
        num_workers=workers,
        collate_fn=collate,
    )
    batches = list(loader)
    assert [len(labels) for _, labels in batches] == [20, 20, 10]
    mean, std = np.array(IMAGENET_MEAN)[:, None, None], np.array(IMAGENET_STD)[:, None, None]
    wanted = ((pixels / 255 - mean) / std).astype(np.float32) if normalise else pixels
    images = torch.cat([images for images, _ in batches]).numpy()
    assert images.dtype == wanted.dtype
    assert np.allclose(images, wanted, atol=1e-5)
    assert torch.cat([labels for _, labels in batches]).tolist() == list(range(50))
