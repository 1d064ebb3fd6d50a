"""One image in, one JPEG, PNG or WebP out, and what was done to it.

JPEGs are decoded by libjpeg-turbo, at the smallest of 1, 1/2, 1/4 and 1/8 of their size that is
not below the target: its inverse DCT makes these by vector instructions (other eighths take it
longer than the whole size, and blur). ``resize`` does the rest. Every step to a JPEG is integer
arithmetic, conversion to sRGB excepted: the same bytes on every processor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from PIL import Image

from dataprep.errors import CorruptImage, ImageTooLarge
from dataprep.image import containers, icc, jpeg, jpeg_decode, jpeg_repair, out_of_memory
from dataprep.image.encode import encode
from dataprep.image.geometry import (
    Geometry,
    Pixels,
    dct_fraction,
    falls_short,
    plan_geometry,
    require_feasible,
    require_size,
)
from dataprep.image.policy import PILLOW_HARD_LIMIT, ImagePolicy, Note
from dataprep.image.resize import REDUCIBLE, fit, turn

Action = Literal["passthrough", "retagged", "reencoded"]

_INKS = ("CMYK", "YCCK")
_GREY_WITH_ALPHA = ("LA", "La")
_COLORSPACES = {1: "Grayscale", 3: "RGB", 4: "RGBA"}
_ENCODINGS = {"jpeg": "JPEG", "png": "PNG", "webp": "WEBP"}
_JPEG_NAMES = (".JPEG", ".jpg", ".jpeg", ".JPG")
_CHECKED = ("PNG", "WEBP")
_AS_IT_IS = ImagePolicy(encoding="png", alpha="keep", max_pixels=PILLOW_HARD_LIMIT)


@dataclass(frozen=True, slots=True)
class Converted:
    """A stored image and its story.

    ``encoding`` is what ``data`` is: ``JPEG``, ``PNG`` or ``WEBP``. ``width``, ``height``,
    ``channels`` and ``colorspace`` (``Grayscale``, ``RGB`` or ``RGBA``) describe ``data``; the
    ``source_`` fields the image as it was stored. ``action`` is ``passthrough``
    (byte for byte), ``retagged`` (only the orientation tag was set to 1) or ``reencoded``.
    ``orientation_applied`` is the orientation by which the pixels were turned, 1 for none, and
    ``geometry`` how the turned image was then scaled and cropped: what boxes must follow.
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


class Source(NamedTuple):
    """An image as its file has it, and what its pixels are to become: made by ``_described``.

    Sizes in pixels, before it is turned; the orientation is Exif's, ``applied`` the one by which it
    is turned, 1 for none, and ``geometry`` what it is scaled and cropped to then. ``turned`` says
    whether the decoder has followed the orientation already.
    ``profile`` is its ICC profile, None once the pixels are no longer described by it.
    ``subsampling`` is a JPEG's, empty where it has none. ``notes`` is what was told so far.
    """

    container: str
    width: int
    height: int
    colorspace: str
    orientation: int
    profile: bytes | None
    notes: tuple[Note, ...]
    subsampling: str
    turned: bool
    applied: int
    geometry: Geometry

    def fits(self, channels: int, policy: ImagePolicy) -> bool:
        """Whether nothing is to change: neither size nor orientation nor number of channels."""
        if channels == 1 and policy.greyscale == "rgb":
            return False
        same = self.geometry == (self.width, self.height, self.width, self.height)
        return same and self.applied == 1


def convert(data: bytes, policy: ImagePolicy | None = None, *, name: str = "") -> Converted:
    """Convert one encoded image by ``policy`` (its defaults if none is given).

    Args:
        data: the file's bytes; the content decides the codec.
        policy: size, encoding, what becomes of each trait, limits.
        name: the file's, whose extension may promise another container than the content is.

    Raises:
        ImageError: empty, unknown, broken, unsupported, refused, too large or too small.
        MemoryError: there was too little of it, which most codecs report as a broken image.
    """
    if policy is None:
        policy = ImagePolicy()
    try:
        return _converted(data, policy, name)
    except Exception as error:
        out_of_memory.raise_if_cause(error, data, policy.max_pixels)
        raise


