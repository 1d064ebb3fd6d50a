"""What becomes of an image: stored as it is or encoded anew, and the story of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from dataprep.image import icc
from dataprep.image.encode import encode
from dataprep.image.geometry import Geometry, falls_short, plan_geometry, require_feasible
from dataprep.image.notes import Note
from dataprep.image.pixels import Pixels
from dataprep.image.policy import ImagePolicy
from dataprep.image.resize import fit, turn

Action = Literal["passthrough", "retagged", "reencoded"]

_INKS = ("CMYK", "YCCK")
_GREY_WITH_ALPHA = ("LA", "La")
_COLORSPACES = {1: "Grayscale", 3: "RGB", 4: "RGBA"}


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
    """An image as its file has it, and what its pixels are to become: made by ``described``.

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


def described(
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


def as_it_is(
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
    return _converted(data, channels, action, source, policy, notes)


def reencoded(pixels: Pixels, source: Source, policy: ImagePolicy) -> Converted:
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
    geometry = source.geometry
    upright = pixels if source.turned else turn(pixels, source.applied)
    height, width = upright.shape[:2]
    require_feasible(width, height, geometry, policy)
    fitted = fit(upright, geometry, policy.filter)
    if fitted.shape[2] == 1:
        # WebP has no greyscale.
        three = policy.greyscale == "rgb" or policy.encoding == "webp"
        notes.append("greyscale_to_rgb" if three else "greyscale_kept")
        fitted = np.repeat(fitted, 3, axis=2) if three else fitted
    if fitted.shape[2] == 4 and policy.encoding == "webp" and fitted[:, :, 3].min() == 255:
        # WebP has no alpha that is opaque everywhere (libwebp, WebPPictureHasTransparency).
        fitted = np.ascontiguousarray(fitted[:, :, :3])
    channels = fitted.shape[2]
    profile = _embedded(source, pixels.shape[2], channels, policy, notes)
    data = encode(fitted, policy, subsampling=source.subsampling, profile=profile)
    return _converted(data, channels, "reencoded", source, policy, notes)


def _embedded(
    source: Source, decoded: int, stored: int, policy: ImagePolicy, notes: list[Note]
) -> bytes | None:
    """The profile to embed. ``decoded`` and ``stored`` are channels."""
    if source.profile is None:
        return None
    if policy.icc != "keep":
        notes.append("icc_dropped")
        return None
    if not _is_described(source, source.profile, decoded, policy):
        notes.append("icc_broken")
        return None
    embedded = icc.embeddable(source.profile, stored)
    notes.append("icc_kept" if embedded else "icc_dropped")
    return source.profile if embedded else None


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


def _converted(
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
        encoding=policy.encoding.upper(),
        notes=(*source.notes, *notes),
    )
