"""Convert one image to a JPEG, PNG or WebP, and report what was done to it.

JPEGs are decoded by libjpeg-turbo, at the smallest of 1, 1/2, 1/4 and 1/8 of their size that is
not below the target: its inverse DCT makes these by vector instructions (other eighths take it
longer than the whole size, and blur). ``resize`` does the rest. Every step to a JPEG is integer
arithmetic, conversion to sRGB excepted: the same bytes on every processor.
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
from dataprep.image.geometry import (
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
_SAMPLING = {
    "411": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_411,
    "420": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420,
    "422": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_422,
    "440": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_440,
    "444": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444,
}
# By how they begin: files that these policies leave as they are.
_STORED = {
    b"\xff\xd8": ImagePolicy(max_pixels=PILLOW_HARD_LIMIT),
    b"\x89P": ImagePolicy(encoding="png", alpha="keep", max_pixels=PILLOW_HARD_LIMIT),
    b"RI": ImagePolicy(encoding="webp", alpha="keep", max_pixels=PILLOW_HARD_LIMIT),
}
# Not all decoders report that memory is short (``ulimit -v``).
_ROOM_BYTES = 2**28


@dataclass(frozen=True, slots=True)
class Converted:
    """A stored image, its source, and what was done to it.

    ``encoding`` is what ``data`` is: ``JPEG``, ``PNG`` or ``WEBP``. ``width``, ``height``,
    ``channels`` and ``colorspace`` (``Grayscale``, ``RGB`` or ``RGBA``) describe ``data``; the
    ``source_`` fields the image as it was stored. ``action`` is ``passthrough`` (byte
    for byte), ``retagged`` (only the orientation tag was set to 1) or ``reencoded``.
    ``orientation_applied`` is the orientation by which the pixels were turned, 1 for none, and
    ``geometry`` how the turned image was then scaled and cropped; boxes are moved by both.
    ``notes`` are the kinds that the manifest counts under ``warnings``.
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
    """Convert one encoded image by ``policy`` (its defaults if none is given).

    Args:
        data: the file's bytes; the content decides the codec.
        policy: size, encoding, what becomes of each trait, limits.
        name: the file's, whose extension may promise another container than the content is.

    Raises:
        ImageError: empty, unknown, broken, unsupported, refused, too large or too small.
        MemoryError: there is too little of it.
    """
    try:
        return _converted(data, policy or ImagePolicy(), name)
    except Exception as error:
        try:
            np.empty(_ROOM_BYTES, np.uint8)  # memory that is not written to is not used
        except MemoryError:
            raise MemoryError(f"too little memory for an image: {error}") from error
        raise


def check(data: bytes) -> tuple[int, int, int]:
    """Decode a stored JPEG, PNG or WebP in full; its width, height and channels.

    Raises:
        ImageError: it is none of them, or not all of its pixels can be decoded.
        MemoryError: there is too little of it.
    """
    policy = _STORED.get(data[:2])
    if policy is None:
        raise CorruptImage(f"not a JPEG, PNG or WebP: begins with {data[:4]!r}")
    found = convert(data, policy)
    if found.action == "reencoded":
        raise CorruptImage(
            f"{found.container} with {found.source_colorspace}: not stored by this package"
        )
    return found.width, found.height, found.channels


