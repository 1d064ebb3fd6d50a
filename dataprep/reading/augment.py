"""Augment encoded images for training: crop, flip, change colours, normalise.

A JPEG is decoded at 1, 1/2, 1/4 or 1/8 of its size: the smallest at which the crop is not smaller
than the result. Rows well below the crop are not decoded. PNG and WebP are decoded in
full, on a white background. The crop is then scaled with bilinear interpolation, as in TensorFlow
and MXNet. The EXIF orientation is ignored, as the decoders of TensorFlow, MXNet and torchvision
ignore it. Damage for which libjpeg only warns is accepted, so that it does not end a training run.

All random numbers come from the generator that the caller passes.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import cv2
import numpy as np
import simplejpeg
from numpy.typing import NDArray

from dataprep.errors import ConfigError
from dataprep.formats.protocol import Buffer
from dataprep.image.jpeg import SOI, segments
from dataprep.image.output_size import Pixels, dct_divisor
from dataprep.image.rgb import decode_rgb
from dataprep.reading.normalisation import SCALE, SHIFT

AREA = (0.08, 1.0)
"""The smallest and the largest random crop, as a share of the image's pixels."""

ASPECT = (3 / 4, 4 / 3)
"""The smallest and the largest aspect ratio (width / height) of a random crop."""

TRIES = 10
"""Maximum number of random crops that are drawn until one fits into the image."""

EVALUATION_SHARE = 224 / 256
"""The side of the centre crop, as a share of the image's short side.

The usual evaluation scales the short side to 256 and crops 224.
"""

# Principal components of the colours of ImageNet, for values from 0 to 1. They are used for the
# lighting noise of AlexNet (Krizhevsky et al., "ImageNet classification with deep convolutional
# neural networks", NIPS 2012, section 4.1). The numbers are from fb.resnet.torch. MXNet uses them
# times 255.
EIGENVALUES = np.array([0.2175, 0.0188, 0.0045])
EIGENVECTORS = np.array(
    [
        [-0.5675, 0.7192, 0.4009],
        [-0.5808, -0.0045, -0.8140],
        [-0.5836, -0.6948, 0.4203],
    ]
)

# The normalised value of each uint8 value and channel, as a table for OpenCV: (1, 256, 3).
_NORMALISED = (np.arange(256, dtype=np.float32)[:, None] * SCALE + SHIFT)[None]
# The same for each channel: (3, 256).
_NORMALISED_BY_CHANNEL = _NORMALISED[0].T.copy()
# The weights of red, green and blue in grey: ITU-R BT.601, as Pillow and OpenCV use it.
_GREY_WEIGHTS = np.array([0.299, 0.587, 0.114])
# Markers of frames with Huffman coding (ITU-T T.81, B.2.2): baseline, extended and progressive.
_HUFFMAN_FRAMES = frozenset({0xC0, 0xC1, 0xC2})
# Rows to decode below the crop, at the decoded size. Chroma is interpolated from the next row.
_ROWS_BELOW = 4
# If fewer rows than this (a row of blocks) would be left out, all rows are decoded. Leaving them
# out would save no time.
_MIN_ROWS_LEFT_OUT = 16
# The steps of ``recolour``. Random numbers choose their order, so their numbers must not change.
_BRIGHTNESS, _CONTRAST, _SATURATION = 0, 1, 2


class Box(NamedTuple):
    """A rectangle within an image, in pixels from its upper left corner."""

    left: int
    top: int
    width: int
    height: int


