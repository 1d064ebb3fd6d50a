"""What resizing costs in quality: every filter beside Pillow's Lanczos from the full image.

PSNR and SSIM are means over photographs that are stored as PNG, so that the filter alone is
measured. SSIM is that of Wang, Bovik, Sheikh and Simoncelli (IEEE Transactions on Image Processing
13-4, 2004): of the luminance, with a Gaussian window of 1.5 pixels. ``alias`` is what is left of
the rings of a zone plate that are too fine for the target, as a standard deviation in levels of
255: the mean over reductions by 1.2 to 4.
"""

from __future__ import annotations

import io
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import cv2
import numpy as np
import simplejpeg
from numpy.typing import NDArray
from PIL import Image

from dataprep.image import ImagePolicy, convert
from iobench.sidebyside.contest import Contender, Contest, Goal, Measured
from iobench.sidebyside.workplace import Workplace, photographs

SIZE = 256
_MOST = 150
_PLATE = 480
_REDUCTIONS = (400, 360, 300, 256, 224, 200, 161, 128)
_FILTERS = ("bicubic", "bilinear", "area", "lanczos")
_AREA, _LINEAR = "OpenCV area", "OpenCV linear"

Pixels = NDArray[np.uint8]
Resize = Callable[[bytes, int], Pixels]


def contests(place: Workplace) -> Iterator[Contest]:
    """One contender a filter, the default first, and OpenCV's two of the full image."""
    arguments = {"photos": str(place.photos)}
    own = tuple(
        Contender(f"filter: {name}", f"{__name__}:ours", {**arguments, "filter": name})
        for name in _FILTERS
    )
    yield Contest(
        name="quality",
        title="Quality of resizing",
        unit="img",
        contenders=(
            *own,
            Contender(_AREA, f"{__name__}:opencv", {**arguments, "interpolation": "INTER_AREA"}),
            Contender(
                _LINEAR, f"{__name__}:opencv", {**arguments, "interpolation": "INTER_LINEAR"}
            ),
        ),
        goals=(
            Goal(1.0, _AREA, "alias", "at most"),
            Goal(1.0, _AREA, "psnr_dB"),
            Goal(1.0, _AREA, "ssim"),
        ),
        notes=("psnr and ssim beside Pillow's Lanczos of the full image; of alias less is right.",),
        repeats=1,
    )


def ours(photos: str, filter: str) -> Measured:
    """``dataprep.convert`` with one of its filters."""

    def resize(data: bytes, size: int) -> Pixels:
        policy = ImagePolicy.model_validate({"size": size, "filter": filter, "encoding": "png"})
        return _shown(convert(data, policy).data)

    return _judged(photos, resize)


def opencv(photos: str, interpolation: str) -> Measured:
    """The full image by one of OpenCV's interpolations."""

    def resize(data: bytes, size: int) -> Pixels:
        pixels = _shown(data)
        target = _target(pixels.shape[1], pixels.shape[0], size)
        small = cv2.resize(pixels, target, interpolation=getattr(cv2, interpolation))
        return np.asarray(small, np.uint8)

    return _judged(photos, resize)


def alias(resize: Resize) -> float:
    """What is left of rings that are too fine, in levels; the mean over reductions."""
    across = np.arange(_PLATE) - (_PLATE - 1) / 2
    squares = across**2 + across[:, None] ** 2
    plate = np.rint(127.5 + 127.5 * np.cos(np.pi * squares / _PLATE)).astype(np.uint8)
    data = simplejpeg.encode_jpeg(plate[..., None], 100, "GRAY", "Gray")
    return float(np.mean([_left(resize(data, size), size) for size in _REDUCTIONS]))


def _left(result: Pixels, size: int) -> float:
    across = np.arange(size) - (size - 1) / 2
    radius = np.hypot(across, across[:, None])
    finest = 1.1 * size**2 / (2 * _PLATE)
    grey = result if result.ndim == 2 else result[:, :, 0]
    return float(grey[(radius > finest) & (radius < size / 2)].std())


def _judged(photos: str, resize: Resize) -> Measured:
    files = photographs(Path(photos))
    found = [path.read_bytes() for path in files[:: max(1, len(files) // _MOST)]]
    psnrs, ssims, seconds = [], [], 0.0
    for data in found:
        wanted = _lanczos(data)
        started_s = time.perf_counter()
        pixels = resize(data, SIZE)
        seconds += time.perf_counter() - started_s
        if pixels.shape == wanted.shape and min(_size(data)) > SIZE:
            psnrs.append(_psnr(pixels, wanted))
            ssims.append(_ssim(pixels, wanted))
    others = {
        "psnr_dB": float(np.mean(psnrs)),
        "ssim": float(np.mean(ssims)),
        "alias": alias(resize),
    }
    return Measured(len(found), seconds, others)


def _lanczos(data: bytes) -> Pixels:
    image = Image.fromarray(_shown(data))
    return np.asarray(
        image.resize(_target(image.width, image.height, SIZE), Image.Resampling.LANCZOS)
    )


def _shown(data: bytes) -> Pixels:
    """As RGB or grey; JPEGs by libjpeg-turbo, as the others decode them."""
    if data.startswith(b"\xff\xd8"):
        grey = simplejpeg.decode_jpeg_header(data)[2] == "Gray"
        pixels: Pixels = simplejpeg.decode_jpeg(data, "GRAY" if grey else "RGB")
        return pixels[:, :, 0] if grey else pixels
    return np.asarray(Image.open(io.BytesIO(data)))


def _size(data: bytes) -> tuple[int, int]:
    height, width, *_ = simplejpeg.decode_jpeg_header(data)
    return width, height


def _target(width: int, height: int, size: int) -> tuple[int, int]:
    short = min(width, height)
    wide, high = ((2 * side * size + short) // (2 * short) for side in (width, height))
    return wide, high


def _psnr(pixels: Pixels, wanted: Pixels) -> float:
    error = float(((pixels.astype(np.float64) - wanted) ** 2).mean())
    return 10 * math.log10(255**2 / max(error, 1e-3))


def _ssim(pixels: Pixels, wanted: Pixels) -> float:
    one, other = _luminance(pixels), _luminance(wanted)

    def mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(cv2.GaussianBlur(values, (11, 11), 1.5), np.float64)

    one_mean, other_mean = mean(one), mean(other)
    one_var, other_var = mean(one * one) - one_mean**2, mean(other * other) - other_mean**2
    both = mean(one * other) - one_mean * other_mean
    light, contrast = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    above = (2 * one_mean * other_mean + light) * (2 * both + contrast)
    below = (one_mean**2 + other_mean**2 + light) * (one_var + other_var + contrast)
    return float((above / below).mean())


def _luminance(pixels: Pixels) -> NDArray[np.float64]:
    grey = pixels if pixels.ndim == 2 else cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    return np.asarray(grey, np.float64)
