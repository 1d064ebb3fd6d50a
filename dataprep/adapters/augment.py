"""Augment encoded images for training: crop, flip, change colours, normalise.

JPEGs are decoded at the smallest of 1, 1/2, 1/4 and 1/8 of their size at which the crop is not
smaller than the target, and only down to the last row of the crop. PNG and WebP are decoded in
full, on a white background. The crop is then scaled with bilinear interpolation, as TensorFlow and
MXNet do. The EXIF orientation is ignored, as their decoders and torchvision ignore it. Damage that
libjpeg only warns about is accepted, so that it does not end a training run.

All randomness comes from the generator that is passed in.
"""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import Parameter
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, cast

import cv2
import numpy as np
import simplejpeg
from numpy.typing import NDArray
from PIL import Image

from dataprep.adapters.normalisation import SCALE, SHIFT
from dataprep.errors import ConfigError
from dataprep.formats.protocol import Buffer
from dataprep.image.geometry import Pixels, dct_fraction
from dataprep.image.jpeg import SOI, segments
from dataprep.image.rgb import decode_whole

AREA = (0.08, 1.0)
ASPECT = (3 / 4, 4 / 3)
TRIES = 10
EVALUATION_SHARE = 224 / 256
"""The side of the centre crop, as a share of the short side: scale to 256, crop 224."""

# Principal components of RGB over ImageNet, for values from 0 to 1. The method is AlexNet's
# (Krizhevsky et al., "ImageNet classification with deep convolutional neural networks", NIPS 2012,
# section 4.1). The numbers are those of fb.resnet.torch; MXNet uses them times 255.
EIGENVALUES = np.array([0.2175, 0.0188, 0.0045])
EIGENVECTORS = np.array(
    [
        [-0.5675, 0.7192, 0.4009],
        [-0.5808, -0.0045, -0.8140],
        [-0.5836, -0.6948, 0.4203],
    ]
)

_NORMALISED = (np.arange(256, dtype=np.float32)[:, None] * SCALE + SHIFT)[None]
_NORMALISED_PLANES = _NORMALISED[0].T.copy()
_LUMA = np.array([0.299, 0.587, 0.114])  # ITU-R BT.601, as Pillow and OpenCV use it
# ITU-T T.81, B.2.2: the Huffman-coded kinds, baseline, extended and progressive.
_SOF = frozenset({0xC0, 0xC1, 0xC2})
_ROWS_BELOW = 4  # at the decoded size: chroma is interpolated from the next row's
_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_WORTH_ROWS = 16  # leaving out less than a row of blocks saves nothing

Transform: TypeAlias = Callable[[Buffer, np.random.Generator], Any]
"""A function of an encoded image and a generator of its own; its result becomes the sample."""

AnyTransform: TypeAlias = Transform | Callable[[Image.Image], Any]
"""Also a function of one Pillow image, such as a transform of torchvision: ``PillowTransform``."""


class Box(NamedTuple):
    """A rectangle within an image, in pixels."""

    left: int
    top: int
    width: int
    height: int


@dataclass(frozen=True)
class Augmentation:
    """Turn an encoded image into a training array.

    Attributes:
        size: pixels a side of the square result.
        random: a random resized crop, a flip in half of all cases, then colour changes. Otherwise
            the centre, as if scaled to ``size * 256 / 224`` and cropped, for evaluation.
        jitter: strength of brightness, contrast and saturation changes; 0.4 is usual.
        noise: sigma of AlexNet's lighting noise; 0.1 is usual.
        normalise: float32 normalised by ImageNet's mean and deviation; otherwise uint8.
        layout: ``CHW`` for torch and MXNet, ``HWC`` for TensorFlow.

    Raises:
        ConfigError: a setting is out of range.
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
        return (3, self.size, self.size) if self.layout == "CHW" else (self.size, self.size, 3)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the result: float32 or uint8."""
        return np.dtype(np.float32 if self.normalise else np.uint8)

    def __call__(self, data: Buffer, rng: np.random.Generator) -> NDArray[Any]:
        """One encoded image as a new array of ``shape`` and ``dtype``.

        Raises:
            ImageError: the data is not an image, or cannot be decoded.
        """
        out = np.empty(self.shape, self.dtype)
        self.write(data, rng, out)
        return out

    def write(self, data: Buffer, rng: np.random.Generator, out: NDArray[Any]) -> None:
        """Write the result into ``out``, a contiguous array such as a slot of a batch.

        Raises:
            ImageError: the data is not an image, or cannot be decoded.
        """
        pixels = self.pixels(data, rng)
        if self.layout == "HWC":
            out[...] = cv2.LUT(pixels, _NORMALISED) if self.normalise else pixels
            return
        # OpenCV's split is five times as fast as a transposed copy.
        if not self.normalise:
            cv2.split(pixels, list(out))  # into the channels of ``out`` themselves
            return
        planes = cv2.split(pixels)
        for plane, normalised, channel in zip(planes, _NORMALISED_PLANES, out, strict=True):
            cv2.LUT(plane, normalised, channel)

    def pixels(self, data: Buffer, rng: np.random.Generator) -> Pixels:
        """The result before normalisation: uint8 (size, size, 3)."""
        if not self.random:
            return self.part(data, centre_crop)
        pixels = self.part(data, partial(random_crop, rng=rng))
        if rng.random() < 0.5:
            cv2.flip(pixels, 1, pixels)
        if self.jitter or self.noise:
            recolour(pixels, self.jitter, self.noise, rng)
        return pixels

    def part(self, data: Buffer, choose: Callable[[int, int], Box]) -> Pixels:
        """Decode and scale the crop ``choose(width, height)``: uint8 (size, size, 3).

        Subclasses replace this for images that are stored in another way.

        Raises:
            ImageError: the data is not an image, or cannot be decoded.
        """
        if bytes(data[:2]) == SOI:
            with contextlib.suppress(ValueError, KeyError):  # decode_whole says what is wrong
                return scaled_part(*_decode_jpeg(data, choose, self.size), self.size)
        pixels = decode_whole(data)
        return scaled_part(pixels, choose(pixels.shape[1], pixels.shape[0]), self.size)


