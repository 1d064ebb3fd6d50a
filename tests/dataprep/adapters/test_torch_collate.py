"""Tests of dataprep.adapters.torch_collate."""

from __future__ import annotations

import dataclasses

import pytest

import dataprep
from dataprep.augment import Augmentation

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("normalise", [True, False])
def test_as_the_default(dataset: dataprep.Dataset, workers: int, normalise: bool) -> None:
    """What is put together here is what torch's default makes of finished items."""
    from dataprep.adapters.torch_collate import normalised_batch, uint8_batch

    plain = Augmentation(size=32, normalise=False)
    finished = dataclasses.replace(plain, normalise=normalise)
    batches = [
        list(
            torch.utils.data.DataLoader(
                dataprep.to_torch(dataset, transform=transform),
                batch_size=50,
                num_workers=workers,
                collate_fn=collate,
            )
        )
        for transform, collate in (
            (finished, None),
            (plain, normalised_batch if normalise else uint8_batch),
        )
    ]
    assert [len(labels) for _, labels in batches[1]] == [50, 50, 20]
    for (images, labels), (ours, our_labels) in zip(*batches, strict=True):
        assert ours.dtype == images.dtype
        assert torch.allclose(images, ours, atol=1e-6)
        assert torch.equal(labels, our_labels)
