"""A lack of memory is never reported as a broken image."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dataprep.errors import CorruptImage, ImageError
from dataprep.image import check, convert
from tests.dataprep.image.pictures import saved

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


def encoded(container: str, width: int, height: int, **options: Any) -> bytes:
    """An image of noise of this size."""
    noise = np.random.default_rng(1).integers(0, 256, (height, width, 3), np.uint8)
    return saved(Image.fromarray(noise), container, **options)


def limited(folder: Path, data: bytes, small: bytes, spare: int) -> str:
    """The error of ``data`` in a process that may allocate ``spare`` more bytes after ``small``."""
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
    """An image that needs more memory than the limit raises MemoryError."""
    large = saved(Image.new("RGB", (3000, 2000), (9, 90, 200)), container, **how)
    small = encoded(container, 300, 200, **how)
    assert limited(tmp_path, large, small, 10_000_000) == "MemoryError"


@pytest.mark.parametrize("container", ["WEBP", "AVIF"])
def test_a_broken_image_where_memory_is_enough(container: str, tmp_path: Path) -> None:
    """A broken image is reported as broken, with a memory limit or without."""
    data = encoded(container, 300, 200)
    error = limited(tmp_path, data[: len(data) // 3], data, 2**31)
    assert error == {"WEBP": "CorruptImage", "AVIF": "NotAnImage"}[container]


@pytest.mark.parametrize("text", [b"outofmemory", b"bad_alloc", b"Out of memory"])
def test_no_file_says_it_of_itself(text: bytes) -> None:
    """A file that has a codec's error text in its header is no image, and stops no job."""
    with pytest.raises(ImageError):
        convert(b"P6 9 9 " + text + b" 255\n")


def test_a_damaged_size_is_no_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a memory limit, libjpeg's out-of-memory error means a damaged file."""

    def decoded(*_: object, **__: object) -> None:
        raise ValueError("Insufficient memory (case 4)")

    data = encoded("JPEG", 64, 64)
    monkeypatch.setattr("simplejpeg.decode_jpeg", decoded)
    for convert_or_check in (convert, check):
        with pytest.raises(CorruptImage):
            convert_or_check(data)
