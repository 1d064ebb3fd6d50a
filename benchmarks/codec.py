"""Compare ``dataprep.convert`` with the JPEG codec alone, on one core."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import simplejpeg

from benchmarks.contest import Contender, Contest, Measured
from benchmarks.workplace import Workplace, files_below
from dataprep.image import ImagePolicy, convert

SIZE = 256
QUALITY = 95
_MAX_IMAGES = 400
_WARM_UP = 20
"""The number of images that are converted before the measurement begins."""

FLOOR = "codec floor"


Work = Callable[[bytes], object]
"""A function that converts an image."""


def contests(workplace: Workplace) -> Iterator[Contest]:
    """Yield the contest of conversions."""
    run, photos = f"{__name__}:timed", str(workplace.photos)
    yield Contest(
        name="convert",
        title="One core: short side 256, q95, 4:2:0",
        unit="img",
        contenders=tuple(Contender(name, run, {"photos": photos, "way": name}) for name in WAYS),
        notes=(
            f"{FLOOR}: simplejpeg decodes the whole image, and encodes an image that was resized "
            "before.",
        ),
    )


def timed(photos: str, way: str) -> Measured:
    """Measure one way of ``WAYS`` on the photographs."""
    images = _read(photos)
    work = WAYS[way](images)
    for data in images[:_WARM_UP]:
        work(data)
    started_s = time.perf_counter()
    for data in images:
        work(data)
    return Measured(len(images), time.perf_counter() - started_s)


def ours(images: list[bytes]) -> Work:
    """Return the conversion by ``dataprep.convert``."""
    policy = ImagePolicy(size=SIZE)
    return lambda data: convert(data, policy)


def codec_alone(images: list[bytes]) -> Work:
    """Return a function that decodes an image in full, and encodes it at its target size.

    It does not resize the image. All images are resized before the measurement.
    """
    policy = ImagePolicy(size=SIZE)
    resized = {data: simplejpeg.decode_jpeg(convert(data, policy).data, "RGB") for data in images}

    def decode_and_encode(data: bytes) -> None:
        simplejpeg.decode_jpeg(data, "RGB")
        simplejpeg.encode_jpeg(resized[data], quality=QUALITY, colorsubsampling="420")

    return decode_and_encode


def _read(photos: str) -> list[bytes]:
    """Read photographs at equal distances in a folder."""
    files = files_below(Path(photos))
    step = max(1, len(files) // _MAX_IMAGES)
    return [path.read_bytes() for path in files[::step]]


WAYS: Mapping[str, Callable[[list[bytes]], Work]] = {
    "dataprep.convert": ours,
    FLOOR: codec_alone,
}
"""The ways of converting. Each takes all images, and returns the function that is timed."""
