"""PURE. Convert one image to a JPEG, PNG or WebP, and describe how it was converted.

libjpeg-turbo decodes JPEGs. With vector instructions, its inverse DCT can reduce an image to 1/2,
1/4 or 1/8 of its size. The smallest of these sizes that is not below the target is decoded, and
``resize`` scales the decoded pixels to the target. libjpeg-turbo can also reduce an image to other
eighths, but this takes longer than decoding the full size, and blurs the image.

All steps from JPEG to JPEG are integer arithmetic, so that the bytes are the same on every
processor. The only exception is the conversion to sRGB.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
from PIL import Image

from dataprep.errors import CorruptImage, ImageTooLarge
from dataprep.image import icc, jpeg
from dataprep.image.containers import DecodedImage, decode_by_pillow, extension_notes
from dataprep.image.output_size import (
    PILLOW_HARD_LIMIT,
    Geometry,
    Pixels,
    SourceImage,
    dct_divisor,
    describe_source,
    is_below_size,
    require_feasible,
    require_size,
)
from dataprep.image.policy import ImagePolicy, Note, Notes
from dataprep.image.resize import REDUCIBLE, bgrx, fit, turn

Action = Literal["passthrough", "retagged", "reencoded"]
"""How an image was stored. ``Converted.action`` describes the values."""

_COLORSPACES = {1: "Grayscale", 3: "RGB", 4: "RGBA"}
_SUBSAMPLING_FACTORS = {
    "411": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_411,
    "420": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420,
    "422": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_422,
    "440": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_440,
    "444": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444,
}
# For the first two bytes of a stored file: a policy that keeps such a file unchanged.
_CHECK_POLICIES = {
    b"\xff\xd8": ImagePolicy(max_pixels=PILLOW_HARD_LIMIT),
    b"\x89P": ImagePolicy(encoding="png", alpha="keep", max_pixels=PILLOW_HARD_LIMIT),
    b"RI": ImagePolicy(encoding="webp", alpha="keep", max_pixels=PILLOW_HARD_LIMIT),
}
_MEMORY_TEST_BYTES = 2**28  # the largest RGB image that the default policy accepts


@dataclass(frozen=True, slots=True)
class Converted:
    """A converted image, the properties of its source, and how it was converted.

    Attributes:
        data: the encoded image that is stored.
        width, height: the size of the stored image in pixels.
        channels: the number of channels of the stored image: 1, 3 or 4.
        colorspace: the colour space of the stored image: ``Grayscale``, ``RGB`` or ``RGBA``.
        action: ``passthrough`` if the source is stored byte for byte; ``retagged`` if only its
            orientation tag was set to 1; ``reencoded`` otherwise.
        container: the format of the source, such as ``JPEG`` or ``TIFF``.
        source_width, source_height: the size of the source in pixels, before it was turned.
        source_colorspace: the colour space of the source.
        exif_orientation: the orientation in the Exif data of the source, 1 to 8.
        geometry: how the turned image was scaled and cropped.
        orientation_applied: the orientation by which the pixels were turned; 1 if they were not.
            Bounding boxes are transformed by this orientation and by ``geometry``.
        encoding: the format of ``data``: ``JPEG``, ``PNG`` or ``WEBP``.
        notes: remarks about the source and the conversion, which ``docs/images.md`` describes. The
            manifest counts them under ``warnings``.
    """

    data: bytes
    width: int
    height: int
    channels: int
    colorspace: str
    action: Action
    container: str
    source_width: int
    source_height: int
    source_colorspace: str
    exif_orientation: int
    geometry: Geometry
    orientation_applied: int = 1
    encoding: str = "JPEG"
    notes: tuple[str, ...] = ()


def convert(data: bytes, policy: ImagePolicy | None = None, *, name: str = "") -> Converted:
    """Convert one encoded image.

    Args:
        data: the content of the file. The content alone decides which decoder is used.
        policy: the size and encoding of the result, limits, and the treatment of unusual images.
            The default is ``ImagePolicy()``.
        name: the name of the file. If its extension does not match the content, the result has a
            note, or the policy refuses the image.

    Raises:
        ImageError: the file is empty or has an unknown format, or the image is broken, unsupported,
            refused by the policy, too large or too small.
        MemoryError: there is too little memory.
    """
    try:
        return _convert(data, policy or ImagePolicy(), name)
    except Exception as error:
        # If memory is limited (``ulimit -v``), some decoders report a lack of memory as a broken
        # image. Therefore test whether memory can be allocated. An array that is not written to
        # occupies no physical memory.
        try:
            np.empty(_MEMORY_TEST_BYTES, np.uint8)
        except MemoryError:
            raise MemoryError(f"too little memory for an image: {error}") from error
        raise


def check(data: bytes) -> tuple[int, int, int]:
    """Decode all pixels of a stored JPEG, PNG or WebP.

    Returns:
        Its width and height in pixels, and its number of channels.

    Raises:
        ImageError: the file has another format, or a colour space or a depth that this package
            does not store; or some of its pixels cannot be decoded.
        MemoryError: there is too little memory.
    """
    policy = _CHECK_POLICIES.get(data[:2])
    if policy is None:
        raise CorruptImage(f"not a JPEG, PNG or WebP: it begins with {data[:4]!r}")
    converted = convert(data, policy)
    if converted.action == "reencoded":
        raise CorruptImage(
            f"a {converted.container} with the colour space {converted.source_colorspace}: this "
            "package does not store such images"
        )
    return converted.width, converted.height, converted.channels


def _convert(data: bytes, policy: ImagePolicy, name: str) -> Converted:
    """Convert an image with the decoder for its format. The parameters are those of ``convert``."""
    if not data:
        raise CorruptImage("empty file (0 bytes)")
    if len(data) > policy.max_source_bytes:
        raise ImageTooLarge(
            f"{len(data):,} bytes are more than max_source_bytes allows "
            f"({policy.max_source_bytes:,})"
        )
    if data.startswith(jpeg.SOI):
        return _convert_jpeg(data, extension_notes(name, "JPEG", policy), policy)
    decoded = decode_by_pillow(data, policy)
    notes = extension_notes(name, decoded.source.container, policy)
    return _convert_decoded(data, decoded, notes, policy)


def _convert_jpeg(data: bytes, notes: Notes, policy: ImagePolicy) -> Converted:
    """Convert a JPEG. Pillow decodes unusual subsampling and CMYK, libjpeg-turbo all others."""
    try:
        header = jpeg.read_header(data)
    except jpeg.UnreadableHeader:
        # Pillow decodes more kinds of subsampling than TurboJPEG, but does not report lost pixels.
        notes = (*notes, "subsampling_converted")
        return _convert_decoded(data, decode_by_pillow(data, policy), notes, policy)
    require_size(header.width, header.height, policy)
    if header.has_several_scans:
        jpeg.require_few_scans(data, header)
    if header.channels != 4:
        return _convert_plain_jpeg(data, header, notes, policy)
    # Pillow converts CMYK to RGB, but does not report lost pixels. Therefore libjpeg-turbo decodes
    # the file first, as a check. Its pixels are freed at once, because Pillow needs the memory.
    keep_truncated = policy.truncated == "keep"
    _, decoder_notes = jpeg.decode(data, header, "CMYK", keep_truncated=keep_truncated)
    notes = (*notes, *decoder_notes)
    complete = data + jpeg.EOI if "truncated_kept" in decoder_notes else data
    return _convert_decoded(complete, decode_by_pillow(complete, policy), notes, policy)


def _convert_plain_jpeg(
    data: bytes, header: jpeg.JpegHeader, notes: Notes, policy: ImagePolicy
) -> Converted:
    """Convert a greyscale, YCbCr or RGB JPEG, which libjpeg-turbo decodes."""
    source = describe_source(
        policy,
        container="JPEG",
        width=header.width,
        height=header.height,
        colorspace=header.colorspace,
        orientation=header.orientation,
        profile=header.profile,
        notes=notes,
        subsampling=header.subsampling,
    )
    # Other programs recognise a JPEG by its first three bytes. A stored file must begin with them.
    if data[2] == 0xFF and _can_keep_file(source, header.channels, policy):
        converted = _keep_jpeg(data, header, source, policy)
        if converted is not None:
            return converted
    min_width, min_height = _min_decoded_size(header, source, policy)
    colours = "GRAY" if header.channels == 1 else "RGB"
    pixels, decoder_notes = jpeg.decode(
        data,
        header,
        colours,
        (min_width, min_height),
        keep_truncated=policy.truncated == "keep",
    )
    if decoder_notes:
        source = source._replace(notes=(*notes, *decoder_notes))
    if policy.icc == "srgb" and source.profile is not None:
        image = _pillow_image(pixels)
        srgb_image, note = icc.to_srgb(image, source.profile)
        if note is not None:
            source = source._replace(profile=None, notes=(*source.notes, note))
            pixels = np.asarray(srgb_image).reshape(pixels.shape)
    return _reencode(turn(pixels, source.applied_orientation), source, policy)


def _keep_jpeg(
    data: bytes, header: jpeg.JpegHeader, source: SourceImage, policy: ImagePolicy
) -> Converted | None:
    """Keep a JPEG without encoding it again. Returns None if it is truncated."""
    decoder_notes: Notes = ()
    has_end = data.rfind(jpeg.EOI, header.scan_offset) >= 0
    if policy.check == "decode" or not has_end:
        # Decoding to grey reads all entropy-coded data, too. It saves the colour conversion, which
        # cannot fail.
        _, decoder_notes = jpeg.decode(
            data, header, "GRAY", keep_truncated=policy.truncated == "keep"
        )
    if "truncated_kept" in decoder_notes:
        return None
    source = source._replace(notes=(*source.notes, *decoder_notes))
    upright = jpeg.reset_orientation(data, header)
    action: Action = "passthrough" if upright is data else "retagged"
    return _keep_file(upright, header.channels, action, source, policy)


def _min_decoded_size(
    header: jpeg.JpegHeader, source: SourceImage, policy: ImagePolicy
) -> tuple[int, int]:
    """The minimum width and height to which the decoder may reduce a JPEG, in pixels."""
    if policy.filter not in REDUCIBLE:
        return header.width, header.height
    target_width, target_height = source.geometry.width, source.geometry.height
    if source.applied_orientation >= 5:  # the decoded image is turned by 90 degrees afterwards
        target_width, target_height = target_height, target_width
    divisor = dct_divisor(header.width, header.height, target_width, target_height)
    return -(-header.width // divisor), -(-header.height // divisor)  # rounded up


def _convert_decoded(
    data: bytes, decoded: DecodedImage, notes: Notes, policy: ImagePolicy
) -> Converted:
    """Convert an image that Pillow has decoded. ``notes`` are earlier notes about the file."""
    source = decoded.source._replace(notes=(*notes, *decoded.source.notes))
    channels = decoded.pixels.shape[2]
    file_is_usable = decoded.pixels_match_file and source.orientation == 1
    if file_is_usable and _can_keep_file(source, channels, policy):
        return _keep_file(data, channels, "passthrough", source, policy)
    return _reencode(decoded.pixels, source, policy)


def _can_keep_file(source: SourceImage, channels: int, policy: ImagePolicy) -> bool:
    """Whether the source already has the encoding, size, channels and colours of the result."""
    same_encoding = source.container == policy.encoding.upper()
    same_size = source.geometry == (source.width, source.height, source.width, source.height)
    same_channels = channels > 1 or policy.greyscale != "rgb"
    if not (same_encoding and same_size and same_channels and source.applied_orientation == 1):
        return False
    if policy.icc != "srgb" or source.profile is None:
        return True
    return icc.is_srgb(source.profile) is not False  # a broken profile (None) changes no colour


def _keep_file(
    data: bytes, channels: int, action: Action, source: SourceImage, policy: ImagePolicy
) -> Converted:
    """Describe a file that is stored without encoding it again. It keeps its colour profile."""
    notes: list[Note] = []
    if action == "retagged":
        notes.append("orientation_reset")
    if source.profile is not None:
        is_valid = icc.describes(source.profile, source.colorspace, channels)
        notes.append("icc_kept" if is_valid else "icc_broken")
    if channels == 1:
        notes.append("greyscale_kept")
    return _result(data, channels, action, source, policy, notes)


def _reencode(pixels: Pixels, source: SourceImage, policy: ImagePolicy) -> Converted:
    """Scale, crop and encode pixels.

    Args:
        pixels: the decoded pixels, already turned. The decoder may have reduced them.
        source: the properties of the image that the pixels come from.
        policy: the size and encoding of the result, and the treatment of unusual images.

    Raises:
        ImageTooLarge: the scaled image would be too large.
    """
    notes: list[Note] = []
    decoded_channels = pixels.shape[2]
    require_feasible(pixels.shape[1], pixels.shape[0], source.geometry, policy)
    fitted = fit(pixels, source.geometry, policy.filter)
    if fitted.shape[2] == 1:
        # WebP cannot store greyscale images.
        if policy.greyscale == "rgb" or policy.encoding == "webp":
            notes.append("greyscale_to_rgb")
            fitted = np.repeat(fitted, 3, axis=2)
        else:
            notes.append("greyscale_kept")
    if fitted.shape[2] == 4 and policy.encoding == "webp" and fitted[:, :, 3].min() == 255:
        # libwebp drops an alpha channel if all pixels are opaque (WebPPictureHasTransparency).
        fitted = np.ascontiguousarray(fitted[:, :, :3])
    channels = fitted.shape[2]
    profile = None
    if source.profile is not None:
        note: Note = "icc_dropped"
        if policy.icc == "keep":
            if not icc.describes(source.profile, source.colorspace, decoded_channels):
                note = "icc_broken"
            elif icc.embeddable(source.profile, channels):
                note = "icc_kept"
                profile = source.profile
        notes.append(note)
    if policy.encoding == "jpeg":
        data = _encode_jpeg(fitted, policy, source.subsampling, profile)
    else:
        data = _encode_by_pillow(fitted, policy, profile)
    return _result(data, channels, "reencoded", source, policy, notes)


def _encode_jpeg(
    pixels: Pixels, policy: ImagePolicy, source_subsampling: str, profile: bytes | None
) -> bytes:
    """Encode grey or RGB pixels as a JPEG.

    Args:
        pixels: uint8 of shape (height, width, 1 or 3).
        policy: the quality, the subsampling and other settings of the encoder.
        source_subsampling: the subsampling of the source, which is used if the policy keeps it. It
            is empty if the source has none.
        profile: an ICC profile to embed, or None.
    """
    options = [
        cv2.IMWRITE_JPEG_QUALITY,
        policy.quality,
        cv2.IMWRITE_JPEG_PROGRESSIVE,
        int(policy.progressive),
        cv2.IMWRITE_JPEG_OPTIMIZE,
        int(policy.optimize),
    ]
    if pixels.shape[2] == 1:
        encodable = np.ascontiguousarray(pixels)
    else:
        encodable = bgrx(pixels)
        keeps_subsampling = policy.subsampling == "keep"
        subsampling = source_subsampling if keeps_subsampling else policy.subsampling
        factor = _SUBSAMPLING_FACTORS.get(subsampling, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420)
        options += [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, factor]
    is_encoded, encoded = cv2.imencode(".jpg", encodable, options)
    if not is_encoded:  # the pixels are valid, so that only a lack of memory can be the reason
        raise MemoryError("OpenCV could not encode the pixels")
    data: bytes = encoded.tobytes()
    return jpeg.with_profile(data, profile) if profile else data


def _encode_by_pillow(pixels: Pixels, policy: ImagePolicy, profile: bytes | None) -> bytes:
    """Encode grey, RGB or RGBA pixels as a PNG or WebP, with an ICC profile if there is one."""
    encoded = io.BytesIO()
    _pillow_image(pixels).save(
        encoded,
        policy.encoding,
        compress_level=policy.png_compression,  # for PNG
        quality=policy.quality,  # for WebP
        lossless=policy.webp_lossless,  # for WebP
        icc_profile=profile,
    )
    return encoded.getvalue()


def _pillow_image(pixels: Pixels) -> Image.Image:
    return Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)


def _result(
    data: bytes,
    channels: int,
    action: Action,
    source: SourceImage,
    policy: ImagePolicy,
    encoding_notes: list[Note],
) -> Converted:
    """Describe a stored image, and add the notes about its orientation and size."""
    geometry = source.geometry
    size_notes: list[Note] = []
    if source.applied_orientation != 1:
        size_notes.append("orientation_applied")
    elif source.orientation != 1:
        size_notes.append("orientation_ignored")
    if is_below_size(geometry, policy):
        size_notes.append("smaller_than_target")
    if geometry.width * geometry.height > source.width * source.height:
        size_notes.append("upscaled")
    return Converted(
        data=data,
        width=geometry.crop_width,
        height=geometry.crop_height,
        channels=channels,
        colorspace=_COLORSPACES[channels],
        action=action,
        container=source.container,
        source_width=source.width,
        source_height=source.height,
        source_colorspace=source.colorspace,
        exif_orientation=source.orientation,
        geometry=geometry,
        orientation_applied=source.applied_orientation,
        encoding=policy.encoding.upper(),
        notes=(*source.notes, *size_notes, *encoding_notes),
    )
