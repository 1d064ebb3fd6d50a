"""The expected content of the record files in this folder. The images are files beside them."""

from __future__ import annotations

from pathlib import Path

MAGIC = b"\x0a\x23\xd7\xce"
CLASSES = [
    (b"n01440764", b"tench, Tinca tinca"),
    (b"n01443537", b"goldfish, Carassius auratus"),
    (b"n01484850", "requin-tigre, Galéocerdo".encode()),
]
FILENAMES = [b"n01440764_1.JPEG", b"n01443537_2.JPEG", b"n01484850_3.JPEG"]
BOXES = [[], [0.25], [0.0, 0.1, 0.75]]
LABELS = [[0.0], [1.0, 0.25, 0.5], [2.0]]


def image(number: int) -> bytes:
    """The JPEG of one record."""
    return (Path(__file__).parent / f"image-{number}.jpg").read_bytes()