@dataclass(frozen=True)
class PillowTransform:
    """Let a function of one Pillow image, such as a transform of torchvision, take encoded images.

    ``to_torch`` wraps a transform of one argument in it. The image is RGB, at its own size, without
    its EXIF orientation; transparency is on a white background. The function draws its own random
    numbers, usually from torch's generator. They do not depend on the sample's number, so that
    another number of threads or workers gives other crops.

    Attributes:
        function: called with a ``PIL.Image.Image``; its result becomes the sample.
        random: False, because results do not depend on the epoch that ``set_epoch`` sets.
    """

    function: Callable[[Image.Image], Any]
    random: ClassVar[bool] = False

    def __call__(self, data: Buffer, rng: np.random.Generator) -> Any:
        """Decode an image, and call the function with it.

        Raises:
            ImageError: the data is not an image, or cannot be decoded.
        """
        return self.function(Image.fromarray(decode_whole(data)))


def as_transform(function: AnyTransform) -> Transform:
    """The function itself if it takes an image and a generator, else its ``PillowTransform``.

    The signature decides; for a module of torch it is that of ``forward``.

    Raises:
        ConfigError: the signature says neither.
    """
    forward = getattr(function, "forward", None)
    try:
        signature = inspect.signature(forward or function)
    except (TypeError, ValueError):  # a function of C that does not say
        return cast(Transform, function)
    takes_pillow_image = _takes_one_image(signature, is_module=forward is not None)
    if takes_pillow_image is None:
        raise ConfigError(
            f"transform {function!r} takes {signature}: give a function of an encoded image and a "
            "generator, or of one Pillow image; dataprep.PillowTransform(function) calls any "
            "function with a Pillow image alone"
        )
    if takes_pillow_image:
        return PillowTransform(cast("Callable[[Image.Image], Any]", function))
    return cast(Transform, function)


def _takes_one_image(signature: inspect.Signature, *, is_module: bool) -> bool | None:
    """Whether a function is called with one image, not with a generator too; None if unclear."""
    parameters = signature.parameters.values()
    by_position = [each for each in parameters if each.kind in _BY_POSITION]
    if any(each.kind is Parameter.VAR_POSITIONAL for each in parameters):
        return is_module  # the second version of torchvision's transforms takes any number
    if len(by_position) < 2:
        return True if by_position else None
    second, *more = by_position[1:]
    if any(each.default is Parameter.empty for each in more):
        return None
    if second.default is Parameter.empty or second.default is None:  # ``rng=None`` is usual
        return False
    return None  # a setting such as ``size=224``, which a generator must not replace


def sample_rng(seed: int, epoch: int, index: int) -> np.random.Generator:
    """The generator of one sample in one epoch; it is the same in every worker."""
    return np.random.default_rng((seed, epoch, index))


def has_write(transform: object) -> bool:
    """Whether a transform can write into a batch: it has ``write``, ``shape`` and ``dtype``.

    False for a subclass of ``Augmentation`` that replaces ``__call__``.
    """
    if isinstance(transform, Augmentation):
        return type(transform).__call__ is Augmentation.__call__
    return hasattr(transform, "write")


