"""Decode every image that is no plain JPEG, by Pillow, to 8-bit pixels.

PNG chunks after ISO/IEC 15948, 5.3; brands of HEIF after ISO/IEC 23008-12, of JPEG XL after
18181-2. Of raw files those are known by name that begin unlike a TIFF, and Canon's CR2, which has
``CR`` at byte 8. NEF, ARW and DNG begin as any TIFF does.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, cast

import numpy as np
from PIL import ExifTags, Image, ImageChops, ImageFile, UnidentifiedImageError
from PIL.TiffImagePlugin import BITSPERSAMPLE, PHOTOMETRIC_INTERPRETATION, SAMPLEFORMAT

from dataprep.errors import (
    CorruptImage,
    ImageError,
    ImageTooLarge,
    NotAnImage,
    RefusedImage,
    UnsupportedImage,
)
from dataprep.image import icc
from dataprep.image.geometry import Pixels, Source, describe, require_size
from dataprep.image.policy import ImagePolicy, Note, Refusal
from dataprep.image.resize import turn

# Named, so that no decoder which runs a program (EPS) or accepts anything (TGA) is reached.
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "DIB", "TIFF", "WEBP", "PPM", "JPEG2000", "AVIF")
_EXTENSIONS = {
    "JPEG": "jpeg jpg jpe jfif",
    "MPO": "jpeg jpg jpe jfif",
    "PNG": "png apng",
    "GIF": "gif",
    "BMP": "bmp dib",
    "DIB": "bmp dib",
    "TIFF": "tif tiff",
    "WEBP": "webp",
    "PPM": "ppm pgm pbm pnm",
    "JPEG2000": "jp2 j2k j2c jpx",
    "AVIF": "avif avifs",
}
_KNOWN_EXTENSIONS = frozenset(" ".join(_EXTENSIONS.values()).split())
# What a file that Pillow cannot identify may be.
_UNIDENTIFIED: tuple[tuple[re.Pattern[bytes], type[ImageError], str], ...] = (
    (
        re.compile(rb"....ftyp(?:hei[cxms]|hev[cx]|mif1|msf1)", re.DOTALL),
        NotAnImage,
        "HEIC is not read: convert it, for example with heif-convert",
    ),
    (
        re.compile(rb"\xff\x0a|\0\0\0\x0cJXL \r\n\x87\n"),
        NotAnImage,
        "JPEG XL is not read: convert it, for example with djxl",
    ),
    (
        re.compile(
            rb"....ftypcrx |FUJIFILMCCD-RAW|II(?:RO|RS|U\0)|MMOR|FOVb|\0MRM"
            rb"|(?:II\*\0|MM\0\*)....CR",
            re.DOTALL,
        ),
        NotAnImage,
        "a camera's raw file is not read: convert it, for example with dcraw -T",
    ),
    (
        re.compile(rb"II\*\0|MM\0\*"),
        CorruptImage,
        "broken image: a TIFF whose header cannot be read, or with samples of a kind that Pillow "
        "does not read (raw files of cameras, such as NEF, begin like a TIFF)",
    ),
    (
        re.compile(rb"\xff\xd8|\x89PNG\r\n\x1a\n|GIF8[79]a"),
        CorruptImage,
        "broken image: its header cannot be read",
    ),
)
# Where a file's header says that it has more than 8 bits a sample, though Pillow gives 8: PNG's
# IHDR; width, height and largest sample of PPM; ITU-T T.800, A.5.1; AV1 in ISOBMFF, 2.3.3.
_DEEP = {
    "PNG": re.compile(rb"\A\x89.{23}[\x09-\xff]", re.DOTALL),
    "PPM": re.compile(
        rb"\AP\d(?:(?:\s|#.*\n)+\d+){2}(?:\s|#.*\n)+(?:25[6-9]|2[6-9]\d|[3-9]\d\d|\d{4})"
    ),
    "JPEG2000": re.compile(rb"\xff\x4f\xff\x51.{38}[\x08-\x7f\x88-\xff]", re.DOTALL),
    "AVIF": re.compile(rb"av1C..[\x40-\x7f\xc0-\xff]", re.DOTALL),
}
_GREY_PNG_WITH_ALPHA = re.compile(rb"\x89.{24}\x04", re.DOTALL)  # Pillow opens 16 bits as RGBA
_SIGNED = 2  # TIFF 6.0, section 19
_WHITE_IS_ZERO = 0  # section 8

_IGNORE_PILLOW = ("ignore", None, Warning, re.compile(r"PIL\."), 0)  # an entry of warnings.filters


class Opened(NamedTuple):
    """Decoded pixels, turned as the policy says, and their source.

    The source's colour space is Pillow's name for its mode. ``as_stored`` is true if every decoder
    gets these pixels from the file.
    """

    pixels: Pixels
    source: Source
    as_stored: bool


@contextmanager
def without_warnings() -> Iterator[None]:
    """Ignore Pillow's warnings of broken Exif and of images near its size limit.

    Both are decided here, and the caller's filters may turn warnings into errors. These filters
    belong to the whole process, and several threads decode at a time. Therefore each call adds an
    entry of its own and removes one. ``warnings.filterwarnings`` would make Python show again what
    it shows once, and ``warnings.catch_warnings`` would lose the filters of other threads.
    """
    filters = cast("list[object]", warnings.filters)
    filters.insert(0, _IGNORE_PILLOW)
    try:
        yield
    finally:
        with suppress(ValueError):  # the caller has reset all filters meanwhile
            filters.remove(_IGNORE_PILLOW)


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
        with without_warnings(), Image.open(io.BytesIO(data), formats=FORMATS) as image:
            require_size(image.width, image.height, policy)
            return _decode(image, data, policy)
    except Image.DecompressionBombError:  # above Pillow's own limit, the highest of max_pixels
        raise ImageTooLarge(
            f"its pixels are more than max_pixels allows ({policy.max_pixels:,})"
        ) from None
    except UnidentifiedImageError:
        for begins, error, words in _UNIDENTIFIED:
            if begins.match(data):
                raise error(words) from None
        raise NotAnImage(f"not an image: begins with {data[:12]!r}") from None
    except (ImageError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001  decoders raise whatever they like
        raise CorruptImage(f"broken image: {str(error) or type(error).__name__}") from None


def name_notes(name: str, container: str, policy: ImagePolicy) -> tuple[Note, ...]:
    """Compare a file's name with its content.

    A name without an extension, or with one that is no image's, promises nothing.

    Raises:
        RefusedImage: it has the extension of another container, and the policy refuses that.
    """
    stem, _, extension = name.rpartition("/")[2].lower().rpartition(".")
    promises_other = extension in _KNOWN_EXTENSIONS.difference(_EXTENSIONS[container].split())
    if not stem or not promises_other:
        return ()
    if policy.wrong_container == "fail":
        raise _refused(f"{container}, which its name does not say", "wrong_container")
    return ("wrong_container",)


def _refused(what: str, kind: Refusal) -> RefusedImage:
    return RefusedImage(f"{what}: image.{kind} says 'fail'", kind)


def _decode(opened: ImageFile.ImageFile, data: bytes, policy: ImagePolicy) -> Opened:
    container, mode = opened.format or "unknown", opened.mode
    notes = _traits(opened, data, policy)
    turned = container == "TIFF"  # by Pillow: a TIFF's orientation is the order of its rows
    tag = _orientation(opened) if turned else None
    notes += _load(opened, policy)
    tag = _orientation(opened) if tag is None else tag  # may come after the pixels
    vars(opened).pop("_decoder", None)  # WebP's keeps two more canvases in memory
    profile = opened.info.get("icc_profile") or None
    image: Image.Image = opened
    if container == "JPEG" and mode == "CMYK" and "adobe" not in opened.info:
        # Pillow takes every CMYK JPEG for Adobe's, which is stored inverted.
        image = ImageChops.invert(opened)
    if mode.startswith("I"):
        image = _to_8_bits(opened)
    image = _picture(image, data, profile, policy, notes)
    managed = "icc_converted" in notes or "icc_broken" in notes
    as_stored = notes in ([], ["alpha_kept"]) and image.mode == mode
    orientation = int(tag) if tag in range(1, 9) else 1
    width, height = image.size
    if turned and orientation >= 5:
        width, height = height, width
    source = describe(
        policy,
        container=container,
        width=width,
        height=height,
        colorspace=mode,
        orientation=orientation,
        profile=None if managed else profile,
        notes=tuple(notes),
        always_turned=turned,
    )
    pixels = np.asarray(image).reshape(image.height, image.width, -1)
    return Opened(
        pixels if turned else turn(pixels, source.applied),
        source,
        as_stored and (container == "WEBP" or (container == "PNG" and _is_sound_png(data))),
    )


def _orientation(image: Image.Image) -> Any:
    """Exif's. Pillow would take XMP's where Exif has none."""
    for xmp in ("xmp", "XML:com.adobe.xmp"):
        image.info.pop(xmp, None)
    return image.getexif().get(ExifTags.Base.Orientation, 1)


def _traits(image: Image.Image, data: bytes, policy: ImagePolicy) -> list[Note]:
    """What the header says, before a pixel is decoded. Raises RefusedImage."""
    if image.mode == "F" or _SIGNED in _tag(image, SAMPLEFORMAT, ()):
        raise UnsupportedImage("floating-point or signed samples: no fixed range to scale from")
    # Counting frames would read all of them.
    animated = getattr(image, "is_animated", False) and image.format != "MPO"
    found: tuple[tuple[bool, Refusal, str, Note], ...] = (
        (animated, "animation", "more than one frame", "first_frame_kept"),
        (_is_deep(image, data), "depth", "more than 8 bits a sample", "depth_reduced"),
        (image.mode in ("P", "PA"), "palette", "a palette of colours", "palette_converted"),
        (image.mode == "CMYK", "cmyk", "four inks (CMYK)", "cmyk_converted"),
    )
    notes: list[Note] = []
    for is_so, key, what, note in found:
        if is_so and getattr(policy, key) == "fail":
            raise _refused(what, key)
        if is_so:
            notes.append(note)
    return notes


def _is_deep(image: Image.Image, data: bytes) -> bool:
    if image.mode.startswith(("I", "F")):
        return True
    if image.format == "TIFF":
        return any(bits > 8 for bits in _tag(image, BITSPERSAMPLE, ()))
    return image.format in _DEEP and _DEEP[image.format].search(data) is not None


def _tag(image: Image.Image, tag: int, default: Any) -> Any:
    return getattr(image, "tag_v2", {}).get(tag, default)


def _load(image: ImageFile.ImageFile, policy: ImagePolicy) -> list[Note]:
    """Decode; of what ends early, as far as it goes, if the policy says so.

    Pillow has a switch for it, which is one for all threads. It leaves what it has decoded in
    the image; with no tile left to decode, the image counts as loaded.
    """
    try:
        image.load()
    except OSError as error:
        if policy.truncated == "fail" or "truncated" not in str(error):
            raise
        image.tile = []
        if not image.getbbox(alpha_only=False):
            raise CorruptImage("truncated image: no pixel of it decodes") from None
        return ["truncated_kept"]
    return []


def _picture(
    image: Image.Image, data: bytes, profile: bytes | None, policy: ImagePolicy, notes: list[Note]
) -> Image.Image:
    """The image as L, RGB or RGBA: its inks, profile and transparency as the policy says."""
    alpha = image.has_transparency_data
    grey = image.mode in ("1", "L", "LA", "La") or _GREY_PNG_WITH_ALPHA.match(data) is not None
    if alpha and policy.alpha == "fail":
        raise _refused("transparency", "alpha")
    if image.format == "PNG":
        _scale_transparent_colour(image, data)
    if image.mode != "CMYK":
        image = _as_mode(image, ("L" if grey else "RGB") + "A" * alpha)
    if policy.icc == "srgb" and profile is not None:
        image, note = icc.to_srgb(image, profile)
        notes += [note] if note else []
    if not alpha:
        return _as_mode(image, "L" if grey else "RGB")
    notes.append("alpha_kept" if policy.alpha == "keep" else "alpha_flattened")
    if policy.alpha == "keep":
        return _as_mode(image, "RGBA")
    flat = Image.new("RGB", image.size, policy.background)
    if grey and len({*policy.background}) == 1:
        flat = flat.convert("L")
    flat.paste(image, mask=image.getchannel("A"))
    return flat


def _scale_transparent_colour(image: Image.Image, data: bytes) -> None:
    """Bring a PNG's transparent colour, as the file has it, to the 8 bits of the pixels.

    Of 16 bits Pillow keeps the high byte: all colours with that of the transparent one become
    transparent too.
    """
    depth, transparent = data[24], image.info.get("transparency")
    if depth == 16 and isinstance(transparent, tuple):
        image.info["transparency"] = tuple(sample >> 8 for sample in transparent)
    elif depth in (2, 4) and isinstance(transparent, int) and image.mode == "L":
        image.info["transparency"] = transparent * (255 // (2**depth - 1))


def _as_mode(image: Image.Image, mode: str) -> Image.Image:
    return image if image.mode == mode else image.convert(mode)  # which would copy it


def _to_8_bits(image: Image.Image) -> Image.Image:
    """16 bits to 8 by scaling the range, never by clipping it; a transparent level to alpha.

    Raises:
        UnsupportedImage: samples beyond 16 bits.
    """
    samples = np.asarray(image)
    # Pillow leaves 12 bits of a TIFF as they are, and 16 bits that count from white.
    most = 4_095 if 12 in _tag(image, BITSPERSAMPLE, ()) else 65_535
    if samples.min() < 0 or samples.max() > most:
        raise UnsupportedImage("32-bit samples have no fixed range to scale from")
    levels = ((np.arange(most + 1) * 255 + most // 2) // most).astype(np.uint8)
    if _tag(image, PHOTOMETRIC_INTERPRETATION, 1) == _WHITE_IS_ZERO:
        levels = 255 - levels
    eight = Image.fromarray(levels[samples])
    transparent = image.info.get("transparency")
    if isinstance(transparent, int):
        eight.putalpha(Image.fromarray((samples != transparent) * np.uint8(255)))
    return eight


def _is_sound_png(data: bytes) -> bool:
    """Whether it has 8 bits a sample, and the right checksum in each chunk before the last.

    Pillow does not compare those of pixels when it decodes.
    """
    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as image:
            image.verify()
    except Exception:  # noqa: BLE001  decoders raise whatever they like
        return False
    return data[24] == 8
