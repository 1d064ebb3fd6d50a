"""PURE. Decode images with Pillow to 8-bit pixels: all images that libjpeg-turbo does not decode.

Raw files of cameras are not decoded, but most of them are recognised for a clear error. NEF, ARW
and DNG cannot be distinguished from a TIFF. CR2 also begins like a TIFF, but has ``CR`` at byte 8.

References: ISO/IEC 15948, 5.3 (PNG chunks); ISO/IEC 23008-12 (HEIF brands); ISO/IEC 18181-2 (JPEG
XL).
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
from dataprep.image.output_size import Pixels, SourceImage, describe_source, require_size
from dataprep.image.policy import ImagePolicy, Note, Refusal
from dataprep.image.resize import turn

# The formats that are read. Pillow also has decoders that run another program (EPS) or accept any
# file (TGA). They are not used.
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "DIB", "TIFF", "WEBP", "PPM", "JPEG2000", "AVIF")
# The usual extensions of each format that Pillow names.
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
# Patterns for the beginning of files that Pillow cannot identify, with the error and its message.
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
        "raw files of cameras are not read: convert them, for example with dcraw -T",
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
# Headers of files that have more than 8 bits per sample. Pillow returns 8 bits of them without a
# warning. References: IHDR of PNG; width, height and largest sample of PPM; ITU-T T.800, A.5.1; AV1
# in ISOBMFF, 2.3.3. The bitmaps among PPM files, P1 and P4, have no largest sample.
_DEEP_HEADERS = {
    "PNG": re.compile(rb"\A\x89.{23}[\x09-\xff]", re.DOTALL),
    "PPM": re.compile(
        rb"\AP[2356](?:(?:\s|#.*\n)+\d+){2}(?:\s|#.*\n)+(?:25[6-9]|2[6-9]\d|[3-9]\d\d|\d{4})"
    ),
    "JPEG2000": re.compile(rb"\xff\x4f\xff\x51.{38}[\x08-\x7f\x88-\xff]", re.DOTALL),
    "AVIF": re.compile(rb"av1C..[\x40-\x7f\xc0-\xff]", re.DOTALL),
}
# Pillow reports the mode RGBA for such a PNG if it has 16 bits per sample.
_GREY_PNG_WITH_ALPHA = re.compile(rb"\x89.{24}\x04", re.DOTALL)
_SIGNED_SAMPLES = 2  # TIFF 6.0, section 19
_WHITE_IS_ZERO = 0  # TIFF 6.0, section 8

# An entry of warnings.filters.
_IGNORE_PILLOW = ("ignore", None, Warning, re.compile(r"PIL\."), 0)


class DecodedImage(NamedTuple):
    """An image that Pillow has decoded.

    Attributes:
        pixels: the pixels, turned as the policy demands.
        source: the properties of the image in the file. The colour space is the Pillow mode.
        pixels_match_file: whether any decoder would get the same pixels from the file, so that the
            file can be stored unchanged.
    """

    pixels: Pixels
    source: SourceImage
    pixels_match_file: bool


@contextmanager
def without_warnings() -> Iterator[None]:
    """Ignore Pillow's warnings about broken Exif data and about images near its size limit.

    This package handles both cases itself. Without this filter, a program that turns warnings into
    errors would fail.

    All threads share the list of warning filters, and several threads decode at the same time.
    Therefore each call adds one entry and removes one entry. ``warnings.catch_warnings`` would
    remove the filters of other threads. ``warnings.filterwarnings`` would reset the memory of
    warnings that were shown already.
    """
    filters = cast("list[object]", warnings.filters)
    filters.insert(0, _IGNORE_PILLOW)
    try:
        yield
    finally:
        with suppress(ValueError):  # the program may have reset all filters in the meantime
            filters.remove(_IGNORE_PILLOW)


def decode_by_pillow(data: bytes, policy: ImagePolicy) -> DecodedImage:
    """Decode an image with Pillow. Convert its colours and transparency as the policy demands.

    Raises:
        NotAnImage: the file has none of the formats that are read.
        CorruptImage: the image is truncated or broken.
        UnsupportedImage: its samples have no fixed range (floating point, 32 bits).
        RefusedImage: the policy refuses images of this kind.
        ImageTooLarge: the image has more than ``max_pixels`` pixels.
        ImageTooSmall: a side is below ``min_size``.
    """
    try:
        with without_warnings(), Image.open(io.BytesIO(data), formats=FORMATS) as image:
            require_size(image.width, image.height, policy)
            return _decode(image, data, policy)
    except Image.DecompressionBombError:  # Pillow's limit is the maximum of max_pixels
        raise ImageTooLarge(
            f"the image has more pixels than max_pixels allows ({policy.max_pixels:,})"
        ) from None
    except UnidentifiedImageError:
        for beginning, error_type, message in _UNIDENTIFIED:
            if beginning.match(data):
                raise error_type(message) from None
        raise NotAnImage(f"not an image: begins with {data[:12]!r}") from None
    except (ImageError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001  decoders raise errors of any type
        raise CorruptImage(f"broken image: {str(error) or type(error).__name__}") from None


def extension_notes(name: str, container: str, policy: ImagePolicy) -> tuple[Note, ...]:
    """The note ``wrong_container`` if the extension of a name belongs to another image format.

    Names without an extension, and extensions of files that are not images, are ignored.

    Raises:
        RefusedImage: the extension belongs to another format, and the policy refuses such files.
    """
    file_name = name.rpartition("/")[2].lower()
    stem, _, extension = file_name.rpartition(".")
    matches_content = extension in _EXTENSIONS[container].split()
    if not stem or matches_content or extension not in _KNOWN_EXTENSIONS:
        return ()
    if policy.wrong_container == "fail":
        raise _refused(f"{container} content in a .{extension} file", "wrong_container")
    return ("wrong_container",)


def _refused(property_name: str, kind: Refusal) -> RefusedImage:
    """The error for an image with a property that the policy refuses."""
    return RefusedImage(f"{property_name}: image.{kind} is 'fail'", kind)


def _decode(opened: ImageFile.ImageFile, data: bytes, policy: ImagePolicy) -> DecodedImage:
    """Decode an image that Pillow has opened. ``data`` is the content of its file."""
    container = opened.format or "unknown"
    mode = opened.mode
    # Pillow turns a TIFF while it decodes, because its orientation is the order of its rows.
    turned_by_pillow = container == "TIFF"
    notes = _header_notes(opened, data, policy)
    if turned_by_pillow:
        orientation = _orientation(opened)
        notes += _load(opened, policy)
    else:
        notes += _load(opened, policy)
        # The Exif data may follow the pixels in the file. Therefore it is read after them.
        orientation = _orientation(opened)
    vars(opened).pop("_decoder", None)  # the WebP decoder keeps two more canvases in memory
    profile = opened.info.get("icc_profile") or None
    image = _converted(_with_usual_samples(opened, mode), data, profile, policy, notes)
    # A converted image is in sRGB, and a broken profile describes no image.
    profile_applies = "icc_converted" not in notes and "icc_broken" not in notes
    width, height = image.size
    if turned_by_pillow and orientation >= 5:
        width, height = height, width
    source = describe_source(
        policy,
        container=container,
        width=width,
        height=height,
        colorspace=mode,
        orientation=orientation,
        profile=profile if profile_applies else None,
        notes=tuple(notes),
        always_turned=turned_by_pillow,
    )
    pixels = np.asarray(image).reshape(image.height, image.width, -1)
    if not turned_by_pillow:
        pixels = turn(pixels, source.applied_orientation)
    is_unchanged = notes in ([], ["alpha_kept"]) and image.mode == mode
    return DecodedImage(pixels, source, is_unchanged and _is_decoded_alike(container, data))


def _with_usual_samples(opened: Image.Image, mode: str) -> Image.Image:
    """The decoded image with 8 bits per sample, and with CMYK samples in which 0 means no ink.

    ``mode`` is the mode of the image before it was decoded.
    """
    if mode.startswith("I"):
        return _to_8_bits(opened)
    if opened.format == "JPEG" and mode == "CMYK" and "adobe" not in opened.info:
        # Pillow inverts every CMYK JPEG, but only files with an Adobe marker are stored inverted.
        return ImageChops.invert(opened)
    return opened


def _is_decoded_alike(container: str, data: bytes) -> bool:
    """Whether all decoders get the same pixels from this file."""
    if container == "PNG":
        return _is_sound_png(data)
    return container == "WEBP"


def _orientation(image: Image.Image) -> int:
    """The orientation in the Exif data, 1 to 8; 1 if there is no valid one.

    XMP data is removed, so that Pillow does not use it.
    """
    for xmp in ("xmp", "XML:com.adobe.xmp"):
        image.info.pop(xmp, None)
    tag = image.getexif().get(ExifTags.Base.Orientation, 1)
    return int(tag) if tag in range(1, 9) else 1


def _header_notes(image: Image.Image, data: bytes, policy: ImagePolicy) -> list[Note]:
    """The notes that result from the header, before any pixel is decoded.

    Raises:
        RefusedImage: the policy refuses images with a property that the header shows.
        UnsupportedImage: the samples are floats or signed integers.
    """
    if image.mode == "F" or _SIGNED_SAMPLES in _tag(image, SAMPLEFORMAT, ()):
        raise UnsupportedImage("floating-point or signed samples: no fixed range to scale from")
    # ``n_frames`` would be slower, because Pillow reads all frames to count them. An MPO is a JPEG
    # with further images for other purposes, such as a preview.
    animated = getattr(image, "is_animated", False) and image.format != "MPO"
    properties: tuple[tuple[bool, Refusal, str, Note], ...] = (
        (animated, "animation", "more than one frame", "first_frame_kept"),
        (_is_deep(image, data), "depth", "more than 8 bits per sample", "depth_reduced"),
        (image.mode in ("P", "PA"), "palette", "a palette of colours", "palette_converted"),
        (image.mode == "CMYK", "cmyk", "four inks (CMYK)", "cmyk_converted"),
    )
    notes: list[Note] = []
    for has_property, policy_key, property_name, note in properties:
        if not has_property:
            continue
        if getattr(policy, policy_key) == "fail":
            raise _refused(property_name, policy_key)
        notes.append(note)
    return notes


def _is_deep(image: Image.Image, data: bytes) -> bool:
    """Whether the file has more than 8 bits per sample."""
    if image.mode.startswith(("I", "F")):
        return True
    if image.format == "TIFF":
        return any(bits > 8 for bits in _tag(image, BITSPERSAMPLE, ()))
    if image.format not in _DEEP_HEADERS:
        return False
    return _DEEP_HEADERS[image.format].search(data) is not None


def _tag(image: Image.Image, tag: int, default: Any) -> Any:
    """The value of a tag of a TIFF; ``default`` for a missing tag and for other formats."""
    return getattr(image, "tag_v2", {}).get(tag, default)


def _load(image: ImageFile.ImageFile, policy: ImagePolicy) -> list[Note]:
    """Decode the pixels. If the policy keeps truncated files, decode them as far as possible.

    Pillow has a switch for truncated files, but it applies to all threads. Without the switch,
    Pillow raises an error, and the image has the pixels that were decoded before it. The list of
    remaining tiles is then emptied, so that Pillow regards the image as loaded.
    """
    try:
        image.load()
    except OSError as error:
        if policy.truncated == "fail" or "truncated" not in str(error):
            raise
        image.tile = []
        if not image.getbbox(alpha_only=False):
            raise CorruptImage("truncated image: no pixel can be decoded") from None
        return ["truncated_kept"]
    return []


def _converted(
    image: Image.Image, data: bytes, profile: bytes | None, policy: ImagePolicy, notes: list[Note]
) -> Image.Image:
    """Convert an image to the mode L, RGB or RGBA.

    The policy decides about the profile and the transparency. Notes about the conversion are added
    to ``notes``.
    """
    has_alpha = image.has_transparency_data
    is_grey = image.mode in ("1", "L", "LA", "La") or _GREY_PNG_WITH_ALPHA.match(data) is not None
    if has_alpha and policy.alpha == "fail":
        raise _refused("transparency", "alpha")
    if image.format == "PNG":
        _scale_transparent_colour(image, data)
    if image.mode != "CMYK":
        colours = "L" if is_grey else "RGB"
        image = _as_mode(image, colours + "A" if has_alpha else colours)
    if policy.icc == "srgb" and profile is not None:
        image, note = icc.to_srgb(image, profile)
        if note is not None:
            notes.append(note)
    if not has_alpha:
        return _as_mode(image, "L" if is_grey else "RGB")
    if policy.alpha == "keep":
        notes.append("alpha_kept")
        return _as_mode(image, "RGBA")
    notes.append("alpha_flattened")
    flat = Image.new("RGB", image.size, policy.background)
    if is_grey and len(set(policy.background)) == 1:
        flat = flat.convert("L")
    flat.paste(image, mask=image.getchannel("A"))
    return flat


def _scale_transparent_colour(image: Image.Image, data: bytes) -> None:
    """Scale the transparent colour of a PNG from the depth of the file to 8 bits.

    Pillow keeps only the high byte of 16-bit samples. Therefore all colours that share their high
    bytes with the transparent colour become transparent too.
    """
    depth = data[24]
    transparent = image.info.get("transparency")
    if depth == 16 and isinstance(transparent, tuple):
        image.info["transparency"] = tuple(sample >> 8 for sample in transparent)
    elif depth in (2, 4) and isinstance(transparent, int) and image.mode == "L":
        image.info["transparency"] = transparent * (255 // (2**depth - 1))


def _as_mode(image: Image.Image, mode: str) -> Image.Image:
    """Convert an image to a mode. An image that already has the mode is not copied."""
    return image if image.mode == mode else image.convert(mode)


def _to_8_bits(image: Image.Image) -> Image.Image:
    """Scale grey samples of 12 or 16 bits to 8 bits. A transparent level becomes an alpha channel.

    Raises:
        UnsupportedImage: a sample is negative, or has more bits.
    """
    samples = np.asarray(image)
    max_sample = 4_095 if 12 in _tag(image, BITSPERSAMPLE, ()) else 65_535
    if samples.min() < 0 or samples.max() > max_sample:
        raise UnsupportedImage("32-bit samples have no fixed range to scale from")
    scaled = (np.arange(max_sample + 1) * 255 + max_sample // 2) // max_sample
    levels = scaled.astype(np.uint8)
    # Pillow does not invert these samples in files in which 0 is white.
    if _tag(image, PHOTOMETRIC_INTERPRETATION, 1) == _WHITE_IS_ZERO:
        levels = 255 - levels
    scaled_image = Image.fromarray(levels[samples])
    transparent = image.info.get("transparency")
    if isinstance(transparent, int):
        scaled_image.putalpha(Image.fromarray((samples != transparent) * np.uint8(255)))
    return scaled_image


def _is_sound_png(data: bytes) -> bool:
    """Whether a PNG has 8 bits per sample, and all chunks except the last have correct checksums.

    Pillow does not verify the checksums of pixels when it decodes an image.
    """
    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as image:
            image.verify()
    except Exception:  # noqa: BLE001  decoders raise errors of any type
        return False
    return data[24] == 8
