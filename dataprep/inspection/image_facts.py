"""PURE. What an encoded image says of itself, without decoding it."""

from __future__ import annotations

import io
from dataclasses import dataclass

from PIL import Image, JpegImagePlugin

from dataprep.errors import CorruptImage, ImageError, NotAnImage
from dataprep.image.containers import FORMATS
from dataprep.image.jpeg import read_header

_SUBSAMPLING = {0: "4:4:4", 1: "4:2:2", 2: "4:2:0"}
_SIGNS = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"GIF8", "GIF"),
    (b"BM", "BMP"),
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
)


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """The header of an image. ``details`` are words such as ``progressive`` and ``4:2:0``."""

    container: str
    width: int
    height: int
    colorspace: str
    bytes: int
    details: tuple[str, ...]

    def __str__(self) -> str:
        words = [
            f"{self.container} of {self.width} x {self.height}",
            self.colorspace,
            *self.details,
            f"{self.bytes:,} bytes",
        ]
        return ", ".join(words)


def container_of(head: bytes) -> str:
    """What kind of image begins with these bytes; empty where that is not known."""
    for sign, container in _SIGNS:
        if head.startswith(sign):
            return container
    return "WEBP" if head[:4] == b"RIFF" and head[8:12] == b"WEBP" else ""


def size_of(head: bytes) -> tuple[int, int] | None:
    """Width and height, where the first bytes of a JPEG, PNG, GIF or WebP tell them."""
    container = container_of(head)
    if container == "JPEG":
        try:
            header = read_header(head)
        except ImageError:
            return None
        return header.width, header.height
    if container == "PNG" and len(head) >= 24:
        return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
    if container == "GIF" and len(head) >= 10:
        return int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little")
    return _webp_size(head) if container == "WEBP" and len(head) >= 30 else None


def image_facts(data: bytes) -> ImageFacts:
    """What the header says.

    Raises:
        ImageError: no image that Pillow opens.
    """
    if not data:
        raise CorruptImage("no bytes at all")
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            container = image.format or "unknown"
            colorspace, details = image.mode, _details(image)
            width, height = image.size
    except Exception as error:  # decoders raise whatever they like
        raise NotAnImage(f"not an image that can be read: begins with {data[:12]!r}") from error
    if container == "JPEG":  # Pillow tells what it will decode to, not what is stored
        colorspace = read_header(data).colorspace
    return ImageFacts(container, width, height, colorspace, len(data), details)


def _details(image: Image.Image) -> tuple[str, ...]:
    details = []
    if isinstance(image, JpegImagePlugin.JpegImageFile):
        details.append(_SUBSAMPLING.get(JpegImagePlugin.get_sampling(image), ""))
    if image.info.get("progressive"):
        details.append("progressive")
    if image.info.get("icc_profile"):
        details.append("ICC profile")
    if (orientation := image.getexif().get(0x0112, 1)) != 1:
        details.append(f"orientation {orientation}")
    if getattr(image, "n_frames", 1) > 1:
        details.append(f"{image.n_frames} frames")  # type: ignore[attr-defined]
    return tuple(detail for detail in details if detail)


def _webp_size(head: bytes) -> tuple[int, int] | None:
    """After the container specification of WebP, and RFC 9649."""
    kind = head[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 ":
        width, height = head[26:28], head[28:30]
        return int.from_bytes(width, "little") & 0x3FFF, int.from_bytes(height, "little") & 0x3FFF
    return None
