"""Normalise uint8 images by ImageNet's mean and deviation: the constants, and torch tensors.

``dataprep.adapters.augment`` uses the same constants for images that are normalised one by one.
This module does not import torch.
"""

from __future__ import annotations

from collections import deque
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dataprep.adapters import import_framework
from dataprep.adapters.lending import lend
from dataprep.errors import ConfigError

if TYPE_CHECKING:
    import torch

IMAGENET_MEAN = (0.485, 0.456, 0.406)
"""The mean of RGB from 0 to 1 over ImageNet's training images, as torchvision uses it."""

IMAGENET_STD = (0.229, 0.224, 0.225)

SCALE = (1 / (255 * np.array(IMAGENET_STD))).astype(np.float32)
"""A normalised value is the uint8 value times ``SCALE`` plus ``SHIFT``: float32 (3,) each."""

SHIFT = (-np.array(IMAGENET_MEAN) / np.array(IMAGENET_STD)).astype(np.float32)

_COLOURS = 3

_FREE_RESULTS = 2
"""Results on a CPU whose memory is kept for the next ones."""


def normalise(
    images: torch.Tensor, *, dtype: torch.dtype | None = None, channels_last: bool = False
) -> torch.Tensor:
    """Normalise a batch of uint8 images by ImageNet's mean and deviation, on the batch's device.

    Use it in a training loop whose loader hands over uint8, a quarter of the bytes of float32::

        augmentation = dataprep.Augmentation(normalise=False)
        batches = dataprep.to_torch(
            dataset, transform=augmentation, iterable=True, batch_size=64
        )
        for images, labels in batches:
            images = dataprep.normalise(images.to(device, non_blocking=True))

    The values are those of ``Augmentation(normalise=True)`` within float32 rounding. They are
    computed in float32 and rounded once to ``dtype``. A GPU reads the uint8 values and writes the
    result in one kernel, whatever ``dtype`` and ``channels_last`` are. On a CPU the result is made
    in float32; another ``dtype`` is a copy of it. The memory of results on a CPU is used again when
    nothing refers to them any more. ``images`` do not change.

    Args:
        images: uint8, (N, 3, H, W) or (N, H, W, 3), as ``Augmentation(normalise=False)`` makes them
            in each layout. Memory may have any order.
        dtype: of the result: ``torch.float32``, the default, ``torch.float16`` or
            ``torch.bfloat16``.
        channels_last: give the result torch's memory format ``channels_last``, in which
            convolutions are faster on most devices. Otherwise it is contiguous.

    Returns:
        A new tensor (N, 3, H, W), on the device of ``images``.

    Raises:
        TypeError: ``images`` is not a torch tensor, or is not uint8.
        ConfigError: ``images`` has another shape or one that fits both orders of channels, or
            ``dtype`` is another one.
        ImportError: torch is not installed.
    """
    import_framework("torch")
    import torch

    if not isinstance(images, torch.Tensor):
        raise TypeError(
            f"normalise: images are {type(images).__name__}: give a torch tensor, such as the "
            "images of a batch of dataprep.to_torch"
        )
    if images.dtype != torch.uint8:
        raise TypeError(
            f"normalise: images are {images.dtype}: give torch.uint8, as "
            "dataprep.Augmentation(normalise=False) makes them"
        )
    dtype = torch.float32 if dtype is None else dtype
    if dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise ConfigError(
            f"normalise: dtype {dtype}: give torch.float32, torch.float16 or torch.bfloat16"
        )
    pixels = _channels_first(images)
    if images.device.type == "cpu":
        return _normalised_on_cpu(pixels, channels_last=channels_last).to(dtype)
    scale, shift = _constants(images.device)
    layout = torch.channels_last if channels_last else torch.contiguous_format
    result = torch.empty(pixels.shape, dtype=dtype, device=images.device, memory_format=layout)
    return torch.addcmul(shift, pixels, scale, out=result)


def _normalised_on_cpu(pixels: torch.Tensor, *, channels_last: bool) -> torch.Tensor:
    """The images as float32, in memory that is used again when the result is gone.

    OpenCV reads uint8 and writes float32 in one pass over a plane. Torch needs two passes over the
    batch, since it would convert mixed types in a temporary copy.
    """
    import cv2
    import torch

    if not channels_last and pixels.is_contiguous() and pixels.numel():
        planes = pixels.numpy()
        images = lend(planes.shape, np.float32, _free_memory(planes.shape))
        for image, normalised in zip(planes, images, strict=True):
            for colour in range(_COLOURS):
                plane, scale, shift = image[colour], float(SCALE[colour]), float(SHIFT[colour])
                cv2.addWeighted(plane, scale, plane, 0.0, shift, normalised[colour], cv2.CV_32F)
        return torch.from_numpy(images)
    count, channels, height, width = pixels.shape
    if channels_last:
        shape = (count, height, width, channels)
        result = torch.from_numpy(lend(shape, np.float32, _free_memory(shape)))
        result = result.permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
    else:
        shape = (count, channels, height, width)
        result = torch.from_numpy(lend(shape, np.float32, _free_memory(shape)))
    result.copy_(pixels)
    scales, shifts = _constants(pixels.device)
    return torch.addcmul(shifts, result, scales, out=result)


@lru_cache(maxsize=2)  # the last batch of an epoch may be smaller
def _free_memory(shape: tuple[int, ...]) -> deque[NDArray[np.generic]]:
    """Memory of earlier results of this shape."""
    return deque(maxlen=_FREE_RESULTS)


def _channels_first(images: torch.Tensor) -> torch.Tensor:
    """A view (N, 3, H, W) of the images.

    Raises:
        ConfigError: the shape is none of a batch of RGB images, or the axis of channels is unclear.
    """
    shape = tuple(images.shape)
    is_first = len(shape) == 4 and shape[1] == _COLOURS
    is_last = len(shape) == 4 and shape[3] == _COLOURS
    if is_first and is_last:
        raise ConfigError(
            f"normalise: images have the shape {shape}, in which axis 1 or axis 3 could be the "
            "channels: give images that are not 3 pixels wide"
        )
    if is_first:
        return images
    if is_last:
        return images.permute(0, 3, 1, 2)
    advice = ": give images[None] for a single image" if len(shape) == 3 else ""
    raise ConfigError(
        f"normalise: images have the shape {shape}, not (N, 3, H, W) or (N, H, W, 3){advice}"
    )


@cache  # a copy to a GPU waits until the GPU has done what is queued
def _constants(device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """``SCALE`` and ``SHIFT`` on a device, (1, 3, 1, 1)."""
    import torch

    scale, shift = (
        torch.tensor(values, device=device).view(1, _COLOURS, 1, 1) for values in (SCALE, SHIFT)
    )
    return scale, shift
