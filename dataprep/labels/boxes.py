"""PURE. Bounding boxes of many images as columns, and how they follow their pixels.

A box is drawn on the image as it is stored, or as it is displayed where the annotating program
obeyed EXIF. ILSVRC's were drawn in browsers that did not. The size in an annotation is that of the
image shown to the annotator, often a smaller copy, so sides are taken relative to it. As in
TensorFlow's ``process_bounding_boxes.py`` swapped sides change places, and what is outside of the
image is cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dataprep.formats import Box
from dataprep.image import Converted
from dataprep.image.geometry import Geometry
from dataprep.labels.options import BoxOptions

SIDES = ("xmin", "ymin", "xmax", "ymax")
_COLUMNS = ["box_width", "box_height", *(f"box_{side}" for side in SIDES), "box_label"]
_LEAST_SIDE = 1e-6  # of the image: the resolution of float32 near 1
_INVERSE = {6: 8, 8: 6}


class Annotated(NamedTuple):
    """The boxes of one image as drawn, in units of an image of ``width`` x ``height``.

    1 x 1 stands for relative sides, 0 x 0 for pixels of the stored image. A box of an unknown class
    has label -1.
    """

    boxes: tuple[Box, ...] = ()
    width: int = 1
    height: int = 1


@dataclass(frozen=True)
class BoxColumns:
    """The boxes of rows, which are images; ILSVRC2012's 615,299 take some 20 MB.

    Attributes:
        table: the columns of the stored plan: ``box_width`` and ``box_height`` (int32) as in
            ``Annotated``, and for each image a list of ``box_xmin``, ``box_ymin``, ``box_xmax`` and
            ``box_ymax`` (float32) in its units, and of ``box_label`` (int32; -1 for an unknown
            class).
    """

    table: pa.Table

    @classmethod
    def made(
        cls,
        ends: Sequence[int],
        sides: Sequence[Sequence[float]],
        labels: Sequence[int],
        sizes: Sequence[Sequence[int]],
    ) -> BoxColumns:
        """Make the columns from ``sides`` and ``labels`` of all boxes, image after image.

        ``ends`` are 0 and where the boxes of each image end; ``sizes`` are of the images.
        """
        starts = pa.array(ends, pa.int32())
        xmin, ymin, xmax, ymax = np.array(sides, np.float32).reshape(-1, 4).T
        of_boxes = (xmin, ymin, xmax, ymax, np.array(labels, np.int32))
        lists = [pa.ListArray.from_arrays(starts, pa.array(values)) for values in of_boxes]
        widths, heights = np.array(sizes, np.int32).reshape(-1, 2).T
        return cls(pa.table([pa.array(widths), pa.array(heights), *lists], _COLUMNS))

    def of(self, rows: slice) -> list[Annotated]:
        """Return the boxes of some images."""
        part = self.table.slice(rows.start, rows.stop - rows.start)
        images = zip(*(column.to_pylist() for column in part.columns), strict=True)
        return [
            Annotated(tuple(map(Box, *boxes)), width, height) for width, height, *boxes in images
        ]

    def take(self, rows: NDArray[np.int64]) -> BoxColumns:
        """Return some rows, in the order given."""
        return BoxColumns(self.table.take(rows))

    def to_arrow(self) -> dict[str, pa.Array]:
        """Return columns for the stored plan."""
        return dict(zip(_COLUMNS, self.table.combine_chunks().columns, strict=True))

    @classmethod
    def from_arrow(cls, table: pa.Table) -> BoxColumns | None:
        """Read columns made by ``to_arrow``; None where the table has no boxes."""
        return cls(table.select(_COLUMNS)) if "box_label" in table.column_names else None


def follow(
    annotated: Annotated, converted: Converted, image_label: int, options: BoxOptions
) -> tuple[tuple[Box, ...], tuple[str, ...]]:
    """Return boxes relative to the converted image, and the kinds of changes made.

    Kinds: ``boxes_rescaled`` (the annotation is of an image of another size), ``boxes_mended``
    (sides were swapped), ``boxes_clipped`` (sides were outside), ``boxes_dropped`` (nothing, or too
    little, is left of a box), ``boxes_unknown_class`` (it gets the image's label).
    """
    displayed = _is_displayed(annotated, converted, options.frame)
    turn = converted.orientation_applied
    if displayed:
        exif = converted.exif_orientation
        turn = _INVERSE.get(exif, exif) if turn == 1 else 1
    real = (converted.source_width, converted.source_height)
    if displayed and converted.exif_orientation >= 5:
        real = real[::-1]
    size = annotated[1:] if annotated.width else real
    width, height = size
    kinds, boxes = set(), []
    if annotated.boxes and size not in (real, (1, 1)):
        kinds.add("boxes_rescaled")
    for left, top, right, bottom, label in annotated.boxes:
        xmin, xmax = sorted((left / width, right / width))
        ymin, ymax = sorted((top / height, bottom / height))
        mended = Box(xmin, ymin, xmax, ymax, label)
        box = _clipped(mended)
        seen = _clipped(_cropped(_turned(box, turn), converted.geometry))
        if left > right or top > bottom:
            kinds.add("boxes_mended")
        if box != mended:
            kinds.add("boxes_clipped")
        if label < 0:
            kinds.add("boxes_unknown_class")
            seen = seen._replace(label=image_label)
        if _is_visible(seen, box, converted.geometry, options.least_visible):
            boxes.append(seen)
        else:
            kinds.add("boxes_dropped")
    return tuple(boxes), tuple(sorted(kinds))


def _is_displayed(annotated: Annotated, converted: Converted, frame: str) -> bool:
    """Whether boxes were drawn on the image as EXIF turns it."""
    if frame != "auto":
        return frame == "displayed"
    if annotated.width <= 1 or converted.exif_orientation < 5:
        return False
    # The annotation is wide where the stored image is tall, or the reverse.
    tall = converted.source_height - converted.source_width
    return (annotated.width - annotated.height) * tall > 0


def _turned(box: Box, orientation: int) -> Box:
    """Turn a box by the EXIF orientation, as ``image.resize.turn`` turns pixels."""
    left, top, right, bottom, label = box
    if orientation >= 5:
        left, top, right, bottom = top, left, bottom, right
    if orientation in (2, 3, 6, 7):
        left, right = 1 - right, 1 - left
    if orientation in (3, 4, 7, 8):
        top, bottom = 1 - bottom, 1 - top
    return Box(left, top, right, bottom, label)


def _cropped(box: Box, geometry: Geometry) -> Box:
    """Return a box relative to the crop, whose first pixel is that of ``image.resize.fit``."""
    width, height, crop_width, crop_height = geometry
    if (width, height) == (crop_width, crop_height):
        return box
    left, top = (width - crop_width) // 2, (height - crop_height) // 2
    return Box(
        (box.xmin * width - left) / crop_width,
        (box.ymin * height - top) / crop_height,
        (box.xmax * width - left) / crop_width,
        (box.ymax * height - top) / crop_height,
        box.label,
    )


def _clipped(box: Box) -> Box:
    left, top, right, bottom = (min(max(side, 0.0), 1.0) for side in box[:4])
    return Box(left, top, right, bottom, box.label)


def _is_visible(seen: Box, whole: Box, geometry: Geometry, least: float) -> bool:
    """Whether enough of a box is in the crop; ``seen`` is relative to that."""
    width, height = seen.xmax - seen.xmin, seen.ymax - seen.ymin
    if min(width, height) < _LEAST_SIDE:
        return False
    share = geometry.crop_width * geometry.crop_height / (geometry.width * geometry.height)
    area = (whole.xmax - whole.xmin) * (whole.ymax - whole.ymin)
    return width * height * share >= least * area * (1 - 1e-9)
