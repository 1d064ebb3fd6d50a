"""Decode every image that is no plain JPEG, by Pillow, to 8-bit pixels.

Large images are worked on a few rows at a time: what is computed of all rows at once takes several
times their memory. Kinds that are not read are named by how a file begins: brands of
ISO/IEC 23008-12 (HEIF) and 18181-2 (JPEG XL); of raw files those that begin unlike a TIFF, and
Canon's CR2, which has ``CR`` at byte 8. NEF, ARW and DNG begin as any TIFF does.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageFile, TiffImagePlugin, UnidentifiedImageError

from dataprep.errors import (
    CorruptImage,
    ImageError,
    ImageTooLarge,
    NotAnImage,
    RefusedImage,
    UnsupportedImage,
)
from dataprep.image import file_facts, icc
from dataprep.image.file_facts import TIFF_SIGNATURES
from dataprep.image.geometry import Pixels, require_size, too_large
from dataprep.image.policy import ImagePolicy, Note, Refusal

# Named, so that no decoder which runs a program (EPS) or accepts anything (TGA) is reached.
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "DIB", "TIFF", "WEBP", "PPM", "JPEG2000", "AVIF")
_ORIENTATION = 0x0112
_XMP = ("xmp", "XML:com.adobe.xmp")
_PIXELS = re.compile(r"\((\d+) pixels\)")
_SIGNATURES = (
    b"\xff\xd8\xff",
    b"\x89PNG\r\n\x1a\n",
    b"GIF87a",
    b"GIF89a",
    *TIFF_SIGNATURES,
)
_INFLATED = ("MAX_TEXT_CHUNK", "MAX_TEXT_MEMORY")  # of PNG alone
_BROKEN = "broken image: its header cannot be read"
_BROKEN_TIFF = _BROKEN + " (a TIFF's; raw files of cameras, such as NEF, begin like one)"
_HEIF = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"})
_JPEG_XL = (b"\xff\x0a", b"\0\0\0\x0cJXL \r\n\x87\n")
_RAW = (b"FUJIFILMCCD-RAW", b"IIRO", b"IIRS", b"MMOR", b"IIU\0", b"FOVb", b"\0MRM")
_RAW_WORDS = "a camera's raw file is not read: convert it, for example with dcraw -T"
_JPEG = frozenset({"JPEG", "MPO"})
_BMP = frozenset({"BMP", "DIB"})
_BY_EXTENSION = {
    **dict.fromkeys(("jpeg", "jpg", "jpe", "jfif"), _JPEG),
    **dict.fromkeys(("bmp", "dib"), _BMP),
    **dict.fromkeys(("png", "apng"), frozenset({"PNG"})),
    **dict.fromkeys(("tif", "tiff"), frozenset({"TIFF"})),
    **dict.fromkeys(("ppm", "pgm", "pbm", "pnm"), frozenset({"PPM"})),
    **dict.fromkeys(("jp2", "j2k", "j2c", "jpx"), frozenset({"JPEG2000"})),
    **dict.fromkeys(("avif", "avifs"), frozenset({"AVIF"})),
    "gif": frozenset({"GIF"}),
    "webp": frozenset({"WEBP"}),
}
_STRIP_PIXELS = 2**20

# Pillow warns of broken Exif and of images near its size limit; both are decided here.
warnings.filterwarnings("ignore", module=r"PIL\.")


class Opened(NamedTuple):
    """Pixels, and what had to be done to get them.

    ``mode`` is Pillow's name for the source. ``orientation`` is the tag's, ``turned`` whether
    Pillow has followed it: to TIFF, and to it alone, it belongs as the order of its rows does.
    ``profile`` is the source's ICC profile, unless the
    pixels were converted by it or it cannot describe them. ``as_stored`` says whether any other
    decoder would get these very pixels from the file.
    """

    pixels: Pixels
    container: str
    mode: str
    orientation: int
    turned: bool
    notes: tuple[Note, ...]
    profile: bytes | None
    as_stored: bool


def open_image(data: bytes, policy: ImagePolicy) -> Opened:
    """Decode with Pillow, colours, alpha and the like as the policy says.

    Raises:
        NotAnImage: no format that is read.
        CorruptImage: the image ends early or is broken.
        UnsupportedImage: its samples have no fixed range (floating point, 32 bits).
        RefusedImage: the policy refuses images of its kind.
        ImageTooLarge: more than ``max_pixels``.
        ImageTooSmall: a side below ``min_size``.
    """
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            require_size(image.width, image.height, policy)
            return _honest(image, data, policy)
    except Image.DecompressionBombError as error:
        # Pillow's own limit, which max_pixels never exceeds; it tells the product alone.
        found = _PIXELS.search(str(error))
        raise too_large(f"{int(found[1]):,}" if found else "its", policy) from None
    except UnidentifiedImageError:
        if kind := _unread_kind(data):
            raise NotAnImage(kind) from None
        if data.startswith(TIFF_SIGNATURES) and _is_of_unknown_samples(data):
            raise UnsupportedImage(
                "TIFF with samples of a kind that Pillow does not read"
            ) from None
        if data.startswith(_SIGNATURES):
            raise CorruptImage(
                _BROKEN_TIFF if data.startswith(TIFF_SIGNATURES) else _BROKEN
            ) from None
        raise NotAnImage(f"not an image: begins with {data[:12]!r}") from None
    except (ImageError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001  decoders raise whatever they like
        said = str(error) or type(error).__name__
    if any(words in said for words in _INFLATED):
        bare = file_facts.png_without_texts(data)
        if bare != data:
            return open_image(bare, policy)._replace(as_stored=False)
        said = "its colour profile is larger than 1 MB once inflated"
    raise CorruptImage(f"broken image: {said}")


def _is_of_unknown_samples(data: bytes) -> bool:
    """Whether the header is sound: what identifies images does not tell."""
    try:
        TiffImagePlugin.TiffImageFile(io.BytesIO(data)).close()
    except SyntaxError as error:
        return "unknown" in str(error) and file_facts.tiff_has_whole_directory(data)
    except Exception:  # noqa: BLE001  decoders raise whatever they like
        return False
    return False


def _require_less(image: Image.Image, policy: ImagePolicy) -> None:
    """OpenJPEG holds four bytes a sample: of its pixels as many as take no more than a WebP's."""
    most = policy.max_pixels * 2 // 3
    if image.width * image.height > most:
        raise ImageTooLarge(
            f"{image.width} x {image.height} pixels of JPEG 2000, which takes 20 bytes each, are "
            f"more than two thirds of max_pixels ({most:,})"
        )


