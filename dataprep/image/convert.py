"""PURE. Convert one image to a JPEG, PNG or WebP, and report what was done to it.

JPEGs are decoded by libjpeg-turbo. Its inverse DCT can scale an image to 1/2, 1/4 or 1/8 of its
size with vector instructions. The smallest of these sizes is used that is not below the target.
Other eighths would take longer than the full size, and would blur the image. ``resize`` scales the
decoded pixels to the target.

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
from dataprep.image.containers import Opened, name_notes, open_image
from dataprep.image.output_size import (
    Geometry,
    Pixels,
    Source,
    dct_fraction,
    describe,
    falls_short,
    require_feasible,
    require_size,
)
from dataprep.image.policy import PILLOW_HARD_LIMIT, ImagePolicy, Note, Notes
from dataprep.image.resize import REDUCIBLE, bgrx, fit, turn

Action = Literal["passthrough", "retagged", "reencoded"]

_COLORSPACES = {1: "Grayscale", 3: "RGB", 4: "RGBA"}
_SUBSAMPLING_FACTORS = {
    "411": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_411,
    "420": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420,
    "422": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_422,
    "440": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_440,
    "444": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444,
}
# The first two bytes of a stored file, and a policy that leaves such a file unchanged.
_CHECK_POLICIES = {
    b"\xff\xd8": ImagePolicy(max_pixels=PILLOW_HARD_LIMIT),
    b"\x89P": ImagePolicy(encoding="png", alpha="keep", max_pixels=PILLOW_HARD_LIMIT),
    b"RI": ImagePolicy(encoding="webp", alpha="keep", max_pixels=PILLOW_HARD_LIMIT),
}
_MEMORY_TEST_BYTES = 2**28


@dataclass(frozen=True, slots=True)
class Converted:
    """A converted image, a description of its source, and what was done to it.

    Attributes:
        data: the encoded image that is stored.
        width, height: the size of the stored image in pixels.
        channels: the number of channels of the stored image: 1, 3 or 4.
        colorspace: the colour space of the stored image: ``Grayscale``, ``RGB`` or ``RGBA``.
        action: ``passthrough`` if the source is stored byte for byte, ``retagged`` if only its
            orientation tag was set to 1, or ``reencoded``.
        container: the format of the source, such as ``JPEG`` or ``TIFF``.
        source_width, source_height: the size of the source in pixels, before it was turned.
        source_colorspace: the colour space of the source.
        exif_orientation: the orientation in the Exif data of the source, 1 to 8.
        geometry: how the turned image was scaled and cropped.
        orientation_applied: the orientation by which the pixels were turned; 1 if they were not.
            Boxes are moved by this orientation and by ``geometry``.
        encoding: the format of ``data``: ``JPEG``, ``PNG`` or ``WEBP``.
        notes: what is worth mentioning. The manifest counts each note under ``warnings``.
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
        data: the content of the file. The content decides which decoder is used, not the name.
        policy: the size and encoding of the result, limits, and what is done with special images.
            The default is ``ImagePolicy()``.
        name: the name of the file. Its extension may promise another format than the content has.

    Raises:
        ImageError: the image is empty, unknown, broken, unsupported, refused by the policy, too
            large or too small.
        MemoryError: there is too little memory.
    """
    try:
        return _convert(data, policy or ImagePolicy(), name)
    except Exception as error:
        # Some decoders report a lack of memory (``ulimit -v``) as a broken image. So see whether
        # memory can be allocated. Memory that is not written to takes no physical memory.
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
        ImageError: the file has another format, or not all of its pixels can be decoded.
        MemoryError: there is too little memory.
    """
    policy = _CHECK_POLICIES.get(data[:2])
    if policy is None:
        raise CorruptImage(f"not a JPEG, PNG or WebP: begins with {data[:4]!r}")
    converted = convert(data, policy)
    if converted.action == "reencoded":
        raise CorruptImage(
            f"{converted.container} with {converted.source_colorspace}: this package does not "
            "store such images"
        )
    return converted.width, converted.height, converted.channels


