"""Images in the odd encodings of real JPEG collections, and files that are broken on purpose."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from collections.abc import Iterable

import cv2
import numpy as np
import simplejpeg
from PIL import Image, ImageCms

from dataprep.drawn.drawing import Pixels

_SOI_BYTES = 2
_ORIENTATION = 0x0112
_SHORT, _LONG = 3, 4
# No encoder here can use arithmetic coding: this file has 32 x 24 pixels of a gradient.
_ARITHMETIC = (
    "|JeWF01!$>Nk#wx0RR9200961|JwjV01XKW3knDg3knMk4h;_zAQcl55)&sJ9v2`kDKRiEDJ?8BI!Zn>HbyrrEkI"
    "X6ModmpQ&KWMT47pHU`kO^PygEhLjevB4iga*CKVMXPc<zyPft%zPft%zPft%zPft%zPft%zPft%zPft%zPft%zP"
    "ft%zPft%zPft%zPft%zPf!2J01*fP7yuvx0U`hb5di}c0sqVZ3IGrg1pyEd1^?Or3<CiG0ucid06zf#0CM~=RggY"
    "!K!+qcS(e97g~<y=zkE@1()Xs%yIaY>IVD{ptP3@SOrn_nimRZ_qP2!(XqwjG-S!_G%k(C1mH*i"
)


def jpeg(image: Pixels, subsampling: str = "420", quality: int = 90) -> bytes:
    """Encode baseline JPEG; ``subsampling`` is 444, 422, 420, 440 or 411."""
    return bytes(simplejpeg.encode_jpeg(image, quality, "RGB", subsampling, fastdct=False))


def grey_jpeg(image: Pixels) -> bytes:
    """Encode JPEG with one component."""
    return pillow(image, "JPEG", "L", quality=90)


def pillow(image: Pixels, kind: str, mode: str = "RGB", **options: object) -> bytes:
    """Convert to a mode of Pillow's and save as a format of Pillow's."""
    return _save(Image.fromarray(image).convert(mode), kind, **options)


def adobe_rgb_jpeg(image: Pixels) -> bytes:
    """Encode JPEG that holds RGB, as its Adobe marker says (transform 0)."""
    return pillow(image, "JPEG", quality=90, keep_rgb=True)


def adobe_cmyk_jpeg(image: Pixels) -> bytes:
    """Encode CMYK JPEG with an Adobe marker, hence inverted."""
    return _save(_cmyk(image), "JPEG", quality=90)


def plain_cmyk_jpeg(image: Pixels) -> bytes:
    """Encode CMYK JPEG without an Adobe marker, hence as amounts of ink, not inverted."""
    # Pillow inverts every CMYK image that it saves.
    inverted = _four_channels("CMYK", 255 - np.asarray(_cmyk(image)))
    return _without_adobe(_save(inverted, "JPEG", quality=90))


def ycck_jpeg(image: Pixels) -> bytes:
    """Encode YCCK JPEG (Adobe transform 2), hence inverted."""
    inverted = 255 - np.asarray(_cmyk(image))
    # YCCK is YCbCr of the complement of the stored CMY, beside K as it is stored.
    ycc = Image.fromarray(255 - inverted[..., :3]).convert("YCbCr")
    planes = np.concatenate([np.asarray(ycc), inverted[..., 3:]], axis=-1)
    data = bytearray(_save(_four_channels("CMYK", 255 - planes), "JPEG", quality=90))
    data[data.index(b"Adobe") + 11] = 2
    return bytes(data)


def arithmetic_jpeg() -> bytes:
    """Return a small JPEG with arithmetic in place of Huffman coding."""
    return base64.b85decode(_ARITHMETIC)


def icc_jpeg(image: Pixels) -> bytes:
    """Encode JPEG with an embedded sRGB profile."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    # Its creation date would change the bytes every day.
    profile[24:36] = struct.pack(">6H", 2012, 1, 1, 0, 0, 0)
    return pillow(image, "JPEG", quality=90, icc_profile=bytes(profile))


def oriented_jpeg(
    image: Pixels, orientation: int, *, as_long: bool = False, note_bytes: int = 0
) -> bytes:
    """Encode JPEG with an EXIF orientation of 1 to 8.

    ``as_long`` stores it with the type LONG instead of the customary SHORT. ``note_bytes`` is the
    length of a maker's note behind it.
    """
    kind, value = (
        (_LONG, struct.pack(">I", orientation))
        if as_long
        else (
            _SHORT,
            struct.pack(">HH", orientation, 0),
        )
    )
    entries = [struct.pack(">HHI", _ORIENTATION, kind, 1) + value]
    if note_bytes:
        entries.append(struct.pack(">HHII", 0x927C, 7, note_bytes, 8 + 2 + 2 * 12 + 4))
    directory = struct.pack(">H", len(entries)) + b"".join(entries) + bytes(4)
    return _with_exif(jpeg(image), b"MM\x00\x2a\x00\x00\x00\x08" + directory + bytes(note_bytes))


