"""PURE. Store the bounding boxes of many images in columns, and convert boxes with their images.

Boxes refer to the stored image, or to the displayed image if the annotation program applied the
Exif orientation. The boxes of ILSVRC were drawn in browsers that ignored the orientation.

The size in an annotation is the size of the image that the annotator saw. Often, this image is a
smaller copy. Therefore the sides of boxes are divided by this size. As in TensorFlow's
``process_bounding_boxes.py``, swapped sides are exchanged, and boxes are cut at the edges of the
image.
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
from dataprep.image.output_size import Geometry
from dataprep.labels.options import BoxOptions

SIDES = ("xmin", "ymin", "xmax", "ymax")
"""The sides of a box in the order in which files and records have them."""

_COLUMNS = [
    "box_width",
    "box_height",
    "box_xmin",
    "box_ymin",
    "box_xmax",
    "box_ymax",
    "box_label",
]
_MIN_SIDE = 1e-6  # as a share of the image; smaller sides vanish in float32 near 1
_INVERSE_ORIENTATIONS = {6: 8, 8: 6}  # all other orientations are their own inverses


class AnnotatedImage(NamedTuple):
    """The size and the boxes of the image that the annotator saw.

    Attributes:
        boxes: the boxes. A box of an unknown class has the label -1.
        width, height: the size of the image, in the units of the sides. It is 1 x 1 if the sides
            are shares of the image, and 0 x 0 if they are pixels of the source image, whose size
            the annotation does not have.
    """

    boxes: tuple[Box, ...] = ()
    width: int = 1
    height: int = 1


@dataclass(frozen=True)
class BoxColumns:
    """The boxes of many images, a row for each image. ILSVRC2012's 615,299 boxes take 20 MB.

    Attributes:
        table: the columns, as the stored plan contains them. ``box_width`` and ``box_height``
            (int32) are the size in ``AnnotatedImage``. ``box_xmin``, ``box_ymin``, ``box_xmax`` and
            ``box_ymax`` (float32) are lists of sides. ``box_label`` (int32) is a list of labels, in
            which -1 means an unknown class.
    """

    table: pa.Table

    @classmethod
    def from_lists(
        cls,
        ends: Sequence[int],
        sides: Sequence[Sequence[float]],
        labels: Sequence[int],
        sizes: Sequence[Sequence[int]],
    ) -> BoxColumns:
        """Make the columns from lists of all boxes, which are in the order of the images.

        Args:
            ends: where the boxes of each image end in the other lists. The first value is 0, and
                the boxes of image i are those from ``ends[i]`` to ``ends[i + 1] - 1``.
            sides: xmin, ymin, xmax and ymax of each box.
            labels: the label of each box.
            sizes: the width and height of each annotated image, as in ``AnnotatedImage``.
        """
        offsets = pa.array(ends, pa.int32())
        xmin, ymin, xmax, ymax = np.array(sides, np.float32).reshape(-1, 4).T
        box_columns = (xmin, ymin, xmax, ymax, np.array(labels, np.int32))
        lists = [pa.ListArray.from_arrays(offsets, pa.array(values)) for values in box_columns]
        widths, heights = np.array(sizes, np.int32).reshape(-1, 2).T
        return cls(pa.table([pa.array(widths), pa.array(heights), *lists], _COLUMNS))

    def annotated_images(self, rows: slice) -> list[AnnotatedImage]:
        """The boxes of the images in these rows. ``rows`` must have a start and a stop."""
        selected = self.table.slice(rows.start, rows.stop - rows.start)
        columns = [column.to_pylist() for column in selected.columns]
        images = []
        for width, height, *box_columns in zip(*columns, strict=True):
            boxes = tuple(Box(*values) for values in zip(*box_columns, strict=True))
            images.append(AnnotatedImage(boxes, width, height))
        return images

    def take(self, rows: NDArray[np.int64]) -> BoxColumns:
        """The columns with only these rows, in this order."""
        return BoxColumns(self.table.take(rows))

    def to_arrow(self) -> dict[str, pa.Array]:
        """The columns for the stored plan."""
        return dict(zip(_COLUMNS, self.table.combine_chunks().columns, strict=True))

    @classmethod
    def from_arrow(cls, table: pa.Table) -> BoxColumns | None:
        """Read the columns from a stored plan. Returns None if the plan has no boxes."""
        if "box_label" not in table.column_names:
            return None
        return cls(table.select(_COLUMNS))


def convert_boxes(
    annotated: AnnotatedImage, converted: Converted, image_label: int, options: BoxOptions
) -> tuple[tuple[Box, ...], tuple[str, ...]]:
    """Transform the boxes of an image in the way in which its pixels were turned and cropped.

    Args:
        annotated: the boxes of the source image.
        converted: the converted image.
        image_label: the label of the image, for boxes of an unknown class.
        options: how boxes are interpreted.

    Returns:
        The boxes, with sides as shares of the converted image, and sorted notes about their
        changes: ``boxes_rescaled`` (the annotated image had another size), ``boxes_mended``
        (swapped sides were exchanged), ``boxes_clipped`` (sides were outside of the image),
        ``boxes_dropped`` (too little of a box is left), ``boxes_unknown_class`` (a box got the
        label of its image).
    """
    is_displayed = _is_displayed(annotated, converted, options.frame)
    orientation = _box_orientation(converted, is_displayed)
    source_size = (converted.source_width, converted.source_height)
    # Orientations from 5 exchange width and height.
    if is_displayed and converted.exif_orientation >= 5:
        source_size = (converted.source_height, converted.source_width)
    annotated_size = source_size
    if annotated.width:
        annotated_size = (annotated.width, annotated.height)
    width, height = annotated_size
    boxes: list[Box] = []
    notes: set[str] = set()
    if annotated.boxes and annotated_size not in (source_size, (1, 1)):
        notes.add("boxes_rescaled")
    for left, top, right, bottom, label in annotated.boxes:
        xmin, xmax = sorted((left / width, right / width))
        ymin, ymax = sorted((top / height, bottom / height))
        relative_box = Box(xmin, ymin, xmax, ymax, label)
        source_box = _clipped(relative_box)
        turned_box = _turned(source_box, orientation)
        crop_box = _clipped(_cropped(turned_box, converted.geometry))
        if left > right or top > bottom:
            notes.add("boxes_mended")
        if source_box != relative_box:
            notes.add("boxes_clipped")
        if label < 0:
            notes.add("boxes_unknown_class")
            crop_box = crop_box._replace(label=image_label)
        if _is_visible(crop_box, source_box, converted.geometry, options.least_visible):
            boxes.append(crop_box)
        else:
            notes.add("boxes_dropped")
    return tuple(boxes), tuple(sorted(notes))


def _box_orientation(converted: Converted, is_displayed: bool) -> int:
    """The Exif orientation by which boxes must be turned.

    Boxes on the stored image are turned like the pixels. Boxes on the displayed image already have
    the orientation of turned pixels. If the pixels were not turned, these boxes are turned back.
    """
    if not is_displayed:
        return converted.orientation_applied
    if converted.orientation_applied != 1:
        return 1
    exif = converted.exif_orientation
    return _INVERSE_ORIENTATIONS.get(exif, exif)


def _is_displayed(annotated: AnnotatedImage, converted: Converted, frame: str) -> bool:
    """Whether boxes were drawn on the displayed image, which is turned by its Exif orientation."""
    if frame != "auto":
        return frame == "displayed"
    # Without the size of the annotated image, or without exchanged sides, the shapes show nothing.
    if annotated.width <= 1 or converted.exif_orientation < 5:
        return False
    # The image was turned by 90 degrees if the annotated image is wide and the stored image is
    # tall, or the reverse.
    annotated_is_wide = annotated.width > annotated.height
    annotated_is_tall = annotated.width < annotated.height
    stored_is_wide = converted.source_width > converted.source_height
    stored_is_tall = converted.source_width < converted.source_height
    return (annotated_is_wide and stored_is_tall) or (annotated_is_tall and stored_is_wide)


def _turned(box: Box, orientation: int) -> Box:
    """Turn a box by an Exif orientation, as ``image.resize.turn`` turns pixels."""
    left, top, right, bottom, label = box
    if orientation >= 5:
        left, top, right, bottom = top, left, bottom, right
    if orientation in (2, 3, 6, 7):
        left, right = 1 - right, 1 - left
    if orientation in (3, 4, 7, 8):
        top, bottom = 1 - bottom, 1 - top
    return Box(left, top, right, bottom, label)


def _cropped(box: Box, geometry: Geometry) -> Box:
    """Convert a box of the scaled image to a box of the crop that ``image.resize.fit`` makes."""
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
    """Cut a box at the edges of the image."""
    left, top, right, bottom = [min(max(side, 0.0), 1.0) for side in box[:4]]
    return Box(left, top, right, bottom, box.label)


def _is_visible(crop_box: Box, source_box: Box, geometry: Geometry, min_share: float) -> bool:
    """Whether at least the share ``min_share`` of the area of a box is inside the crop.

    A box whose sides vanish is not visible.

    Args:
        crop_box: the part of the box inside the crop, as shares of the crop.
        source_box: the box inside the source image, as shares of the source image.
        geometry: the sizes of the scaled image and of the crop.
        min_share: the share, from 0 to 1.
    """
    width = crop_box.xmax - crop_box.xmin
    height = crop_box.ymax - crop_box.ymin
    if min(width, height) < _MIN_SIDE:
        return False
    # All areas are shares of the scaled image.
    crop_area = geometry.crop_width * geometry.crop_height / (geometry.width * geometry.height)
    visible_area = width * height * crop_area
    box_area = (source_box.xmax - source_box.xmin) * (source_box.ymax - source_box.ymin)
    rounding_tolerance = 1 - 1e-9
    return visible_area >= min_share * box_area * rounding_tolerance
