"""Any image Pillow opens, as honest 8-bit RGB or greyscale pixels."""

from __future__ import annotations

import io
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops, UnidentifiedImageError

from dataprep.errors import CorruptImage, ImageTooLarge, NotAnImage, UnsupportedImage

Pixels = NDArray[np.uint8]
"""Pixels, uint8, of shape (height, width, channels) with 1 or 3 channels."""

# Named, so that no decoder which runs a program (EPS) or accepts anything (TGA) is reached.
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "DIB", "TIFF", "WEBP", "PPM", "JPEG2000", "AVIF")
BACKGROUND = (255, 255, 255)
_SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*")
_PNG_GREY_ALPHA = 4

# Pillow warns of broken Exif and of images near its size limit; both are decided here.
warnings.filterwarnings("ignore", module=r"PIL\.")


class Opened(NamedTuple):
    """Pixels, and what had to be done to get them. ``mode`` is Pillow's name for the source."""

    pixels: Pixels
    container: str
    mode: str
    orientation: int
    notes: tuple[str, ...]


def open_image(data: bytes, max_pixels: int) -> Opened:
    """Decode with Pillow; the first frame of an animation; alpha over white.

    Raises:
        NotAnImage: Pillow knows no such format.
        CorruptImage: the image ends early or is broken.
        UnsupportedImage: its samples have no fixed range (floating point, 32 bits).
        ImageTooLarge: more than ``max_pixels``.
    """
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            if image.width * image.height > max_pixels:
                raise too_large(image.width, image.height, max_pixels)
            return _honest(image, data)
    except Image.DecompressionBombError as error:
        raise ImageTooLarge(f"pixel bomb: {error}") from None
    except UnidentifiedImageError:
        if data.startswith(_SIGNATURES):
            raise CorruptImage("broken image: its header cannot be read") from None
        raise NotAnImage(f"not an image: begins with {data[:12]!r}") from None
    except (CorruptImage, ImageTooLarge, UnsupportedImage):
        raise
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  decoders raise whatever they like
        raise CorruptImage(f"broken image: {str(error) or type(error).__name__}") from None


def too_large(width: int, height: int, max_pixels: int) -> ImageTooLarge:
    """The error for an image over the pixel limit."""
    return ImageTooLarge(
        f"{width} x {height} pixels are more than max_pixels allows ({max_pixels:,})"
    )


def _honest(image: Image.Image, data: bytes) -> Opened:
    container, mode = image.format or "unknown", image.mode
    notes = []
    if getattr(image, "n_frames", 1) > 1 and container != "MPO":
        notes.append("first_frame_kept")
    orientation = image.getexif().get(0x0112, 1)
    if image.info.get("icc_profile"):
        notes.append("icc_dropped")
    if image.mode.startswith(("I", "F")):
        notes.append("depth_reduced")
        image = _scaled_to_8_bits(image)
    elif container == "PNG" and data[24:25] == b"\x10":
        notes.append("depth_reduced")  # Pillow itself keeps the high byte of colour PNGs
    if mode in ("P", "PA"):
        notes.append("palette_converted")
    if mode == "CMYK":
        notes.append("cmyk_converted")
        if container == "JPEG" and "adobe" not in image.info:
            # Pillow takes every CMYK JPEG for Adobe's, which is stored inverted.
            image = ImageChops.invert(image)
    if image.has_transparency_data:
        notes.append("alpha_flattened")
        image = _flattened(image, data)
    if image.mode in ("1", "L"):
        pixels = np.asarray(image.convert("L"))[:, :, np.newaxis]
    else:
        pixels = np.asarray(image.convert("RGB"))
    orientation = int(orientation) if orientation in range(1, 9) else 1
    return Opened(pixels, container, mode, orientation, tuple(notes))


def _scaled_to_8_bits(image: Image.Image) -> Image.Image:
    """16 bits to 8 by scaling the range, never by clipping it."""
    if image.mode == "F":
        raise UnsupportedImage("floating-point samples have no fixed range to scale from")
    samples: NDArray[Any] = np.asarray(image).astype(np.int64)
    if samples.size and (samples.min() < 0 or samples.max() > 65_535):
        raise UnsupportedImage("32-bit samples have no fixed range to scale from")
    scaled = (samples * 255 + 32_767) // 65_535
    eight = Image.fromarray(scaled.astype(np.uint8))
    if isinstance(transparent := image.info.get("transparency"), int):
        alpha = np.where(samples == transparent, 0, 255).astype(np.uint8)
        eight.putalpha(Image.fromarray(alpha))
    return eight


def _scale_transparent_colour(image: Image.Image, data: bytes) -> None:
    """Bring a PNG's transparent colour from the file's depth to the 8 bits of the pixels.

    Pillow leaves it as it stands. Of 16 bits it keeps the high byte, so that all colours which
    share it with the transparent one are transparent too.
    """
    depth = data[24]
    transparent = image.info.get("transparency")
    if depth == 16 and isinstance(transparent, tuple):
        image.info["transparency"] = tuple(sample >> 8 for sample in transparent)
    elif depth in (2, 4) and isinstance(transparent, int) and image.mode == "L":
        image.info["transparency"] = transparent * (255 // (2**depth - 1))


def _flattened(image: Image.Image, data: bytes) -> Image.Image:
    """Alpha composed over white; grey with alpha stays grey."""
    grey = image.mode in ("LA", "La", "L", "1")
    if image.format == "PNG":
        _scale_transparent_colour(image, data)
        grey = grey or data[25] == _PNG_GREY_ALPHA  # which Pillow opens as RGBA at 16 bits
    rgba = image.convert("RGBA")
    ground = Image.new("RGBA", rgba.size, (*BACKGROUND, 255))
    return Image.alpha_composite(ground, rgba).convert("L" if grey else "RGB")