@dataclass(frozen=True)
class Augmentation:
    """Turns an encoded image into a square array for training.

    Attributes:
        size: the width and height of the result in pixels.
        random: whether to augment: a random resized crop, a horizontal flip of half of the images,
            then colour changes. Otherwise the result is the centre crop for evaluation, as if the
            short side were scaled to ``size * 256 / 224`` and ``size`` were cropped.
        jitter: the strength of changes of brightness, contrast and saturation, from 0 to 1; 0.4 is
            usual.
        noise: the standard deviation of AlexNet's lighting noise; 0.1 is usual.
        normalise: whether the result is float32, normalised by ImageNet's mean and standard
            deviation. Otherwise it is uint8.
        layout: the order of the axes: ``"CHW"`` for torch and MXNet, ``"HWC"`` for TensorFlow.

    Raises:
        ConfigError: a setting is out of range.

    Example:
        >>> import numpy as np
        >>> augmentation = dataprep.Augmentation(size=64, jitter=0.4)
        >>> sample = dataprep.open("out")[0]
        >>> pixels = augmentation(sample.image, np.random.default_rng(0))
        >>> pixels.shape, pixels.dtype
        ((3, 64, 64), dtype('float32'))
    """

    size: int = 224
    random: bool = True
    jitter: float = 0.0
    noise: float = 0.0
    normalise: bool = True
    layout: Literal["CHW", "HWC"] = "CHW"

    def __post_init__(self) -> None:
        in_range = self.size >= 1 and 0 <= self.jitter <= 1 and 0 <= self.noise < math.inf
        if not in_range or self.layout not in ("CHW", "HWC"):
            raise ConfigError(
                f"{self}: size is at least 1, jitter is 0 to 1, noise at least 0, layout CHW or HWC"
            )

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of the result: (3, size, size) or (size, size, 3)."""
        if self.layout == "CHW":
            return 3, self.size, self.size
        return self.size, self.size, 3

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the result: float32 or uint8."""
        return np.dtype(np.float32 if self.normalise else np.uint8)

    def __call__(self, data: Buffer, rng: np.random.Generator) -> NDArray[Any]:
        """Return the augmented image as a new array of ``shape`` and ``dtype``.

        Args:
            data: the encoded image: JPEG, PNG or WebP.
            rng: the source of all random numbers.

        Raises:
            ImageError: the data is not an image, or cannot be decoded.
        """
        out = np.empty(self.shape, self.dtype)
        self.write(data, rng, out)
        return out

    def write(self, data: Buffer, rng: np.random.Generator, out: NDArray[Any]) -> None:
        """Write the augmented image into an array.

        Args:
            data: the encoded image: JPEG, PNG or WebP.
            rng: the source of all random numbers.
            out: a contiguous array of ``shape`` and ``dtype``, such as a slot of a batch.

        Raises:
            ImageError: the data is not an image, or cannot be decoded.
        """
        pixels = self.pixels(data, rng)
        if self.layout == "HWC":
            out[...] = cv2.LUT(pixels, _NORMALISED) if self.normalise else pixels
            return
        # The split of OpenCV is five times as fast as a transposed copy.
        if not self.normalise:
            cv2.split(pixels, list(out))  # writes into the channels of ``out``
            return
        planes = cv2.split(pixels)
        for plane, normalised, channel in zip(planes, _NORMALISED_BY_CHANNEL, out, strict=True):
            cv2.LUT(plane, normalised, channel)

    def pixels(self, data: Buffer, rng: np.random.Generator) -> Pixels:
        """Return the augmented image before normalisation: uint8 of shape (size, size, 3), in RGB.

        The arguments and errors are those of a call.
        """
        if not self.random:
            return self.part(data, centre_crop)
        pixels = self.part(data, partial(random_crop, rng=rng))
        if rng.random() < 0.5:
            cv2.flip(pixels, 1, pixels)
        if self.jitter or self.noise:
            recolour(pixels, self.jitter, self.noise, rng)
        return pixels

    def part(self, data: Buffer, choose: Callable[[int, int], Box]) -> Pixels:
        """Decode a crop of an image and scale it: uint8 of shape (size, size, 3).

        A subclass can override this method for images that are stored in another way.

        Args:
            data: the encoded image.
            choose: returns the crop for the width and the height of the image.

        Raises:
            ImageError: the data is not an image, or cannot be decoded.
        """
        if bytes(data[:2]) == SOI:
            # If this decoder fails, decode_rgb decodes the image, or says what is wrong.
            with contextlib.suppress(ValueError, KeyError):
                return scaled_crop(*_decode_jpeg(data, choose, self.size), self.size)
        pixels = decode_rgb(data)
        return scaled_crop(pixels, choose(pixels.shape[1], pixels.shape[0]), self.size)


def sample_rng(seed: int, epoch: int, index: int) -> np.random.Generator:
    """Return the random generator of a sample in an epoch. It is the same in every worker."""
    return np.random.default_rng((seed, epoch, index))


def random_crop(width: int, height: int, rng: np.random.Generator) -> Box:
    """Return a random crop of an image.

    Its area is uniform in ``AREA``, as a share of the image. The logarithm of its aspect ratio is
    uniform in the range of ``ASPECT``. If no crop of ten tries fits into the image, the result is
    the largest crop at the centre with an allowed aspect ratio. Source: Szegedy et al., "Going
    deeper with convolutions", CVPR 2015, section 6, in the form of fb.resnet.torch and torchvision.
    """
    min_log_ratio, max_log_ratio = math.log(ASPECT[0]), math.log(ASPECT[1])
    for _ in range(TRIES):
        area_draw, ratio_draw, left_draw, top_draw = rng.random(4).tolist()
        pixels = width * height * (AREA[0] + area_draw * (AREA[1] - AREA[0]))
        ratio = math.exp(min_log_ratio + ratio_draw * (max_log_ratio - min_log_ratio))
        crop_width = round(math.sqrt(pixels * ratio))
        crop_height = round(math.sqrt(pixels / ratio))
        if 0 < crop_width <= width and 0 < crop_height <= height:
            left = int(left_draw * (width - crop_width + 1))
            top = int(top_draw * (height - crop_height + 1))
            return Box(left, top, crop_width, crop_height)
    ratio = min(max(width / height, ASPECT[0]), ASPECT[1])
    return _centred(width, height, min(width, round(height * ratio)), min(height, width / ratio))


def centre_crop(width: int, height: int) -> Box:
    """Return the square at the centre whose side is ``EVALUATION_SHARE`` of the short side."""
    side = EVALUATION_SHARE * min(width, height)
    return _centred(width, height, side, side)


