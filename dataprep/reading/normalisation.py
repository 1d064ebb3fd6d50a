"""Normalise uint8 images by ImageNet's mean and deviation: the constants, and torch tensors.

``dataprep.reading.augment`` uses the same constants for single images. Importing this module does
not import torch.
"""

from __future__ import annotations

from collections import deque
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dataprep.errors import ConfigError
from dataprep.reading.frameworks import import_framework
from dataprep.reading.reusable_memory import reusable_array

if TYPE_CHECKING:
    import torch

IMAGENET_MEAN = (0.485, 0.456, 0.406)
"""The mean of red, green and blue over ImageNet's training images, for values from 0 to 1.

torchvision uses the same mean and standard deviation.
"""

IMAGENET_STD = (0.229, 0.224, 0.225)
"""The standard deviation of red, green and blue, for values from 0 to 1."""

SCALE = (1 / (255 * np.array(IMAGENET_STD))).astype(np.float32)
"""A normalised value is the uint8 value times ``SCALE`` plus ``SHIFT``: float32 of shape (3,)."""

SHIFT = (-np.array(IMAGENET_MEAN) / np.array(IMAGENET_STD)).astype(np.float32)
"""See ``SCALE``: float32 of shape (3,)."""

_COLOURS = 3

_MAX_FREE_RESULTS = 2
"""Results on a CPU whose memory is kept for later results."""


def normalise(
    images: torch.Tensor, *, dtype: torch.dtype | None = None, channels_last: bool = False
) -> torch.Tensor:
    """Normalise a batch of uint8 images by ImageNet's mean and standard deviation.

    Use it in a training loop whose loader yields uint8, which has a quarter of the bytes of
    float32. It runs on the device of the images, such as a GPU.

    The values equal those of ``Augmentation(normalise=True)`` within float32 rounding. They are
    computed in float32 and rounded once to ``dtype``. On a GPU, one kernel reads the uint8 values
    and writes the result. On a CPU, the result is computed in float32 and copied if ``dtype`` is
    another type. The memory of a result on a CPU is used again when nothing refers to the result
    any more. ``images`` is not changed.

    Args:
        images: a uint8 tensor of shape (N, 3, H, W) or (N, H, W, 3), as
            ``Augmentation(normalise=False)`` returns them for its two layouts. The tensor may have
            any strides.
        dtype: the type of the result: ``torch.float32`` (the default), ``torch.float16`` or
            ``torch.bfloat16``.
        channels_last: whether the result has torch's memory format ``channels_last``, in which
            convolutions are faster on most devices. Otherwise it is contiguous.

    Returns:
        A new tensor of shape (N, 3, H, W) on the device of ``images``.

    Raises:
        TypeError: ``images`` is not a torch tensor, or is not uint8.
        ConfigError: ``images`` has another shape, or both axis 1 and axis 3 have the size 3; or
            ``dtype`` is none of the three types.
        ImportError: torch is not installed.

    Example:
        >>> augmentation = dataprep.Augmentation(size=64, normalise=False)
        >>> batches = dataprep.to_torch(
        ...     dataprep.open("out"), transform=augmentation, iterable=True, batch_size=8
        ... )
        >>> for images, labels in batches:
        ...     images = dataprep.normalise(images)
        >>> images.dtype
        torch.float32
    """
    import_framework("torch")
    import torch

    if not isinstance(images, torch.Tensor):
        raise TypeError(
            f"normalise: images are of type {type(images).__name__}: give a torch tensor, such as "
            "the images of a batch of dataprep.to_torch"
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
    """Return the normalised images as float32, in memory that is used again later.

    If the images and the result are contiguous, OpenCV reads uint8 and writes float32 in one pass
    over a plane. Otherwise torch needs two passes over the batch: it copies the images to float32,
    and then normalises the copy. If torch computed with uint8 and float32 at once, it would make a
    temporary copy.
    """
    import cv2
    import torch

    if not channels_last and pixels.is_contiguous() and pixels.numel():
        planes = pixels.numpy()
        images = reusable_array(planes.shape, np.float32, _free_memory(planes.shape))
        for image, normalised in zip(planes, images, strict=True):
            for colour in range(_COLOURS):
                plane = image[colour]
                scale, shift = float(SCALE[colour]), float(SHIFT[colour])
                # plane * scale + plane * 0 + shift
                cv2.addWeighted(plane, scale, plane, 0.0, shift, normalised[colour], cv2.CV_32F)
        return torch.from_numpy(images)
    count, channels, height, width = pixels.shape
    if channels_last:
        shape = (count, height, width, channels)
        result = torch.from_numpy(reusable_array(shape, np.float32, _free_memory(shape)))
        # The permuted tensor already has this memory format, so that ``contiguous`` copies nothing.
        result = result.permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
    else:
        shape = (count, channels, height, width)
        result = torch.from_numpy(reusable_array(shape, np.float32, _free_memory(shape)))
    result.copy_(pixels)
    scales, shifts = _constants(pixels.device)
    return torch.addcmul(shifts, result, scales, out=result)


@lru_cache(maxsize=2)  # the last batch of an epoch may be smaller
def _free_memory(shape: tuple[int, ...]) -> deque[NDArray[np.generic]]:
    """Return the memory of earlier results of this shape."""
    return deque(maxlen=_MAX_FREE_RESULTS)


def _channels_first(images: torch.Tensor) -> torch.Tensor:
    """Return a view of the images with the shape (N, 3, H, W).

    Raises:
        ConfigError: it is not a batch of RGB images, or the axis of the channels is unclear.
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


@cache  # copying to a GPU waits for all work that is queued on it
def _constants(device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ``SCALE`` and ``SHIFT`` on a device, each with the shape (1, 3, 1, 1)."""
    import torch

    shape = (1, _COLOURS, 1, 1)
    scale = torch.tensor(SCALE, device=device).view(shape)
    shift = torch.tensor(SHIFT, device=device).view(shape)
    return scale, shift