def random_crop(width: int, height: int, rng: np.random.Generator) -> Box:
    """A random part of the image: ``AREA`` of its pixels, aspect log-uniform in ``ASPECT``.

    After ten tries it is the largest part at the centre whose aspect is allowed. Source: Szegedy et
    al., "Going deeper with convolutions", CVPR 2015, section 6, in the form of fb.resnet.torch and
    torchvision.
    """
    low, high = math.log(ASPECT[0]), math.log(ASPECT[1])
    for _ in range(TRIES):
        share, shape, across, down = rng.random(4).tolist()
        pixels = width * height * (AREA[0] + share * (AREA[1] - AREA[0]))
        ratio = math.exp(low + shape * (high - low))
        crop_width, crop_height = round(math.sqrt(pixels * ratio)), round(math.sqrt(pixels / ratio))
        if 0 < crop_width <= width and 0 < crop_height <= height:
            left = int(across * (width - crop_width + 1))
            top = int(down * (height - crop_height + 1))
            return Box(left, top, crop_width, crop_height)
    ratio = min(max(width / height, ASPECT[0]), ASPECT[1])
    return _centred(width, height, min(width, round(height * ratio)), min(height, width / ratio))


def centre_crop(width: int, height: int) -> Box:
    """The square at the centre whose side is ``EVALUATION_SHARE`` of the short side."""
    side = EVALUATION_SHARE * min(width, height)
    return _centred(width, height, side, side)


def _centred(width: int, height: int, crop_width: float, crop_height: float) -> Box:
    across, down = max(1, round(crop_width)), max(1, round(crop_height))
    return Box((width - across) // 2, (height - down) // 2, across, down)


def recolour(pixels: Pixels, jitter: float, noise: float, rng: np.random.Generator) -> None:
    """Change the colours of uint8 (H, W, 3) in place.

    Brightness, contrast and saturation are multiplied by factors of ``1 +- jitter`` in random
    order. Each blends a pixel with black, with the mean grey of the image or with its own grey.
    Then each pixel gets the same lighting noise of sigma ``noise``. All steps are affine, so they
    are one 3 x 4 matrix, applied in one pass and clipped once (torchvision clips after each).
    """
    matrix, shift = np.eye(3), np.zeros(3)
    if jitter:
        mean = np.array(cv2.mean(pixels)[:3])
        factors = 1 + jitter * (2 * rng.random(3) - 1)
        for kind in rng.permutation(3).tolist():
            factor = factors[kind]
            if kind == 2:
                blend = factor * np.eye(3) + (1 - factor) * _LUMA
                matrix, shift = blend @ matrix, blend @ shift
            else:
                grey = _LUMA @ (matrix @ mean + shift) if kind == 1 else 0.0
                matrix, shift = factor * matrix, factor * shift + (1 - factor) * grey
    if noise:
        shift = shift + 255 * EIGENVECTORS @ (noise * rng.standard_normal(3) * EIGENVALUES)
    cv2.transform(pixels, np.column_stack([matrix, shift]), pixels)


def scaled_part(pixels: Pixels, box: Box, size: int) -> Pixels:
    """Scale ``box`` of uint8 (height, width, 3) to (size, size, 3)."""
    part = pixels[box.top : box.top + box.height, box.left : box.left + box.width]
    return np.asarray(cv2.resize(part, (size, size), interpolation=cv2.INTER_LINEAR), np.uint8)


def _decode_jpeg(data: Buffer, choose: Callable[[int, int], Box], size: int) -> tuple[Pixels, Box]:
    """RGB pixels and the box within them.

    Raises:
        ValueError, KeyError: libjpeg cannot decode the file to RGB.
    """
    height, width, colorspace, _ = simplejpeg.decode_jpeg_header(data, strict=False)
    if colorspace in ("CMYK", "YCCK"):
        raise ValueError(colorspace)
    box = choose(width, height)
    # The smallest size of the whole image at which the part is as large as the target.
    least_width, least_height = -(-size * width // box.width), -(-size * height // box.height)
    fraction = dct_fraction(width, height, least_width, least_height)
    rows = box.top + box.height + _ROWS_BELOW * fraction
    shown = height
    if height - rows >= _WORTH_ROWS and (upper := _upper_rows(data, rows)):
        data, shown = upper, rows
    least = {}
    if fraction > 1:  # the box becomes that of the whole image at a fraction of its size
        new_width, new_height = -(-width // fraction), -(-height // fraction)
        least = {"min_width": new_width, "min_height": -(-shown // fraction)}
        left, top = box.left * new_width // width, box.top * new_height // height
        box = Box(
            left,
            top,
            max(1, min(new_width - left, round(box.width * new_width / width))),
            max(1, min(new_height - top, round(box.height * new_height / height))),
        )
    pixels: Pixels = simplejpeg.decode_jpeg(data, "RGB", strict=False, **least)
    return pixels, box


def _upper_rows(data: Buffer, rows: int) -> bytearray | None:
    """A copy of a JPEG whose header says that it has ``rows`` rows, fewer than it has.

    Decoders stop there. All pixels stay the same except in the last rows, whose chroma depends on
    the row below. None for a kind of JPEG for which this is not known to work.
    """
    copy = bytearray(data)
    for marker, start, _ in segments(copy):
        if marker in _SOF:
            copy[start + 1 : start + 3] = rows.to_bytes(2, "big")  # after the sample precision
            return copy
    return None