def _converted(data: bytes, policy: ImagePolicy, name: str) -> Converted:
    if not data:
        raise CorruptImage("empty file (0 bytes)")
    if len(data) > policy.max_source_bytes:
        raise ImageTooLarge(
            f"{len(data):,} bytes are more than max_source_bytes allows "
            f"({policy.max_source_bytes:,})"
        )
    if not data.startswith(jpeg.SOI):
        opened = open_image(data, policy)
        return _from_pillow(data, opened, name_notes(name, opened.source.container, policy), policy)
    notes = name_notes(name, "JPEG", policy)
    try:
        header = jpeg.read_header(data)
    except jpeg.UnreadHeader:  # Pillow decodes more samplings, but does not report lost pixels
        notes = (*notes, "subsampling_converted")
        return _from_pillow(data, open_image(data, policy), notes, policy)
    require_size(header.width, header.height, policy)
    if header.several_scans:
        jpeg.require_few_scans(data, header)
    if header.channels == 4:  # Pillow converts the colours, but does not report lost pixels
        # These pixels are not kept: they would take memory beside Pillow's.
        _, found = jpeg.decode(data, header, "CMYK", keep_truncated=policy.truncated == "keep")
        whole = data + jpeg.EOI if "truncated_kept" in found else data
        return _from_pillow(data, open_image(whole, policy), (*notes, *found), policy)
    return _from_jpeg(data, header, notes, policy)