def bad_exif_jpeg(image: Pixels) -> bytes:
    """Encode a sound JPEG whose EXIF block points outside itself."""
    entry = struct.pack(">HHII", 0x010F, 2, 1 << 20, 0x7FFFFFFF)
    return _with_exif(jpeg(image), b"MM\x00\x2a\x00\x00\x00\x08\xff\xff" + entry)


def palette_png(image: Pixels) -> bytes:
    """Encode PNG of 256 colours, of which the first is transparent."""
    paletted = Image.fromarray(image).quantize(256, dither=Image.Dither.NONE)
    return _save(paletted, "PNG", transparency=0)


def rgba_png(image: Pixels) -> bytes:
    """Encode PNG whose alpha falls from left to right."""
    alpha = np.linspace(255, 0, image.shape[1]).astype(np.uint8)
    faded = np.dstack([image, np.broadcast_to(alpha, image.shape[:2])])
    return _save(_four_channels("RGBA", faded), "PNG")


def deep_png(image: Pixels, *, grey: bool) -> bytes:
    """Encode PNG with 16 bits for each channel."""
    deep = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY if grey else cv2.COLOR_RGB2BGR)
    _, data = cv2.imencode(".png", np.asarray(deep).astype(np.uint16) * 257)
    return data.tobytes()


def animated_gif(image: Pixels, frames: int = 3) -> bytes:
    """Encode a GIF of several frames, each rolled further to the right."""
    pictures = [
        Image.fromarray(np.roll(image, 20 * number, axis=1)).quantize(64)
        for number in range(frames)
    ]
    return _save(pictures[0], "GIF", save_all=True, append_images=pictures[1:], duration=100)


def with_garbage(data: bytes, rng: np.random.Generator) -> bytes:
    """Overwrite the middle of the entropy-coded data of a JPEG, with a stray marker first."""
    middle = len(data) // 2
    garbage = b"\xff\xc0" + rng.bytes(300)
    return data[:middle] + garbage + data[middle + len(garbage) :]


def bomb_jpeg(image: Pixels, side: int) -> bytes:
    """Encode JPEG whose header claims ``side`` x ``side`` pixels."""
    data = bytearray(jpeg(image))
    frame = data.index(b"\xff\xc0")
    data[frame + 5 : frame + 9] = struct.pack(">HH", side, side)
    return bytes(data)


def bomb_png(side: int) -> bytes:
    """Write a PNG of a few bytes whose header claims ``side`` x ``side`` pixels."""
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return png_of_chunks([(b"IHDR", header), (b"IDAT", zlib.compress(bytes(1000))), (b"IEND", b"")])


def png_of_chunks(chunks: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Write a PNG of chunks, each of which is a name and its content."""
    data = b"\x89PNG\r\n\x1a\n"
    for name, content in chunks:
        checksum = struct.pack(">I", zlib.crc32(name + content))
        data += struct.pack(">I", len(content)) + name + content + checksum
    return data


def _save(picture: Image.Image, kind: str, **options: object) -> bytes:
    """The bytes of a picture in a format of Pillow."""
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


def _cmyk(image: Pixels) -> Image.Image:
    """Separate with full black generation, in which 255 is full ink."""
    ink = 255 - image.astype(np.int32)
    black = ink.min(axis=-1, keepdims=True)
    colours = (ink - black) * 255 // np.maximum(255 - black, 1)
    return _four_channels("CMYK", np.concatenate([colours, black], axis=-1).astype(np.uint8))


def _four_channels(mode: str, pixels: Pixels) -> Image.Image:
    """A picture of four channels in a mode of Pillow."""
    height, width = pixels.shape[:2]
    return Image.frombytes(mode, (width, height), pixels.tobytes())


def _without_adobe(data: bytes) -> bytes:
    """A JPEG without its Adobe marker."""
    start = data.index(b"\xff\xee")
    length = struct.unpack(">H", data[start + 2 : start + 4])[0]
    return data[:start] + data[start + 2 + length :]


def _with_exif(data: bytes, tiff: bytes) -> bytes:
    """Insert an APP1 segment at the beginning, as cameras do."""
    content = b"Exif\x00\x00" + tiff
    segment = b"\xff\xe1" + struct.pack(">H", 2 + len(content)) + content
    return data[:_SOI_BYTES] + segment + data[_SOI_BYTES:]