def refused(what: str, kind: Refusal) -> RefusedImage:
    """The error for an image of a kind that the policy refuses."""
    return RefusedImage(f"{what}: image.{kind} says 'fail'", kind)


def _honest(image: Image.Image, data: bytes, policy: ImagePolicy) -> Opened:
    container, mode = image.format or "unknown", image.mode
    if container == "JPEG2000":
        _require_less(image, policy)
    notes = _traits(image, container, data, policy)
    turned = container == "TIFF"
    tag = _orientation(image) if turned else None
    notes += _loaded(image, policy)
    tag = _orientation(image) if tag is None else tag  # may lie behind the pixels
    vars(image).pop("_decoder", None)  # WebP's holds two more canvases until it goes
    profile = image.info.get("icc_profile") or None
    if container == "JPEG" and mode == "CMYK" and "adobe" not in image.info:
        # Pillow takes every CMYK JPEG for Adobe's, which is stored inverted.
        image = ImageChops.invert(image)
    eight = _to_8_bits(image) if image.mode.startswith(("I", "F")) else image
    picture = _picture(eight, container, data, profile, policy)
    notes += picture.notes
    kept = _as_array(picture.image)
    plain = not notes or notes == ["alpha_kept"]
    sound = container == "WEBP" or (container == "PNG" and file_facts.png_depth(data) == 8)
    as_stored = plain and sound and picture.image.mode == mode
    if as_stored and container == "PNG":
        as_stored = file_facts.is_png_sound(data)
    pixels = kept[:, :, np.newaxis] if kept.ndim == 2 else kept
    orientation = int(tag) if tag in range(1, 9) else 1
    return Opened(
        *(pixels, container, mode, orientation, turned, tuple(notes), picture.profile, as_stored)
    )