def _from_jpeg(
    data: bytes, header: jpeg.JpegHeader, notes: Notes, policy: ImagePolicy
) -> Converted:
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
    keep = policy.truncated == "keep"
    # Other programs know a JPEG by its first three bytes: the start, and that a marker follows.
    if data[2] == 0xFF and _stays(source, header.channels, policy):
        found: Notes = ()
        if policy.check == "decode" or data.rfind(jpeg.EOI, header.scan_offset) < 0:
            # All of the entropy-coded data is read; the colours, which cannot fail, are left out.
            _, found = jpeg.decode(data, header, "GRAY", keep_truncated=keep)
        if "truncated_kept" not in found:
            source = source._replace(notes=(*notes, *found))
            upright = jpeg.reset_orientation(data, header)
            action: Action = "passthrough" if upright is data else "retagged"
            return _as_it_is(upright, header.channels, action, source, policy)
    fraction = 1
    if policy.filter in REDUCIBLE:
        width, height, *_ = source.geometry
        wanted = (height, width) if source.applied >= 5 else (width, height)
        fraction = dct_fraction(header.width, header.height, *wanted)
    least = -(-header.width // fraction), -(-header.height // fraction)
    colours = "GRAY" if header.channels == 1 else "RGB"
    pixels, found = jpeg.decode(data, header, colours, least, keep_truncated=keep)
    if found:
        source = source._replace(notes=(*notes, *found))
    if policy.icc == "srgb" and source.profile is not None:
        image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
        converted, note = icc.to_srgb(image, source.profile)
        if note is not None:
            source = source._replace(profile=None, notes=(*source.notes, note))
            pixels = np.asarray(converted).reshape(pixels.shape)
    return _reencoded(turn(pixels, source.applied), source, policy)


def _from_pillow(data: bytes, opened: Opened, notes: Notes, policy: ImagePolicy) -> Converted:
    source = opened.source._replace(notes=(*notes, *opened.source.notes))
    channels = opened.pixels.shape[2]
    if opened.as_stored and source.orientation == 1 and _stays(source, channels, policy):
        return _as_it_is(data, channels, "passthrough", source, policy)
    return _reencoded(opened.pixels, source, policy)


def _stays(source: Source, channels: int, policy: ImagePolicy) -> bool:
    """Whether encoding, size, orientation, number of channels and colours are what is wanted."""
    same_encoding = source.container == policy.encoding.upper()
    same_size = source.geometry == (source.width, source.height, source.width, source.height)
    same_channels = channels > 1 or policy.greyscale != "rgb"
    if not (same_encoding and same_size and same_channels and source.applied == 1):
        return False
    if policy.icc != "srgb" or source.profile is None:
        return True
    return icc.is_srgb(source.profile) is not False  # a broken one changes nothing


def _as_it_is(
    data: bytes, channels: int, action: Action, source: Source, policy: ImagePolicy
) -> Converted:
    """Stored without being encoded, with its colour profile, if it has one."""
    notes: list[Note] = []
    if action == "retagged":
        notes.append("orientation_reset")
    if source.profile is not None:
        described = icc.describes(source.profile, source.colorspace, channels)
        notes.append("icc_kept" if described else "icc_broken")
    if channels == 1:
        notes.append("greyscale_kept")
    return _result(data, channels, action, source, policy, notes)


def _reencoded(pixels: Pixels, source: Source, policy: ImagePolicy) -> Converted:
    """Scaled and encoded.

    Args:
        pixels: turned already; of the source's size or of a fraction of it.
        source: where they come from.
        policy: size, encoding, and the like.

    Raises:
        ImageTooLarge: what it would become.
    """
    notes: list[Note] = []
    decoded = pixels.shape[2]
    require_feasible(pixels.shape[1], pixels.shape[0], source.geometry, policy)
    fitted = fit(pixels, source.geometry, policy.filter)
    if fitted.shape[2] == 1:
        # WebP has no greyscale.
        three = policy.greyscale == "rgb" or policy.encoding == "webp"
        notes.append("greyscale_to_rgb" if three else "greyscale_kept")
        fitted = np.repeat(fitted, 3, axis=2) if three else fitted
    if fitted.shape[2] == 4 and policy.encoding == "webp" and fitted[:, :, 3].min() == 255:
        # WebP has no alpha that is opaque everywhere (libwebp, WebPPictureHasTransparency).
        fitted = np.ascontiguousarray(fitted[:, :, :3])
    channels = fitted.shape[2]
    profile = None
    if source.profile is not None:
        note: Note = "icc_dropped"
        if policy.icc == "keep":
            if not icc.describes(source.profile, source.colorspace, decoded):
                note = "icc_broken"
            elif icc.embeddable(source.profile, channels):
                note, profile = "icc_kept", source.profile
        notes.append(note)
    data = _encode(fitted, policy, subsampling=source.subsampling, profile=profile)
    return _result(data, channels, "reencoded", source, policy, notes)


def _encode(
    pixels: Pixels, policy: ImagePolicy, *, subsampling: str, profile: bytes | None
) -> bytes:
    """Encode as the policy says.

    Args:
        pixels: uint8 (height, width, channels): grey, RGB, or RGBA where the encoding has alpha,
            of a size that it has.
        policy: encoding, quality and the like.
        subsampling: the source's, for a policy that keeps it; empty where it has none.
        profile: an ICC profile to embed.
    """
    if policy.encoding != "jpeg":
        image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
        sink = io.BytesIO()
        image.save(
            sink,
            policy.encoding,
            compress_level=policy.png_compression,  # for PNG; the next two are for WebP
            quality=policy.quality,
            lossless=policy.webp_lossless,
            icc_profile=profile,
        )
        return sink.getvalue()
    if policy.subsampling != "keep":
        subsampling = policy.subsampling
    options = [
        *(cv2.IMWRITE_JPEG_QUALITY, policy.quality),
        *(cv2.IMWRITE_JPEG_PROGRESSIVE, int(policy.progressive)),
        *(cv2.IMWRITE_JPEG_OPTIMIZE, int(policy.optimize)),
    ]
    if pixels.shape[2] == 1:
        memory = np.ascontiguousarray(pixels)
    else:
        memory = bgrx(pixels)
        sampling = _SAMPLING.get(subsampling, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420)
        options += [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, sampling]
    done, encoded = cv2.imencode(".jpg", memory, options)
    if not done:  # of valid pixels, which these are, there is no other reason
        raise MemoryError("OpenCV could not encode the pixels")
    data: bytes = encoded.tobytes()
    return jpeg.with_profile(data, profile) if profile else data


def _result(
    data: bytes,
    channels: int,
    action: Action,
    source: Source,
    policy: ImagePolicy,
    notes: list[Note],
) -> Converted:
    geometry = source.geometry
    of_size: list[Note] = []
    if source.orientation != 1:
        of_size.append("orientation_applied" if source.applied != 1 else "orientation_ignored")
    if falls_short(geometry, policy):
        of_size.append("smaller_than_target")
    if geometry.width * geometry.height > source.width * source.height:
        of_size.append("upscaled")
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
        notes=(*source.notes, *of_size, *notes),
    )
