"""One image in, one JPEG, PNG or WebP out, and what was done to it.

JPEGs are decoded by libjpeg-turbo, at the smallest of 1, 1/2, 1/4 and 1/8 of their size that is
not below the target: its inverse DCT makes these by vector instructions (other eighths take it
longer than the whole size, and blur). ``resize`` does the rest. Every step to a JPEG is integer
arithmetic, conversion to sRGB excepted: the same bytes on every processor.
"""

from __future__ import annotations

import numpy as np
from PIL import Image

from dataprep.errors import CorruptImage, ImageTooLarge
from dataprep.image import harmless, icc, jpeg, libjpeg, shortage
from dataprep.image.containers import contradicts
from dataprep.image.geometry import dct_size
from dataprep.image.notes import Note
from dataprep.image.pixels import Opened, Pixels, open_image, refused, require_size
from dataprep.image.policy import ImagePolicy
from dataprep.image.resize import takes_reduced
from dataprep.image.result import Action, Converted, Source, as_it_is, described, reencoded
from dataprep.image.scans import lacks_pixels, scan_notes

__all__ = ["Action", "Converted", "convert"]


def convert(data: bytes, policy: ImagePolicy | None = None, *, name: str = "") -> Converted:
    """Convert one encoded image by ``policy`` (its defaults if none is given).

    Args:
        data: the file's bytes; the content decides the codec.
        policy: size, encoding, what becomes of each trait, limits.
        name: the file's, whose extension may promise another container than the content is.

    Raises:
        ImageError: empty, unknown, broken, unsupported, refused, too large or too small.
        MemoryError: there was too little of it, which most codecs tell as of a broken image.
    """
    policy = policy or ImagePolicy()
    with shortage.told_apart(data, policy.max_pixels):
        return _converted(data, policy, name)


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
        return _from_pillow(data, opened, _wrongly_named(name, opened.container, policy), policy)
    header = jpeg.read_header(data)
    require_size(header.width, header.height, policy)
    notes = (*_wrongly_named(name, "JPEG", policy), *scan_notes(data, header))
    if not header.usual:
        return _from_unusual_sampling(data, header, notes, policy)
    if header.channels == 4:
        return _from_four_colours(data, notes, policy)
    return _from_jpeg(data, header, notes, policy)


def _wrongly_named(name: str, container: str, policy: ImagePolicy) -> tuple[Note, ...]:
    if not contradicts(name, container):
        return ()
    if policy.wrong_container == "fail":
        raise refused(f"{container}, which its name does not say", "wrong_container")
    return ("wrong_container",)


def _from_jpeg(
    data: bytes, header: jpeg.JpegHeader, notes: tuple[Note, ...], policy: ImagePolicy
) -> Converted:
    source = described(
        policy,
        container="JPEG",
        width=header.width,
        height=header.height,
        colorspace=header.colorspace,
        orientation=header.orientation,
        profile=jpeg.profile(data, header),
        notes=notes,
        subsampling=header.subsampling,
    )
    if policy.encoding == "jpeg" and source.fits(header.channels, policy):
        checked = None if _converts(source, policy) else _checked(data, header, policy)
        if checked is not None:
            source = source._replace(notes=(*notes, *checked))
            retagged = any(tag.value != 1 for tag in header.orientations)
            if not retagged:
                return as_it_is(data, header.channels, "passthrough", source, policy)
            upright = jpeg.reset_orientation(data, header)
            return as_it_is(upright, header.channels, "retagged", source, policy)
    decoded = libjpeg.decode(
        data,
        "GRAY" if header.channels == 1 else "RGB",
        _least(source, policy),
        keep_truncated=policy.truncated == "keep",
    )
    if decoded.notes:
        source = source._replace(notes=(*notes, *decoded.notes))
    return reencoded(*_in_srgb(decoded.pixels, source, policy), policy)


def _from_four_colours(data: bytes, notes: tuple[Note, ...], policy: ImagePolicy) -> Converted:
    """Pillow converts the colours, but keeps silent about pixels that were lost."""
    # Of its pixels nothing is kept: they would lie in memory beside Pillow's.
    found = libjpeg.decode(data, "CMYK", keep_truncated=policy.truncated == "keep").notes
    whole = data + jpeg.EOI if "truncated_kept" in found else data
    opened = open_image(harmless.without_short_profile(whole), policy)
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
    elif lacks_pixels(data, header):
        raise CorruptImage("corrupt JPEG: too few bytes for as many pixels")
    opened = open_image(harmless.without_short_profile(whole), policy)
    return _from_pillow(data, opened, notes, policy)


def _from_pillow(
    data: bytes, opened: Opened, notes: tuple[Note, ...], policy: ImagePolicy
) -> Converted:
    height, width, channels = opened.pixels.shape
    if opened.turned and opened.orientation >= 5:
        width, height = height, width
    source = described(
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
        return as_it_is(data, channels, "passthrough", source, policy)
    return reencoded(opened.pixels, source, policy)


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
        notes = libjpeg.decode(data, "GRAY", keep_truncated=keep).notes
        return None if "truncated_kept" in notes else notes
    if jpeg.ends(data, header):
        return ()
    if keep:
        return None
    raise CorruptImage("truncated JPEG: it has no end-of-image marker")


def _least(source: Source, policy: ImagePolicy) -> tuple[int, int]:
    """The size below which a decoder must not scale, as stored; 0 x 0 for the whole size."""
    if not takes_reduced(policy.filter):
        return 0, 0
    width, height, *_ = source.geometry
    least = (height, width) if source.applied >= 5 else (width, height)
    return dct_size(source.width, source.height, *least)


def _in_srgb(pixels: Pixels, source: Source, policy: ImagePolicy) -> tuple[Pixels, Source]:
    if policy.icc != "srgb" or source.profile is None:
        return pixels, source
    image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    found = icc.to_srgb(image, source.profile)
    if found.note is None:
        return pixels, source
    told = source._replace(profile=None, notes=(*source.notes, found.note))
    return np.asarray(found.image).reshape(pixels.shape), told
