"""PURE. Bounding boxes of many images as columns, and how they follow their pixels.

A box is drawn on the image as it is stored, or as it is displayed where the annotating program
obeyed EXIF. ILSVRC's were drawn in browsers that did not. The size in an annotation is that of the
image shown to the annotator, often a smaller copy, so sides are taken relative to it. As in
TensorFlow's ``process_bounding_boxes.py`` swapped sides change places, and what is outside of the
image is cut off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dataprep.formats import Box
from dataprep.image import Converted
from dataprep.image.geometry import Geometry
from dataprep.labels.options import BoxOptions

UNREADABLE = -1
SIDES = ("xmin", "ymin", "xmax", "ymax")
_LEAST_SIDE = 1e-6  # of the image: the resolution of float32 near 1
_INVERSE = {6: 8, 8: 6}
# EXIF orientation: whether to transpose, then to flip left to right, then top to bottom.
_TURNS = {
    1: (False, False, False),
    2: (False, True, False),
    3: (False, True, True),
    4: (False, False, True),
    5: (True, False, False),
    6: (True, True, False),
    7: (True, True, True),
    8: (True, False, True),
}


class Annotated(NamedTuple):
    """The boxes of one image as drawn, in units of an image of ``width`` x ``height``.

    1 x 1 stands for relative sides, 0 x 0 for pixels of the stored image, -1 x -1 for an annotation
    that could not be read. A box of an unknown class has label -1.
    """

    boxes: tuple[Box, ...] = ()
    width: int = 1
    height: int = 1


@dataclass(frozen=True)
class BoxColumns:
    """The boxes of rows, which are images; ILSVRC2012's 615,299 take some 20 MB.

    Attributes:
        starts: int64 (rows + 1,): the boxes of row ``i`` are ``starts[i]`` to ``starts[i + 1]``.
        sides: float32 (boxes, 4): xmin, ymin, xmax, ymax, in the units of ``Annotated``.
        labels: int32 (boxes,), 0-based, -1 for an unknown class.
        widths: int32 (rows,), as ``Annotated.width``.
        heights: int32 (rows,), as ``Annotated.height``.
    """

    starts: NDArray[np.int64]
    sides: NDArray[np.float32]
    labels: NDArray[np.int32]
    widths: NDArray[np.int32]
    heights: NDArray[np.int32]

    def of(self, row: int) -> Annotated:
        """Return the boxes of one image."""
        within = slice(int(self.starts[row]), int(self.starts[row + 1]))
        sides, labels = self.sides[within].tolist(), self.labels[within].tolist()
        boxes = (
            Box(left, top, right, bottom, label)
            for (left, top, right, bottom), label in zip(sides, labels, strict=True)
        )
        return Annotated(tuple(boxes), int(self.widths[row]), int(self.heights[row]))

    def take(self, rows: NDArray[np.int64]) -> BoxColumns:
        """Return some rows, in the order given."""
        counts = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(counts)])
        # Box j of the result is as far behind its row's first box as it is in these columns.
        shift = np.repeat(self.starts[rows] - starts[:-1], counts)
        boxes = np.arange(starts[-1]) + shift
        return BoxColumns(
            starts, self.sides[boxes], self.labels[boxes], self.widths[rows], self.heights[rows]
        )

    def to_arrow(self) -> dict[str, pa.Array]:
        """Return columns for the stored plan."""
        starts = pa.array(self.starts, pa.int32())
        columns = {"box_width": pa.array(self.widths), "box_height": pa.array(self.heights)}
        for number, side in enumerate(SIDES):
            values = pa.array(np.ascontiguousarray(self.sides[:, number]))
            columns[f"box_{side}"] = pa.ListArray.from_arrays(starts, values)
        columns["box_label"] = pa.ListArray.from_arrays(starts, pa.array(self.labels))
        return columns

    @classmethod
    def from_arrow(cls, table: pa.Table) -> BoxColumns | None:
        """Read columns made by ``to_arrow``; None where the table has no boxes."""
        if "box_label" not in table.column_names:
            return None
        counts = pc.list_value_length(table["box_label"]).to_numpy()
        labels, *sides = (
            pc.list_flatten(table[f"box_{name}"]).to_numpy() for name in ("label", *SIDES)
        )
        return cls(
            np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]),
            np.stack(sides, axis=1),
            labels,
            table["box_width"].to_numpy(),
            table["box_height"].to_numpy(),
        )


def follow(
    annotated: Annotated, converted: Converted, image_label: int, options: BoxOptions
) -> tuple[tuple[Box, ...], tuple[str, ...]]:
    """Return boxes relative to the converted image, and the kinds of changes made.

    Kinds: ``boxes_rescaled`` (the annotation is of an image of another size), ``boxes_mended``
    (sides were swapped), ``boxes_clipped`` (sides were outside), ``boxes_dropped`` (nothing, or too
    little, is left of a box), ``boxes_unknown_class`` (it gets the image's label),
    ``boxes_unreadable``.
    """
    if annotated.width == UNREADABLE:
        return (), ("boxes_unreadable",)
    displayed = _is_displayed(annotated, converted, options.frame)
    stored = (converted.source_width, converted.source_height)
    real = stored[::-1] if displayed and converted.exif_orientation >= 5 else stored
    width, height = (annotated.width, annotated.height) if annotated.width else real
    kinds, boxes = set(), []
    if annotated.boxes and (width, height) not in (real, (1, 1)):
        kinds.add("boxes_rescaled")
    for left, top, right, bottom, label in annotated.boxes:
        xmin, xmax = sorted((left / width, right / width))
        ymin, ymax = sorted((top / height, bottom / height))
        mended = Box(xmin, ymin, xmax, ymax, label)
        box = _clipped(mended)
        seen = _clipped(_cropped(_turned(box, _turn(converted, displayed)), converted.geometry))
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
    # The aspect of the annotation decides.
    as_stored = abs(
        annotated.width * converted.source_height - annotated.height * converted.source_width
    )
    as_displayed = abs(
        annotated.width * converted.source_width - annotated.height * converted.source_height
    )
    return as_displayed < as_stored


def _turn(converted: Converted, displayed: bool) -> int:
    """Return the orientation by which boxes are turned."""
    if not displayed:
        return converted.orientation_applied
    return (
        1
        if converted.orientation_applied != 1
        else _INVERSE.get(converted.exif_orientation, converted.exif_orientation)
    )


def _turned(box: Box, orientation: int) -> Box:
    """Turn a box by the EXIF orientation, as ``image.resize.turn`` turns pixels."""
    transposed, left_to_right, top_to_bottom = _TURNS[orientation]
    left, top, right, bottom, label = box
    if transposed:
        left, top, right, bottom = top, left, bottom, right
    if left_to_right:
        left, right = 1 - right, 1 - left
    if top_to_bottom:
        top, bottom = 1 - bottom, 1 - top
    return Box(left, top, right, bottom, label)


def _cropped(box: Box, geometry: Geometry) -> Box:
    """Return a box relative to the crop, whose first pixel is that of ``image.resize.fit``."""
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


def _clipped(box: Box) -> Box:
    left, top, right, bottom = (min(max(side, 0.0), 1.0) for side in box[:4])
    return Box(left, top, right, bottom, box.label)


def _is_visible(seen: Box, whole: Box, geometry: Geometry, least: float) -> bool:
    """Whether enough of a box is in the crop; ``seen`` is relative to that."""
    width, height = seen.xmax - seen.xmin, seen.ymax - seen.ymin
    if width < _LEAST_SIDE or height < _LEAST_SIDE:
        return False
    share = geometry.crop_width * geometry.crop_height / (geometry.width * geometry.height)
    area = (whole.xmax - whole.xmin) * (whole.ymax - whole.ymin)
    return width * height * share >= least * area * (1 - 1e-9)