def _convert(data: bytes, policy: ImagePolicy, name: str) -> Converted:
    if not data:
        raise CorruptImage("empty file (0 bytes)")
    if len(data) > policy.max_source_bytes:
        raise ImageTooLarge(
            f"{len(data):,} bytes are more than max_source_bytes allows "
            f"({policy.max_source_bytes:,})"
        )
    if data.startswith(jpeg.SOI):
        return _convert_jpeg(data, name_notes(name, "JPEG", policy), policy)
    opened = open_image(data, policy)
    notes = name_notes(name, opened.source.container, policy)
    return _convert_opened(data, opened, notes, policy)


def _convert_jpeg(data: bytes, notes: Notes, policy: ImagePolicy) -> Converted:
    """Convert a JPEG by libjpeg-turbo, or by Pillow if it has unusual subsampling or four inks."""
    try:
        header = jpeg.read_header(data)
    except jpeg.UnreadHeader:
        # Pillow decodes more kinds of subsampling, but does not report lost pixels.
        notes = (*notes, "subsampling_converted")
        return _convert_opened(data, open_image(data, policy), notes, policy)
    require_size(header.width, header.height, policy)
    if header.several_scans:
        jpeg.require_few_scans(data, header)
    if header.channels != 4:
        return _convert_plain_jpeg(data, header, notes, policy)
    # Pillow converts the four inks to RGB, but does not report lost pixels. Therefore libjpeg-turbo
    # decodes the file first. Its pixels are freed at once, because Pillow needs the memory.
    keep_truncated = policy.truncated == "keep"
    _, decoder_notes = jpeg.decode(data, header, "CMYK", keep_truncated=keep_truncated)
    complete = data + jpeg.EOI if "truncated_kept" in decoder_notes else data
    return _convert_opened(complete, open_image(complete, policy), (*notes, *decoder_notes), policy)


