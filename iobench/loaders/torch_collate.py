"""Batches of images, made by NumPy in one pass.

``collate_fn=normalised_batch`` on items of ``Augmentation(normalise=False)`` gives what torch's
default gives on normalised items, and writes each float once instead of twice. Neither function
starts torch's threads, which spin while they wait for so little work.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from dataprep.adapters.augment import SCALE, SHIFT
from dataprep.adapters.torch import empty

Items = Sequence[tuple[torch.Tensor, int]]
Batch = tuple[torch.Tensor, torch.Tensor]


def uint8_batch(items: Items) -> Batch:
    """uint8 images of one shape as one (N, ...), labels as int64 (N,)."""
    images = _empty(items, torch.uint8)
    np.stack([image.numpy() for image, _ in items], out=images.numpy())
    return images, torch.tensor([label for _, label in items])


def normalised_batch(items: Items) -> Batch:
    """uint8 (3, H, W) images as one float32 (N, 3, H, W) of ImageNet's mean 0 and deviation 1.

    Labels become int64 (N,).
    """
    images = _empty(items, torch.float32)
    scale, shift = SCALE[:, None, None], SHIFT[:, None, None]
    for slot, (image, _) in zip(images.numpy(), items, strict=True):
        slot[...] = image.numpy()
        np.multiply(slot, scale, out=slot)
        np.add(slot, shift, out=slot)
    return images, torch.tensor([label for _, label in items])


def _empty(items: Items, dtype: torch.dtype) -> torch.Tensor:
    return empty((len(items), *items[0][0].shape), dtype)