def check(data: bytes) -> tuple[int, int, int]:
    """Decode a stored JPEG, PNG or WebP in full; its width, height and channels.

    Raises:
        ImageError: it is none of them, or not all of its pixels can be decoded.
        MemoryError: there was too little of it.
    """
    try:
        return _checked_shape(data)
    except Exception as error:
        out_of_memory.raise_if_cause(error, data, PILLOW_HARD_LIMIT)
        raise


def _checked_shape(data: bytes) -> tuple[int, int, int]:
    if data.startswith(jpeg.SOI):
        header = jpeg.read_header(data)
        pixels = jpeg_decode.decode(data, "GRAY" if header.channels == 1 else "RGB").pixels
    elif data.startswith((b"\x89PNG\r\n\x1a\n", b"RIFF")):
        opened = containers.open_image(data, _AS_IT_IS)
        if opened.container not in _CHECKED or not opened.as_stored:
            raise CorruptImage(
                f"{opened.container} with {opened.mode}: nothing that was stored here"
            )
        pixels = opened.pixels
    else:
        raise CorruptImage(f"not a JPEG, PNG or WebP: begins with {data[:4]!r}")
    height, width, channels = pixels.shape
    return width, height, channels


def _converted(data: bytes, policy: ImagePolicy, name: str) -> Converted:
    if not data:
        raise CorruptImage("empty file (0 bytes)")
    if len(data) > policy.max_source_bytes:
        raise ImageTooLarge(
            f"{len(data):,} bytes are more than max_source_bytes allows "
            f"({policy.max_source_bytes:,})"
        )
    if not data.startswith(jpeg.SOI):
        opened = containers.open_image(data, policy)
        return _from_pillow(data, opened, _wrongly_named(name, opened.container, policy), policy)
    header = jpeg.read_header(data)
    require_size(header.width, header.height, policy)
    notes: tuple[Note, ...] = ()
    if name and not name.endswith(_JPEG_NAMES):
        notes = _wrongly_named(name, "JPEG", policy)
    if header.several_scans:
        notes += jpeg_decode.scan_notes(data, header)
    if not header.usual:
        return _from_unusual_sampling(data, header, notes, policy)
    if header.channels == 4:
        return _from_four_colours(data, notes, policy)
    return _from_jpeg(data, header, notes, policy)


def _wrongly_named(name: str, container: str, policy: ImagePolicy) -> tuple[Note, ...]:
    if not containers.contradicts(name, container):
        return ()
    if policy.wrong_container == "fail":
        raise containers.refused(f"{container}, which its name does not say", "wrong_container")
    return ("wrong_container",)