def _convert_plain_jpeg(
    data: bytes, header: jpeg.JpegHeader, notes: Notes, policy: ImagePolicy
) -> Converted:
    """Convert a greyscale or colour JPEG, which libjpeg-turbo decodes."""
    source = describe(
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
    # Other programs recognise a JPEG by its first three bytes, so a stored file must have them.
    if data[2] == 0xFF and _can_stay(source, header.channels, policy):
        unchanged = _keep_jpeg(data, header, source, policy)
        if unchanged is not None:
            return unchanged
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
        converted, note = icc.to_srgb(image, source.profile)
        if note is not None:
            source = source._replace(profile=None, notes=(*source.notes, note))
            pixels = np.asarray(converted).reshape(pixels.shape)
    return _reencode(turn(pixels, source.applied), source, policy)


def _keep_jpeg(
    data: bytes, header: jpeg.JpegHeader, source: Source, policy: ImagePolicy
) -> Converted | None:
    """The JPEG without encoding it again; None if it ends early and must be encoded."""
    decoder_notes: Notes = ()
    has_end = data.rfind(jpeg.EOI, header.scan_offset) >= 0
    if policy.check == "decode" or not has_end:
        # Decoding as grey reads all entropy-coded data. It saves the conversion of colours, which
        # cannot fail.
        _, decoder_notes = jpeg.decode(
            data, header, "GRAY", keep_truncated=policy.truncated == "keep"
        )
    if "truncated_kept" in decoder_notes:
        return None
    source = source._replace(notes=(*source.notes, *decoder_notes))
    upright = jpeg.reset_orientation(data, header)
    action: Action = "passthrough" if upright is data else "retagged"
    return _keep(upright, header.channels, action, source, policy)


def _min_decoded_size(
    header: jpeg.JpegHeader, source: Source, policy: ImagePolicy
) -> tuple[int, int]:
    """The width and height to which the decoder may reduce a JPEG, in pixels."""
    if policy.filter not in REDUCIBLE:
        return header.width, header.height
    target_width, target_height = source.geometry.width, source.geometry.height
    if source.applied >= 5:  # the decoded image is turned by 90 degrees afterwards
        target_width, target_height = target_height, target_width
    fraction = dct_fraction(header.width, header.height, target_width, target_height)
    return -(-header.width // fraction), -(-header.height // fraction)  # rounded up


def _convert_opened(data: bytes, opened: Opened, notes: Notes, policy: ImagePolicy) -> Converted:
    """Convert an image that Pillow has decoded."""
    source = opened.source._replace(notes=(*notes, *opened.source.notes))
    channels = opened.pixels.shape[2]
    if opened.as_stored and source.orientation == 1 and _can_stay(source, channels, policy):
        return _keep(data, channels, "passthrough", source, policy)
    return _reencode(opened.pixels, source, policy)


def _can_stay(source: Source, channels: int, policy: ImagePolicy) -> bool:
    """Whether the source already has the encoding, size, channels and colours of the policy."""
    same_encoding = source.container == policy.encoding.upper()
    same_size = source.geometry == (source.width, source.height, source.width, source.height)
    same_channels = channels > 1 or policy.greyscale != "rgb"
    if not (same_encoding and same_size and same_channels and source.applied == 1):
        return False
    if policy.icc != "srgb" or source.profile is None:
        return True
    return icc.is_srgb(source.profile) is not False  # a broken profile (None) changes no colour


def _keep(
    data: bytes, channels: int, action: Action, source: Source, policy: ImagePolicy
) -> Converted:
    """The result if the file is not encoded again. It keeps its colour profile."""
    notes: list[Note] = []
    if action == "retagged":
        notes.append("orientation_reset")
    if source.profile is not None:
        is_valid = icc.describes(source.profile, source.colorspace, channels)
        notes.append("icc_kept" if is_valid else "icc_broken")
    if channels == 1:
        notes.append("greyscale_kept")
    return _result(data, channels, action, source, policy, notes)


def _reencode(pixels: Pixels, source: Source, policy: ImagePolicy) -> Converted:
    """Scale, crop and encode pixels.

    Args:
        pixels: the decoded pixels, already turned. They have the size of the source, or the
            fraction of it to which the decoder has reduced them.
        source: the image that the pixels come from.
        policy: size, encoding, and what is done with special images.

    Raises:
        ImageTooLarge: the result would be too large.
    """
    notes: list[Note] = []
    decoded_channels = pixels.shape[2]
    require_feasible(pixels.shape[1], pixels.shape[0], source.geometry, policy)
    fitted = fit(pixels, source.geometry, policy.filter)
    if fitted.shape[2] == 1:
        # WebP has no greyscale.
        if policy.greyscale == "rgb" or policy.encoding == "webp":
            notes.append("greyscale_to_rgb")
            fitted = np.repeat(fitted, 3, axis=2)
        else:
            notes.append("greyscale_kept")
    if fitted.shape[2] == 4 and policy.encoding == "webp" and fitted[:, :, 3].min() == 255:
        # libwebp drops an alpha channel that is opaque everywhere (WebPPictureHasTransparency).
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
        policy: quality, subsampling and the like.
        source_subsampling: used if the policy keeps the subsampling; empty if the source has none.
        profile: an ICC profile to embed.
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
    if not is_encoded:  # the pixels are valid, so that only memory can be the reason
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
    source: Source,
    policy: ImagePolicy,
    encoding_notes: list[Note],
) -> Converted:
    """The description of a stored image, with the notes about its orientation and size."""
    geometry = source.geometry
    size_notes: list[Note] = []
    if source.orientation != 1:
        size_notes.append("orientation_applied" if source.applied != 1 else "orientation_ignored")
    if falls_short(geometry, policy):
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
        orientation_applied=source.applied,
        encoding=policy.encoding.upper(),
        notes=(*source.notes, *size_notes, *encoding_notes),
    )
