"""One core, one image: ``convert`` beside the codec alone and beside other ways to resize."""

from __future__ import annotations

import io
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import cv2
import numpy as np
import simplejpeg
from PIL import Image

from dataprep.image import ImagePolicy, convert
from iobench.sidebyside.contest import Contender, Contest, Goal, Measured
from iobench.sidebyside.workplace import Workplace, photographs

SIZE = 256
QUALITY = 95
_MOST = 400
_TURN = 20
FLOOR = "codec floor"
AREA = "OpenCV area"
PILLOW = "Pillow bilinear"


Work = Callable[[bytes], object]


def contests(place: Workplace) -> Iterator[Contest]:
    """What ``convert`` takes for one image."""
    run, arguments = f"{__name__}:in_turns", {"photos": str(place.photos)}
    yield Contest(
        name="convert",
        title="One core: short side 256, q95, 4:2:0",
        unit="img",
        contenders=tuple(Contender(name, run, arguments) for name in WAYS),
        goals=(Goal(0.90, FLOOR), Goal(1.4, AREA), Goal(1.6, PILLOW)),
        notes=(
            f"{FLOOR}: simplejpeg decodes in full and encodes the resized image, nothing between. "
            f"In one process, by turns of {_TURN} images.",
        ),
        together=True,
    )


def in_turns(photos: str) -> dict[str, Measured]:
    """Every way over the same photographs, a few of them at a time.

    Whole passes would compare the processor's moods: a neighbour on the same machine, or where a
    process's memory happens to lie, make a second of work a third faster or slower.
    """
    found = _read(photos)
    works = {name: prepare(found) for name, prepare in WAYS.items()}
    seconds = dict.fromkeys(works, 0.0)
    for work in works.values():
        for data in found[:_TURN]:
            work(data)
    order = deque(works)
    for start in range(0, len(found), _TURN):
        for name in order:
            begun_s = time.perf_counter()
            for data in found[start : start + _TURN]:
                works[name](data)
            seconds[name] += time.perf_counter() - begun_s
        order.rotate()
    return {name: Measured(len(found), seconds[name]) for name in works}


def ours(found: list[bytes]) -> Work:
    """``dataprep.convert``."""
    policy = ImagePolicy(size=SIZE)
    return lambda data: convert(data, policy)


def codec_alone(found: list[bytes]) -> Work:
    """Decodes one of these images in full and encodes it at its target size."""
    policy = ImagePolicy(size=SIZE)
    small = {data: simplejpeg.decode_jpeg(convert(data, policy).data, "RGB") for data in found}

    def both(data: bytes) -> None:
        simplejpeg.decode_jpeg(data, "RGB")
        simplejpeg.encode_jpeg(small[data], quality=QUALITY, colorsubsampling="420")

    return both


def linear(found: list[bytes]) -> Work:
    """What is fastest where neither aliasing nor the processor's rounding matters."""
    cv2.setNumThreads(1)

    def resize(data: bytes) -> None:
        pixels = simplejpeg.decode_jpeg(data, "BGR")
        _encode(cv2.resize(pixels, _target(*pixels.shape[1::-1])))

    return resize


def area(found: list[bytes]) -> Work:
    """OpenCV throughout, as img2dataset resizes."""
    cv2.setNumThreads(1)

    def resize(data: bytes) -> None:
        pixels = np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR))
        size = _target(*pixels.shape[1::-1])
        _encode(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA))

    return resize


def pillow_bilinear(found: list[bytes]) -> Work:
    """Pillow throughout."""
    return lambda data: _by_pillow(data, Image.Resampling.BILINEAR)


def pillow_lanczos(found: list[bytes]) -> Work:
    """Pillow throughout, with its best filter."""
    return lambda data: _by_pillow(data, Image.Resampling.LANCZOS)


def _by_pillow(data: bytes, filter: Image.Resampling) -> None:
    image = Image.open(io.BytesIO(data)).convert("RGB")
    small = image.resize(_target(*image.size), filter)
    small.save(io.BytesIO(), "JPEG", quality=QUALITY, subsampling="4:2:0")


def _encode(pixels: np.ndarray) -> None:
    cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])


def _target(width: int, height: int) -> tuple[int, int]:
    scale = SIZE / min(width, height)
    return max(1, round(width * scale)), max(1, round(height * scale))


def _read(photos: str) -> list[bytes]:
    files = photographs(Path(photos))
    return [path.read_bytes() for path in files[:: max(1, len(files) // _MOST)]]


WAYS: Mapping[str, Callable[[list[bytes]], Work]] = {
    "dataprep.convert": ours,
    FLOOR: codec_alone,
    "linear, aliasing, inexact": linear,
    AREA: area,
    PILLOW: pillow_bilinear,
    "Pillow Lanczos": pillow_lanczos,
}
"""Each is given the photographs, and gives what is done to one of them."""
