"""Too little memory is no broken image."""

from __future__ import annotations

import contextlib
import io
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dataprep.errors import CorruptImage, ImageError
from dataprep.image import convert
from dataprep.image.out_of_memory import raise_if_cause, silent_pixels

SILENT = "broken image: could not create decoder object"


def encoded(container: str, width: int, height: int, **how: Any) -> bytes:
    """A picture of that size."""
    noise = np.random.default_rng(1).integers(0, 256, (height, width, 3), np.uint8)
    sink = io.BytesIO()
    Image.fromarray(noise).save(sink, container, **how)
    return sink.getvalue()


@contextlib.contextmanager
def converting(data: bytes, max_pixels: int) -> Iterator[None]:
    """What ``convert`` does around codecs."""
    try:
        yield
    except Exception as error:
        raise_if_cause(error, data, max_pixels)
        raise


SAID = [
    "corrupt JPEG: Insufficient memory (case 4)",  # libjpeg-turbo
    "broken image: Pixel allocation failed: Out of memory",  # libavif
    "out of memory when reading image file",  # Pillow
    "encoding error 1",  # libwebp, VP8_ENC_ERROR_OUT_OF_MEMORY
    "OpenCV(4.12) Failed to allocate 9 bytes in function 'OutOfMemoryError'",
]


@pytest.fixture
def under_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that may not allocate whatever it likes, though a lot."""
    monkeypatch.setattr(resource, "getrlimit", lambda limit: (2**50, 2**50))


@pytest.mark.usefixtures("under_a_limit")
@pytest.mark.parametrize("words", SAID)
def test_those_that_say_so(words: str) -> None:
    """Whatever kind of error they raise."""
    with pytest.raises(MemoryError, match="too little memory"), converting(b"", 1):
        raise CorruptImage(words)


@pytest.mark.usefixtures("under_a_limit")
@pytest.mark.parametrize("words", ["encoding error 10", SILENT, "Premature end of JPEG file"])
def test_those_that_do_not(words: str) -> None:
    """Their error stays theirs."""
    with pytest.raises(CorruptImage, match=words), converting(encoded("PNG", 9, 9), 10**6):
        raise CorruptImage(words)


@pytest.mark.parametrize("words", SAID)
def test_where_nothing_is_limited_a_size_was_damaged(words: str) -> None:
    """No file can stop a job by it."""
    with pytest.raises(CorruptImage), converting(b"", 1):
        raise CorruptImage(words)


@pytest.mark.usefixtures("under_a_limit")
@pytest.mark.parametrize("word", [b"outofmemory", b"bad_alloc", b"Out of memor"])
@pytest.mark.parametrize("before", [b"", b"P6 ", b"P6 9 9 "])
def test_no_file_says_it_of_itself(before: bytes, word: bytes) -> None:
    """Errors tell how a file begins, and words of its header."""
    with pytest.raises(ImageError):
        convert(before + word + b" 255\n")


@pytest.mark.parametrize(
    ("container", "how"),
    [
        ("WEBP", {}),
        ("WEBP", {"lossless": True}),
        ("WEBP", {"exif": b"Exif\0\0MM\0*\0\0\0\x08\0\0\0\0\0\0"}),
        ("AVIF", {}),
    ],
    ids=["lossy", "lossless", "extended", "avif"],
)
def test_the_size_of_those_that_are_silent(container: str, how: dict[str, Any]) -> None:
    """Is read from their header, and from what is left of one."""
    data = encoded(container, 33, 17, **how)
    assert silent_pixels(data) == 33 * 17
    for end in range(0, len(data), 7):
        assert silent_pixels(data[:end]) in (0, 33 * 17)
    assert silent_pixels(encoded("JPEG", 33, 17)) == 0


LIMITED = """
import resource, sys
from pathlib import Path
from dataprep.errors import ImageError
from dataprep.image import convert
large, small, spare = sys.argv[1:]
convert(Path(small).read_bytes())
data = Path(large).read_bytes()
pages = int(Path("/proc/self/statm").read_text().split()[0])
room = pages * resource.getpagesize() + int(spare)
resource.setrlimit(resource.RLIMIT_AS, (room, room))
try:
    convert(data)
except (ImageError, MemoryError) as error:
    print(type(error).__name__)
"""


def limited(folder: Path, data: bytes, small: bytes, spare: int) -> str:
    """The error over ``data`` in a process that may allocate so much more, after ``small``."""
    (folder / "large").write_bytes(data)
    (folder / "small").write_bytes(small)
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(folder / "large"), str(folder / "small"), str(spare)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("container", "how"),
    [("JPEG", {"progressive": True}), ("WEBP", {}), ("AVIF", {"speed": 10}), ("PNG", {})],
    ids=["progressive", "webp", "avif", "png"],
)
def test_a_limited_process(container: str, how: dict[str, Any], tmp_path: Path) -> None:
    """Of an image for which there is not memory enough it never says that it is broken."""
    sink = io.BytesIO()
    Image.new("RGB", (3000, 2000), (9, 90, 200)).save(sink, container, **how)
    small = encoded(container, 300, 200, **how)
    assert limited(tmp_path, sink.getvalue(), small, 10_000_000) == "MemoryError"


@pytest.mark.parametrize("container", ["WEBP", "AVIF"])
def test_a_broken_image_where_memory_is_enough(container: str, tmp_path: Path) -> None:
    """Is one, limit or not."""
    data = encoded(container, 300, 200)
    error = limited(tmp_path, data[: len(data) // 3], data, 2**31)
    assert error == {"WEBP": "CorruptImage", "AVIF": "NotAnImage"}[container]


def test_a_broken_image_stays_one() -> None:
    """Where no limit is set."""
    for container in ("WEBP", "AVIF", "JPEG"):
        data = encoded(container, 64, 64)
        with pytest.raises(ImageError):
            convert(data[: len(data) // 3])
