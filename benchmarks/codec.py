"""One core, one image: ``convert`` beside the codec alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import simplejpeg

from benchmarks.contest import Contender, Contest, Measured
from benchmarks.workplace import Workplace, photographs
from dataprep.image import ImagePolicy, convert

SIZE = 256
QUALITY = 95
_MOST = 400
_WARM_UP = 20
FLOOR = "codec floor"


Work = Callable[[bytes], object]


def contests(workplace: Workplace) -> Iterator[Contest]:
    """What ``convert`` takes for one image."""
    run, photos = f"{__name__}:timed", str(workplace.photos)
    yield Contest(
        name="convert",
        title="One core: short side 256, q95, 4:2:0",
        unit="img",
        contenders=tuple(Contender(name, run, {"photos": photos, "way": name}) for name in WAYS),
        notes=(
            f"{FLOOR}: simplejpeg decodes in full and encodes the resized image, nothing between. ",
        ),
    )


def timed(photos: str, way: str) -> Measured:
    """One way over the photographs."""
    images = _read(photos)
    work = WAYS[way](images)
    for data in images[:_WARM_UP]:
        work(data)
    started_s = time.perf_counter()
    for data in images:
        work(data)
    return Measured(len(images), time.perf_counter() - started_s)


def ours(images: list[bytes]) -> Work:
    """``dataprep.convert``."""
    policy = ImagePolicy(size=SIZE)
    return lambda data: convert(data, policy)


def codec_alone(images: list[bytes]) -> Work:
    """Decodes one of these images in full and encodes it at its target size."""
    policy = ImagePolicy(size=SIZE)
    small = {data: simplejpeg.decode_jpeg(convert(data, policy).data, "RGB") for data in images}

    def both(data: bytes) -> None:
        simplejpeg.decode_jpeg(data, "RGB")
        simplejpeg.encode_jpeg(small[data], quality=QUALITY, colorsubsampling="420")

    return both


def _read(photos: str) -> list[bytes]:
    files = photographs(Path(photos))
    return [path.read_bytes() for path in files[:: max(1, len(files) // _MOST)]]


WAYS: Mapping[str, Callable[[list[bytes]], Work]] = {
    "dataprep.convert": ours,
    FLOOR: codec_alone,
}
"""Each is given the photographs, and gives what is done to one of them."""