def _from_jpeg(
    data: bytes, header: jpeg.JpegHeader, notes: tuple[Note, ...], policy: ImagePolicy
) -> Converted:
    source = _described(
        policy,
        container="JPEG",
        width=header.width,
        height=header.height,
        colorspace=header.colorspace,
        orientation=header.orientation,
        profile=jpeg.profile(data, header) if header.icc_chunks else None,
        notes=notes,
        subsampling=header.subsampling,
    )
    if policy.encoding == "jpeg" and source.fits(header.channels, policy):
        checked = None if _converts(source, policy) else _checked(data, header, policy)
        if checked is not None:
            source = source._replace(notes=(*notes, *checked))
            retagged = any(tag.value != 1 for tag in header.orientations)
            if not retagged:
                return _as_it_is(data, header.channels, "passthrough", source, policy)
            upright = jpeg.reset_orientation(data, header)
            return _as_it_is(upright, header.channels, "retagged", source, policy)
    least = 0, 0
    if policy.filter in REDUCIBLE:
        width, height, *_ = source.geometry
        wanted = (height, width) if source.applied >= 5 else (width, height)
        fraction = dct_fraction(header.width, header.height, *wanted)
        if fraction > 1:
            least = -(-header.width // fraction), -(-header.height // fraction)
    colours = "GRAY" if header.channels == 1 else "RGB"
    keep = policy.truncated == "keep"
    pixels, found = jpeg_decode.decode(data, colours, least, keep_truncated=keep)
    if found:
        source = source._replace(notes=(*notes, *found))
    if policy.icc == "srgb" and source.profile is not None:
        pixels, source = _in_srgb(pixels, source, source.profile)
    return _reencoded(pixels, source, policy)


def _from_four_colours(data: bytes, notes: tuple[Note, ...], policy: ImagePolicy) -> Converted:
    """Pillow converts the colours, but does not report lost pixels."""
    # Its pixels are not kept: they would take memory beside Pillow's.
    found = jpeg_decode.decode(data, "CMYK", keep_truncated=policy.truncated == "keep").notes
    whole = data + jpeg.EOI if "truncated_kept" in found else data
    opened = containers.open_image(jpeg_repair.without_short_profile(whole), policy)
    return _from_pillow(data, opened, (*notes, *found), policy)


def _from_unusual_sampling(
    data: bytes, header: jpeg.JpegHeader, notes: tuple[Note, ...], policy: ImagePolicy
) -> Converted:
    """Pillow decodes it, and tells of a file that ends early, not of pixels that were lost."""
    notes = (*notes, "subsampling_converted")
    whole = data
    if not jpeg.ends(data, header):
        if policy.truncated == "fail":
            raise CorruptImage("truncated JPEG: it has no end-of-image marker")
        whole, notes = data + jpeg.EOI, (*notes, "truncated_kept")
    elif jpeg_decode.lacks_pixels(data, header):
        raise CorruptImage("corrupt JPEG: too few bytes for as many pixels")
    opened = containers.open_image(jpeg_repair.without_short_profile(whole), policy)
    return _from_pillow(data, opened, notes, policy)


def _from_pillow(
    data: bytes, opened: containers.Opened, notes: tuple[Note, ...], policy: ImagePolicy
) -> Converted:
    height, width, channels = opened.pixels.shape
    if opened.turned and opened.orientation >= 5:
        width, height = height, width
    source = _described(
        policy,
        container=opened.container,
        width=width,
        height=height,
        colorspace=opened.mode,
        orientation=opened.orientation,
        profile=opened.profile,
        notes=(*notes, *opened.notes),
        turned=opened.turned,
    )
    stays = opened.as_stored and opened.container == policy.encoding.upper()
    if stays and opened.orientation == 1 and source.fits(channels, policy):
        return _as_it_is(data, channels, "passthrough", source, policy)
    return _reencoded(opened.pixels, source, policy)


def _converts(source: Source, policy: ImagePolicy) -> bool:
    """Whether the pixels of a JPEG are to become others, because of its profile."""
    profile = source.profile
    return policy.icc == "srgb" and profile is not None and icc.is_other_than_srgb(profile)


def _checked(data: bytes, header: jpeg.JpegHeader, policy: ImagePolicy) -> tuple[Note, ...] | None:
    """Make sure that a file which is stored as it is can be decoded; what libjpeg noted.

    All of the entropy-coded data is read; the colours, which cannot fail, are left out. None if
    it ends early, so that it must be encoded anew to be kept.
    """
    keep = policy.truncated == "keep"
    if policy.check == "decode":
        notes = jpeg_decode.decode(data, "GRAY", keep_truncated=keep).notes
        return None if "truncated_kept" in notes else notes
    if jpeg.ends(data, header):
        return ()
    if keep:
        return None
    raise CorruptImage("truncated JPEG: it has no end-of-image marker")


def _in_srgb(pixels: Pixels, source: Source, profile: bytes) -> tuple[Pixels, Source]:
    image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    found = icc.to_srgb(image, profile)
    if found.note is None:
        return pixels, source
    managed = source._replace(profile=None, notes=(*source.notes, found.note))
    return np.asarray(found.image).reshape(pixels.shape), managed


def _described(
    policy: ImagePolicy,
    *,
    container: str,
    width: int,
    height: int,
    colorspace: str,
    orientation: int,
    profile: bytes | None,
    notes: tuple[Note, ...],
    subsampling: str = "",
    turned: bool = False,
) -> Source:
    """What a file's header says, and what ``policy`` makes of that."""
    applied = orientation if turned or policy.orientation == "apply" else 1
    shown = (height, width) if applied >= 5 else (width, height)
    geometry = plan_geometry(*shown, policy)
    stored = (container, width, height, colorspace, orientation, profile, notes, subsampling)
    return Source(*stored, turned, applied, geometry)


def _as_it_is(
    data: bytes, channels: int, action: Action, source: Source, policy: ImagePolicy
) -> Converted:
    """Stored without being encoded. A profile stays in it, whatever the policy says of those."""
    notes = _size_notes(source, policy)
    if action == "retagged":
        notes.append("orientation_reset")
    if source.profile is not None:
        sound = _is_described(source, source.profile, channels, policy)
        notes.append("icc_kept" if sound else "icc_broken")
    if channels == 1:
        notes.append("greyscale_kept")
    return _result(data, channels, action, source, policy, notes)


def _reencoded(pixels: Pixels, source: Source, policy: ImagePolicy) -> Converted:
    """Turned, scaled, encoded.

    Args:
        pixels: as stored or, where the source says so, as turned; of the source's size or of a
            fraction of it.
        source: where they come from.
        policy: size, encoding, and the like.

    Raises:
        ImageTooLarge: what it would become.
    """
    notes = _size_notes(source, policy)
    decoded = pixels.shape[2]
    if source.applied != 1 and not source.turned:
        pixels = turn(pixels, source.applied)
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
        profile = _embedded(source, source.profile, decoded, channels, policy, notes)
    data = encode(fitted, policy, subsampling=source.subsampling, profile=profile)
    return _result(data, channels, "reencoded", source, policy, notes)


def _embedded(
    source: Source,
    profile: bytes,
    decoded: int,
    stored: int,
    policy: ImagePolicy,
    notes: list[Note],
) -> bytes | None:
    """The profile to embed. ``decoded`` and ``stored`` are channels."""
    if policy.icc != "keep":
        notes.append("icc_dropped")
        return None
    if not _is_described(source, profile, decoded, policy):
        notes.append("icc_broken")
        return None
    embedded = icc.embeddable(profile, stored)
    notes.append("icc_kept" if embedded else "icc_dropped")
    return profile if embedded else None


def _is_described(source: Source, profile: bytes, channels: int, policy: ImagePolicy) -> bool:
    return icc.describes(
        profile,
        inks=source.colorspace in _INKS,
        grey=channels == 1 or source.colorspace in _GREY_WITH_ALPHA,
        thoroughly=policy.icc != "drop",
    )


def _size_notes(source: Source, policy: ImagePolicy) -> list[Note]:
    notes: list[Note] = []
    if source.orientation != 1:
        turned = source.applied != 1
        notes.append("orientation_applied" if turned else "orientation_ignored")
    geometry = source.geometry
    if falls_short(geometry, policy):
        notes.append("smaller_than_target")
    if geometry.width * geometry.height > source.width * source.height:
        notes.append("upscaled")
    return notes


def _result(
    data: bytes,
    channels: int,
    action: Action,
    source: Source,
    policy: ImagePolicy,
    notes: list[Note],
) -> Converted:
    geometry = source.geometry
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
        encoding=_ENCODINGS[policy.encoding],
        notes=(*source.notes, *notes),
    )