def _centred(width: int, height: int, crop_width: float, crop_height: float) -> Box:
    """Return a crop of this size, rounded to at least one pixel, at the centre of the image."""
    box_width, box_height = max(1, round(crop_width)), max(1, round(crop_height))
    return Box((width - box_width) // 2, (height - box_height) // 2, box_width, box_height)


def recolour(pixels: Pixels, jitter: float, noise: float, rng: np.random.Generator) -> None:
    """Change the colours of an image in place.

    First, brightness, contrast and saturation are multiplied by random factors from ``1 - jitter``
    to ``1 + jitter``, in random order. Brightness blends each pixel with black, contrast with the
    mean grey of the image, and saturation with the grey of the pixel. Then all pixels get the same
    lighting noise.

    All steps are affine. They are combined into one 3 x 4 matrix, which is applied in one pass and
    clipped once. (torchvision clips after each step.)

    Args:
        pixels: uint8 of shape (H, W, 3).
        jitter: the strength of the changes of brightness, contrast and saturation.
        noise: the standard deviation of the lighting noise.
        rng: the source of all random numbers.
    """
    matrix, shift = np.eye(3), np.zeros(3)
    if jitter:
        mean = np.array(cv2.mean(pixels)[:3])
        factors = 1 + jitter * (2 * rng.random(3) - 1)
        for step in rng.permutation(3).tolist():
            factor = factors[step]
            if step == _SATURATION:
                blend = factor * np.eye(3) + (1 - factor) * _GREY_WEIGHTS
                matrix, shift = blend @ matrix, blend @ shift
                continue
            grey = 0.0
            if step == _CONTRAST:
                grey = _GREY_WEIGHTS @ (matrix @ mean + shift)
            matrix, shift = factor * matrix, factor * shift + (1 - factor) * grey
    if noise:
        shift = shift + 255 * EIGENVECTORS @ (noise * rng.standard_normal(3) * EIGENVALUES)
    cv2.transform(pixels, np.column_stack([matrix, shift]), pixels)


def scaled_crop(pixels: Pixels, box: Box, size: int) -> Pixels:
    """Scale a crop of an image to uint8 of shape (size, size, 3)."""
    part = pixels[box.top : box.top + box.height, box.left : box.left + box.width]
    return np.asarray(cv2.resize(part, (size, size), interpolation=cv2.INTER_LINEAR), np.uint8)


def _decode_jpeg(data: Buffer, choose: Callable[[int, int], Box], size: int) -> tuple[Pixels, Box]:
    """Decode a JPEG as far as its crop needs it.

    Args:
        data: the encoded image.
        choose: returns the crop for the width and the height of the image.
        size: the width and height to which the crop will be scaled.

    Returns:
        RGB pixels, possibly at a fraction of the size, and the crop within them.

    Raises:
        ValueError, KeyError: libjpeg cannot decode the file to RGB.
    """
    height, width, colorspace, _ = simplejpeg.decode_jpeg_header(data, strict=False)
    if colorspace in ("CMYK", "YCCK"):
        raise ValueError(colorspace)
    box = choose(width, height)
    # The smallest size of the whole image at which the crop is as large as the result.
    min_width = -(-size * width // box.width)
    min_height = -(-size * height // box.height)
    divisor = dct_divisor(width, height, min_width, min_height)
    needed_rows = box.top + box.height + _ROWS_BELOW * divisor
    decoded_rows = height
    if height - needed_rows >= _MIN_ROWS_LEFT_OUT:
        upper_part = _with_fewer_rows(data, needed_rows)
        if upper_part is not None:
            data = upper_part
            decoded_rows = needed_rows
    min_size = {}
    if divisor > 1:
        # Move the crop into the image at a fraction of its size.
        new_width, new_height = -(-width // divisor), -(-height // divisor)
        min_size = {"min_width": new_width, "min_height": -(-decoded_rows // divisor)}
        left, top = box.left * new_width // width, box.top * new_height // height
        box_width = min(new_width - left, round(box.width * new_width / width))
        box_height = min(new_height - top, round(box.height * new_height / height))
        box = Box(left, top, max(1, box_width), max(1, box_height))
    pixels: Pixels = simplejpeg.decode_jpeg(data, "RGB", strict=False, **min_size)
    return pixels, box


def _with_fewer_rows(data: Buffer, rows: int) -> bytearray | None:
    """Return a copy of a JPEG whose header has fewer rows than the image, so that decoding is fast.

    Decoders stop after these rows. Their pixels stay the same, except in the last rows, where the
    chroma depends on the row below.

    Returns:
        None if the JPEG has no Huffman coding. This method was tested only with Huffman coding.
    """
    copy = bytearray(data)
    for marker, start, _ in segments(copy):
        if marker in _HUFFMAN_FRAMES:
            # The number of rows follows the sample precision, which has one byte.
            copy[start + 1 : start + 3] = rows.to_bytes(2, "big")
            return copy
    return None
