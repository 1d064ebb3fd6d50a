"""A batch in host memory, as a torch loader gives it."""

from __future__ import annotations

from typing import Any

from dataprep.adapters import import_framework
from iobench.loaders.protocol import Batch, LoaderSettings

NOTE = "input copy: one batch in host memory, given again and again"


def host_batch(settings: LoaderSettings, classes: int) -> Batch:
    """Noise in a loader's dtype and layout: (N, 3, S, S), int64 labels (N,).

    float32 of mean 0 and deviation 1, or uint8 where images are normalised on the device; in
    pinned memory where the loader pins its batches.
    """
    torch: Any = import_framework("torch")
    drawn = torch.Generator().manual_seed(settings.seed)
    shape = settings.batch_size, 3, settings.image_size, settings.image_size
    if settings.normalise:
        images = torch.randn(shape, generator=drawn)
    else:
        images = torch.randint(256, shape, generator=drawn, dtype=torch.uint8)
    labels = torch.randint(classes, shape[:1], generator=drawn, dtype=torch.int64)
    if settings.pin_memory:
        images, labels = images.pin_memory(), labels.pin_memory()
    return Batch(images, labels, settings.batch_size)
