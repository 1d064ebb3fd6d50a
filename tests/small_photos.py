"""Photos of a few hundred bytes, in folders."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

from PIL import Image


def photos(root: Path, counts: Mapping[str, int]) -> None:
    """Write this number of small photos into each folder below ``root``. No two are equal."""
    colour = 0
    for folder, count in counts.items():
        (root / folder).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            colour += 1
            (root / folder / f"{number}.jpg").write_bytes(jpeg(colour))


def jpeg(colour: int) -> bytes:
    """A photo of 16 x 16 pixels in one of 65,536 colours."""
    file = BytesIO()
    Image.new("RGB", (16, 16), (colour % 256, colour // 256, 128)).save(file, "JPEG")
    return file.getvalue()