def _orientation(image: Image.Image) -> Any:
    """Exif's. Pillow would take XMP's where Exif has none."""
    for xmp in _XMP:
        image.info.pop(xmp, None)
    return image.getexif().get(_ORIENTATION, 1)


def _traits(image: Image.Image, container: str, data: bytes, policy: ImagePolicy) -> list[Note]:
    """What the header tells, before a pixel is decoded. Raises RefusedImage."""
    notes: list[Note] = []
    # Counting frames would read all of them, and of a TIFF set up each.
    if getattr(image, "is_animated", False) and container != "MPO":
        if policy.animation == "fail":
            raise refused("more than one frame", "animation")
        notes.append("first_frame_kept")
    if image.mode == "F" or file_facts.is_signed(image):
        kind = "floating-point" if image.mode == "F" else "signed"
        raise UnsupportedImage(f"{kind} samples have no fixed range to scale from")
    if file_facts.is_deep(image, data):
        if policy.depth == "fail":
            raise refused("more than 8 bits a sample", "depth")
        notes.append("depth_reduced")
    if image.mode in ("P", "PA"):
        if policy.palette == "fail":
            raise refused("a palette of colours", "palette")
        notes.append("palette_converted")
    if image.mode == "CMYK":
        if policy.cmyk == "fail":
            raise refused("four inks (CMYK)", "cmyk")
        notes.append("cmyk_converted")
    return notes


def _loaded(image: Image.Image, policy: ImagePolicy) -> list[Note]:
    """Decode; of what ends early, as far as it goes, if the policy says so.

    Pillow has a switch for it, which is one for all threads. It leaves what it has decoded in
    the image; with no tile left to decode, the image counts as loaded.
    """
    try:
        image.load()
    except OSError as error:
        ends_early = "truncated" in str(error)
        if (
            policy.truncated == "fail"
            or not ends_early
            or not isinstance(image, ImageFile.ImageFile)
        ):
            raise
        image.tile = []
        if not image.getbbox(alpha_only=False):
            raise CorruptImage("truncated image: no pixel of it decodes") from None
        return ["truncated_kept"]
    return []


class _Picture(NamedTuple):
    """L, RGB or RGBA, and the profile that describes it."""

    image: Image.Image
    notes: list[Note]
    profile: bytes | None


def _picture(
    image: Image.Image, container: str, data: bytes, profile: bytes | None, policy: ImagePolicy
) -> _Picture:
    if not image.has_transparency_data:
        if image.mode != "CMYK" or policy.icc != "srgb":
            wanted = "L" if image.mode in ("1", "L") else "RGB"
            image = image if image.mode == wanted else image.convert(wanted)
        managed = _managed(image, profile, policy)
        # Inks that no profile could convert.
        image = managed.image.convert("RGB") if managed.image.mode == "CMYK" else managed.image
        return managed._replace(image=image)
    if policy.alpha == "fail":
        raise refused("transparency", "alpha")
    grey = image.mode in ("LA", "La", "L", "1")
    if container == "PNG":
        _scale_transparent_colour(image, data)
        grey = grey or file_facts.is_png_grey_alpha(data)
    rgba = image if image.mode == "RGBA" else image.convert("RGBA")
    managed = _managed(rgba, profile, policy, grey=grey)
    if policy.alpha == "keep":
        return managed._replace(notes=[*managed.notes, "alpha_kept"])
    red, green, blue = policy.background
    mode = "L" if grey and red == green == blue else "RGB"
    flat = _flattened(managed.image, (red, green, blue, 255), mode)
    return managed._replace(image=flat, notes=[*managed.notes, "alpha_flattened"])


def _managed(
    image: Image.Image, profile: bytes | None, policy: ImagePolicy, *, grey: bool = False
) -> _Picture:
    """The image in sRGB, if the policy says so; ``grey`` where RGBA has only grey in it."""
    if policy.icc != "srgb" or profile is None:
        return _Picture(image, [], profile)
    found = icc.to_srgb(image.convert("LA") if grey else image, profile)
    converted = found.image.convert(image.mode) if grey else found.image
    return _Picture(converted, [found.note] if found.note else [], None if found.note else profile)


