"""PURE. Boxes follow their image: turned, scaled, cropped.

A box is drawn on the image as it is stored, pixels in the order of the file, or as it is displayed
where the annotating program obeyed EXIF. ILSVRC's were drawn in browsers that did not. The size in
an XML file is that of the image that was shown ("relative to image size displayed to the human
annotator", TensorFlow's ``process_bounding_boxes.py``), often a smaller one: sides are taken
relative to it. As there, sides that are swapped change places, and what lies outside is cut off.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dataprep.boxes.columns import UNREADABLE, Annotated
from dataprep.formats import Box
from dataprep.image.geometry import Geometry

_INVERSE = {6: 8, 8: 6}
_LEAST_SIDE = 1e-6  # of the image: what float32 tells apart near 1


@dataclass(frozen=True, slots=True)
class Shown:
    """What became of the image: its size as stored, how it was turned, scaled and cropped.

    ``orientation`` is what EXIF says, ``applied`` by which of it the pixels were turned (1: not
    at all).
    """

    width: int
    height: int
    orientation: int
    applied: int
    geometry: Geometry


def follow(
    annotated: Annotated, shown: Shown, image_label: int, *, frame: str, least_visible: float
) -> tuple[tuple[Box, ...], tuple[str, ...]]:
    """Boxes relative to the image that is stored in the record, and the kinds of what was done.

    ``frame`` and ``least_visible`` are those of ``BoxOptions``. Kinds: ``boxes_rescaled`` where
    the annotation is of an image of another size, ``boxes_mended`` (sides swapped),
    ``boxes_clipped`` (sides outside), ``boxes_dropped`` (nothing, or too little, left of a box),
    ``boxes_unknown_class`` (it has the image's label), ``boxes_unreadable``.
    """
    if annotated.width == UNREADABLE:
        return (), ("boxes_unreadable",)
    kinds = set()
    displayed = _is_displayed(annotated, shown, frame)
    turned = displayed and shown.orientation >= 5
    real = (shown.height, shown.width) if turned else (shown.width, shown.height)
    drawn_on = (annotated.width, annotated.height) if annotated.width else real
    if annotated.boxes and drawn_on not in (real, (1, 1)):
        kinds.add("boxes_rescaled")
    boxes = []
    for drawn in annotated.boxes:
        box, mended = _mended(_divided(drawn, *drawn_on))
        box, clipped = _clipped(box)
        seen, _ = _clipped(_cropped(_turned(box, _turn(shown, displayed)), shown.geometry))
        kinds.update(_kinds(mended=mended, clipped=clipped, unknown=drawn.label < 0))
        if not _is_left(seen, box, shown.geometry, least_visible):
            kinds.add("boxes_dropped")
            continue
        boxes.append(seen._replace(label=image_label) if drawn.label < 0 else seen)
    return tuple(boxes), tuple(sorted(kinds))


def _kinds(*, mended: bool, clipped: bool, unknown: bool) -> Iterable[str]:
    found = {"boxes_mended": mended, "boxes_clipped": clipped, "boxes_unknown_class": unknown}
    return (kind for kind, is_so in found.items() if is_so)


def _is_displayed(annotated: Annotated, shown: Shown, frame: str) -> bool:
    """Whether boxes were drawn on the image as EXIF turns it."""
    if frame != "auto":
        return frame == "displayed"
    if annotated.width <= 1 or shown.orientation < 5:
        return False
    # Whichever aspect is nearer to that of the annotation.
    as_stored = abs(annotated.width * shown.height - annotated.height * shown.width)
    as_displayed = abs(annotated.width * shown.width - annotated.height * shown.height)
    return as_displayed < as_stored


def _turn(shown: Shown, displayed: bool) -> int:
    """The orientation by which boxes are turned."""
    if not displayed:
        return shown.applied
    return 1 if shown.applied != 1 else _INVERSE.get(shown.orientation, shown.orientation)


def _divided(box: Box, width: int, height: int) -> Box:
    return Box(box.xmin / width, box.ymin / height, box.xmax / width, box.ymax / height, box.label)


def _mended(box: Box) -> tuple[Box, bool]:
    xmin, xmax = sorted((box.xmin, box.xmax))
    ymin, ymax = sorted((box.ymin, box.ymax))
    mended = Box(xmin, ymin, xmax, ymax, box.label)
    return mended, mended != box


def _clipped(box: Box) -> tuple[Box, bool]:
    left, top, right, bottom = (min(max(side, 0.0), 1.0) for side in box[:4])
    clipped = Box(left, top, right, bottom, box.label)
    return clipped, clipped != box


def _turned(box: Box, orientation: int) -> Box:
    """By the Exif orientation, as ``image.resize.turn`` turns pixels."""
    left, top, right, bottom, label = box
    match orientation:
        case 2:
            return Box(1 - right, top, 1 - left, bottom, label)
        case 3:
            return Box(1 - right, 1 - bottom, 1 - left, 1 - top, label)
        case 4:
            return Box(left, 1 - bottom, right, 1 - top, label)
        case 5:
            return Box(top, left, bottom, right, label)
        case 6:
            return Box(1 - bottom, left, 1 - top, right, label)
        case 7:
            return Box(1 - bottom, 1 - right, 1 - top, 1 - left, label)
        case 8:
            return Box(top, 1 - right, bottom, 1 - left, label)
        case _:
            return box


def _cropped(box: Box, geometry: Geometry) -> Box:
    """Relative to the crop, which ``image.resize.fit`` takes from these whole pixels on."""
    if geometry[:2] == geometry[2:]:
        return box
    left = (geometry.width - geometry.crop_width) // 2
    top = (geometry.height - geometry.crop_height) // 2
    return Box(
        (box.xmin * geometry.width - left) / geometry.crop_width,
        (box.ymin * geometry.height - top) / geometry.crop_height,
        (box.xmax * geometry.width - left) / geometry.crop_width,
        (box.ymax * geometry.height - top) / geometry.crop_height,
        box.label,
    )


def _is_left(seen: Box, whole: Box, geometry: Geometry, least: float) -> bool:
    """Whether enough of a box is seen; both are relative, one to the crop."""
    width, height = seen.xmax - seen.xmin, seen.ymax - seen.ymin
    if width < _LEAST_SIDE or height < _LEAST_SIDE:
        return False
    share = geometry.crop_width * geometry.crop_height / (geometry.width * geometry.height)
    area = (whole.xmax - whole.xmin) * (whole.ymax - whole.ymin)
    return width * height * share >= least * area * (1 - 1e-9)