def _scale_transparent_colour(image: Image.Image, data: bytes) -> None:
    """Bring a PNG's transparent colour from the file's depth to the 8 bits of the pixels.

    Pillow leaves it as it stands. Of 16 bits it keeps the high byte, so that all colours which
    share it with the transparent one are transparent too.
    """
    depth = file_facts.png_depth(data)
    transparent = image.info.get("transparency")
    if depth == 16 and isinstance(transparent, tuple):
        image.info["transparency"] = tuple(sample >> 8 for sample in transparent)
    elif depth in (2, 4) and isinstance(transparent, int) and image.mode == "L":
        image.info["transparency"] = transparent * (255 // (2**depth - 1))


def contradicts(name: str, container: str) -> bool:
    """Whether ``name`` has the extension of another container than ``container``.

    A name without an extension, or with one that is no image's, says nothing.
    """
    base = name.rpartition("/")[2]
    stem, _, extension = base.rpartition(".")
    promised = _BY_EXTENSION.get(extension.lower()) if stem else None
    return promised is not None and container not in promised


def _unread_kind(data: bytes) -> str:
    """What the file is and what can be done about it; empty where it is none of these."""
    brand = data[8:12] if data[4:8] == b"ftyp" else b""
    if brand in _HEIF:
        return "HEIC is not read: convert it, for example with heif-convert"
    if data.startswith(_JPEG_XL):
        return "JPEG XL is not read: convert it, for example with djxl"
    if brand == b"crx " or data.startswith(_RAW) or _is_cr2(data):
        return _RAW_WORDS
    return ""


def _is_cr2(data: bytes) -> bool:
    return data.startswith(TIFF_SIGNATURES) and data[8:10] == b"CR"


def _strips(height: int, width: int) -> Iterator[slice]:
    """Rows from top to bottom, about a million pixels each time, and one row at the least."""
    step = max(1, _STRIP_PIXELS // max(1, width))
    return (slice(top, min(top + step, height)) for top in range(0, height, step))


def _as_array(image: Image.Image) -> NDArray[np.uint8]:
    """Pixels of L, RGB or RGBA as an array; at once, Pillow would hold them twice beside it."""
    width, height = image.size
    channels = len(image.getbands())
    shape = (height, width) if channels == 1 else (height, width, channels)
    pixels = np.empty(shape, np.uint8)
    for rows in _strips(height, width):
        pixels[rows] = np.asarray(image.crop((0, rows.start, width, rows.stop)))
    return pixels


def _flattened(image: Image.Image, background: tuple[int, ...], mode: str) -> Image.Image:
    """RGBA laid on a colour, also RGBA, in another mode."""
    width, height = image.size
    flat = Image.new(mode, image.size)
    for rows in _strips(height, width):
        strip = image.crop((0, rows.start, width, rows.stop))
        below = Image.new("RGBA", strip.size, background)
        flat.paste(Image.alpha_composite(below, strip).convert(mode), (0, rows.start))
    return flat


def _to_8_bits(image: Image.Image) -> Image.Image:
    """16 bits to 8 by scaling the range, never by clipping it; a transparent level to alpha.

    Raises:
        UnsupportedImage: samples beyond 16 bits.
    """
    samples: NDArray[Any] = np.asarray(image)
    most = file_facts.largest_sample(image)
    transparent = image.info.get("transparency")
    levels = np.empty(samples.shape, np.uint8)
    alpha = np.empty(samples.shape, np.uint8) if isinstance(transparent, int) else None
    for rows in _strips(*samples.shape):
        strip = samples[rows].astype(np.int64)
        if strip.size and (strip.min() < 0 or strip.max() > most):
            raise UnsupportedImage("32-bit samples have no fixed range to scale from")
        scaled = (strip * 255 + most // 2) // most
        levels[rows] = 255 - scaled if file_facts.white_is_zero(image) else scaled
        if alpha is not None:
            alpha[rows] = np.where(strip == transparent, 0, 255)
    eight = Image.fromarray(levels)
    if alpha is not None:
        eight.putalpha(Image.fromarray(alpha))
    return eight
