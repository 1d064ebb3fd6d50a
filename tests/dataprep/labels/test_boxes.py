"""Boxes have options, are stored as columns, and follow the pixels of their image."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from PIL import Image

from dataprep.config.shard_config import ShardConfig, load
from dataprep.errors import ConfigError
from dataprep.formats import Box
from dataprep.image import Converted, ImagePolicy, convert
from dataprep.image.output_size import Geometry, plan_geometry
from dataprep.labels.boxes import AnnotatedImage, BoxColumns, convert_boxes
from dataprep.labels.options import BoxOptions

WIDTH, HEIGHT = 400, 240
MARKED = (40, 60, 200, 180)
"""The coloured rectangle, in pixels of the stored image."""
MODES: list[dict[str, Any]] = [
    {},
    {"mode": "short", "size": 120},
    {"mode": "long", "size": 150},
    {"mode": "exact", "size": (90, 130)},
    {"mode": "crop", "size": 160},
    {"mode": "crop", "size": (301, 99)},
    {"mode": "short", "size": 300, "upscale": True},
]


def box_of(sides: Sequence[float], label: int) -> Box:
    """A box of four sides."""
    left, top, right, bottom = map(float, sides)
    return Box(left, top, right, bottom, label)


def marked(orientation: int) -> bytes:
    """A grey JPEG with a red rectangle and an EXIF orientation."""
    pixels = np.full((HEIGHT, WIDTH, 3), 128, np.uint8)
    left, top, right, bottom = MARKED
    pixels[top:bottom, left:right] = (255, 0, 0)
    exif = Image.Exif()
    exif[0x0112] = orientation
    sink = io.BytesIO()
    Image.fromarray(pixels).save(sink, "JPEG", quality=100, subsampling=0, exif=exif)
    return sink.getvalue()


def red_part(data: bytes) -> tuple[tuple[int, int], tuple[int, int, int, int]]:
    """The size of a stored image, and the sides of its red part."""
    pixels = np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)
    red = pixels[:, :, 0] - pixels[:, :, 1] > 128
    rows, columns = np.flatnonzero(red.any(1)), np.flatnonzero(red.any(0))
    height, width = red.shape
    return (width, height), (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)


def followed(
    annotated: AnnotatedImage, converted: Converted, frame: str = "auto", least: float = 0.1
) -> tuple[tuple[Box, ...], tuple[str, ...]]:
    """``follow`` for an image of class 7."""
    options = {"source": "boxes", "frame": frame, "least_visible": least}
    return convert_boxes(annotated, converted, 7, BoxOptions.model_validate(options))


def turned(orientation: int) -> tuple[tuple[int, int, int, int], tuple[int, int]]:
    """The rectangle and the size of the displayed image, computed by Pillow."""
    from PIL import ImageOps

    sink = io.BytesIO()
    ImageOps.exif_transpose(Image.open(io.BytesIO(marked(orientation)))).save(sink, "PNG")
    size, sides = red_part(sink.getvalue())
    return sides, size


@pytest.mark.parametrize("drawn_on", ["stored", "displayed"])
@pytest.mark.parametrize("policy", ["ignore", "apply"])
@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_box_lies_where_its_pixels_lie(
    orientation: int, mode: dict[str, Any], policy: str, drawn_on: str
) -> None:
    """For each orientation, mode and frame, the box surrounds the rectangle it was drawn on."""
    converted = convert(
        marked(orientation),
        ImagePolicy.model_validate({**mode, "orientation": policy, "subsampling": "444"}),
    )
    sides, size = (MARKED, (WIDTH, HEIGHT)) if drawn_on == "stored" else turned(orientation)
    annotated = AnnotatedImage((box_of(sides, 3),), *size)
    (box,), _ = followed(annotated, converted, frame=drawn_on)
    (width, height), red_box = red_part(converted.data)
    assert (width, height) == (converted.width, converted.height)
    scaled = (box.xmin * width, box.ymin * height, box.xmax * width, box.ymax * height)
    assert scaled == pytest.approx(red_box, abs=1.6)
    assert box.label == 3


@pytest.mark.parametrize("orientation", [5, 6, 7, 8])
@pytest.mark.parametrize("shrunk", [1, 2])
def test_the_size_in_the_annotation_tells_the_frame(orientation: int, shrunk: int) -> None:
    """A box on the displayed image is recognised by its size, or by that of a small copy."""
    converted = convert(marked(orientation), ImagePolicy(orientation="apply"))
    sides, size = turned(orientation)
    small = [side / shrunk for side in sides]
    annotated = AnnotatedImage((box_of(small, 3),), size[0] // shrunk, size[1] // shrunk)
    boxes, kinds = followed(annotated, converted)
    assert boxes == followed(annotated, converted, frame="displayed")[0]
    assert boxes != followed(annotated, converted, frame="stored")[0]
    assert kinds == (() if shrunk == 1 else ("boxes_rescaled",))


def image_of(
    width: int, height: int, orientation: int, applied: int, geometry: Geometry
) -> Converted:
    """A conversion of an image of this stored size."""
    return replace(
        CONVERTED,
        source_width=width,
        source_height=height,
        exif_orientation=orientation,
        orientation_applied=applied,
        geometry=geometry,
    )


CONVERTED = convert(marked(1), ImagePolicy())
sides = st.floats(-0.5, 1.5, width=32)
boxes = st.builds(Box, sides, sides, sides, sides, st.integers(-1, 5))
policies = st.sampled_from([ImagePolicy.model_validate(mode) for mode in MODES])
KINDS = {"mended", "clipped", "dropped", "unknown_class", "rescaled"}


@given(
    drawn=st.lists(boxes, max_size=5).map(tuple),
    size=st.tuples(st.integers(1, 3000), st.integers(1, 3000)),
    policy=policies,
    orientation=st.integers(1, 8),
    apply=st.booleans(),
    least=st.floats(0, 1),
)
@example((Box(0.0, 0.0, 1.0, 1.0, 0),), (1, 1), ImagePolicy(), 6, True, 1.0)
def test_boxes_stay_within_the_image(
    drawn: tuple[Box, ...],
    size: tuple[int, int],
    policy: ImagePolicy,
    orientation: int,
    apply: bool,
    least: float,
) -> None:
    """A stored box is within 0 and 1, has an area, and has a known class, for any input."""
    displayed = size[::-1] if apply and orientation >= 5 else size
    geometry = plan_geometry(*displayed, policy)
    image = image_of(*size, orientation, orientation if apply else 1, geometry)
    stored_boxes, kinds = followed(AnnotatedImage(drawn), image, least=least)
    assert {kind.removeprefix("boxes_") for kind in kinds} <= KINDS
    assert ("boxes_dropped" in kinds) == (len(stored_boxes) < len(drawn))
    for box in stored_boxes:
        assert 0 <= box.xmin < box.xmax <= 1
        assert 0 <= box.ymin < box.ymax <= 1
        assert box.label >= 0
        assert np.float32(box.xmin) < np.float32(box.xmax)


@given(box=boxes, orientation=st.integers(1, 8))
def test_a_turn_and_its_reverse_leave_a_box_alone(box: Box, orientation: int) -> None:
    """A box drawn on a turned image and stored unturned is the reverse of the other case."""
    uncropped = Geometry(100, 100, 100, 100)
    stored_boxes, _ = followed(
        AnnotatedImage((box,)), image_of(100, 100, orientation, orientation, uncropped), "stored", 0
    )
    assume(stored_boxes)
    not_turned = image_of(100, 100, orientation, 1, uncropped)
    boxes_turned_back, _ = followed(AnnotatedImage(stored_boxes), not_turned, "displayed", 0)
    (first,), _ = followed(AnnotatedImage((box,)), image_of(100, 100, 1, 1, uncropped), "stored", 0)
    assert boxes_turned_back[0][:4] == pytest.approx(first[:4], abs=1e-6)


WHOLE = image_of(200, 100, 1, 1, Geometry(200, 100, 200, 100))
MIDDLE = image_of(200, 100, 1, 1, Geometry(200, 100, 100, 100))
"""The 100 pixels in the middle of 200."""


def image_of_one_box(
    *values: float, label: int = 3, size: tuple[int, int] = (1, 1)
) -> AnnotatedImage:
    """An annotated image of one box."""
    return AnnotatedImage((box_of(values, label),), *size)


FOLLOWED: dict[str, tuple[AnnotatedImage, Converted, float, tuple[Box, ...], tuple[str, ...]]] = {
    "swapped sides": (
        image_of_one_box(0.75, 0.5, 0.25, 0.0),
        WHOLE,
        0.1,
        (Box(0.25, 0.0, 0.75, 0.5, 3),),
        ("boxes_mended",),
    ),
    "partly outside": (
        image_of_one_box(-3, 25, 150, 101, size=(200, 100)),
        WHOLE,
        0.1,
        (Box(0.0, 0.25, 0.75, 1.0, 3),),
        ("boxes_clipped",),
    ),
    "outside": (image_of_one_box(1.5, 0.0, 2.0, 1.0), WHOLE, 0.1, (), ("boxes_dropped",)),
    "a line": (image_of_one_box(0.5, 0.5, 0.5, 1.0), WHOLE, 0.1, (), ("boxes_dropped",)),
    "above": (image_of_one_box(0.0, -0.3, 1.0, -0.1), WHOLE, 0.1, (), ("boxes_dropped",)),
    "moved by a crop": (
        image_of_one_box(0.5, 0.25, 0.625, 0.5),
        MIDDLE,
        0.1,
        (Box(0.5, 0.25, 0.75, 0.5, 3),),
        (),
    ),
    "missed by a crop": (image_of_one_box(0.0, 0.0, 0.2, 1.0), MIDDLE, 0.0, (), ("boxes_dropped",)),
    "of a small copy of the image": (
        image_of_one_box(25, 0, 50, 25, size=(100, 50)),
        WHOLE,
        0.1,
        (Box(0.25, 0.0, 0.5, 0.5, 3),),
        ("boxes_rescaled",),
    ),
    "pixels without a size": (
        image_of_one_box(50, 50, 100, 100, size=(0, 0)),
        WHOLE,
        0.1,
        (Box(0.25, 0.5, 0.5, 1.0, 3),),
        (),
    ),
    "of an unknown class": (
        image_of_one_box(0.0, 0.0, 0.5, 0.5, label=-1),
        WHOLE,
        0.1,
        (Box(0.0, 0.0, 0.5, 0.5, 7),),
        ("boxes_unknown_class",),
    ),
    "none": (AnnotatedImage(), MIDDLE, 0.1, (), ()),
}


@pytest.mark.parametrize(
    ("annotated", "converted", "least", "boxes", "kinds"), FOLLOWED.values(), ids=FOLLOWED
)
def test_boxes_follow_their_image(
    annotated: AnnotatedImage,
    converted: Converted,
    least: float,
    boxes: tuple[Box, ...],
    kinds: tuple[str, ...],
) -> None:
    """Sides are relative to the stored image, and changes of a box are counted."""
    stored_boxes, noted_kinds = followed(annotated, converted, least=least)
    assert stored_boxes == boxes
    assert {*kinds} <= {*noted_kinds}
    assert bool(kinds) == bool(noted_kinds)


@pytest.mark.parametrize(
    ("least", "kept"), [(0.0, True), (0.24, True), (0.25, True), (0.26, False), (1.0, False)]
)
def test_too_little_of_a_box_is_none(least: float, kept: bool) -> None:
    """A quarter of this box is within the crop, and an option sets the required share."""
    boxes, kinds = followed(image_of_one_box(0.15625, 0.0, 0.28125, 1.0), MIDDLE, least=least)
    assert bool(boxes) == kept
    assert kinds == (() if kept else ("boxes_dropped",))


float32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
annotated_images = st.builds(
    AnnotatedImage,
    st.lists(
        st.builds(Box, float32, float32, float32, float32, st.integers(-1, 999)), max_size=3
    ).map(tuple),
    st.integers(-1, 5000),
    st.integers(-1, 5000),
)


def columns(images: list[AnnotatedImage]) -> BoxColumns:
    """The boxes of images as columns."""
    boxes = [box for image in images for box in image.boxes]
    ends = np.cumsum([0, *(len(image.boxes) for image in images)]).tolist()
    sides, labels = [box[:4] for box in boxes], [box.label for box in boxes]
    return BoxColumns.from_lists(ends, sides, labels, [image[1:] for image in images])


@given(images=st.lists(annotated_images, min_size=1, max_size=6), data=st.data())
def test_rows_are_taken_in_any_order(images: list[AnnotatedImage], data: st.DataObject) -> None:
    """Each row has the boxes of its image, even if a row is taken twice."""
    chosen = data.draw(st.lists(st.integers(0, len(images) - 1), max_size=8))
    selected = columns(images).take(np.array(chosen, np.int64))
    assert selected.annotated_images(slice(0, len(chosen))) == [images[row] for row in chosen]


@given(images=st.lists(annotated_images, max_size=6))
def test_parquet_keeps_boxes(images: list[AnnotatedImage]) -> None:
    """The columns of the plan keep the same bits."""
    sink = io.BytesIO()
    pq.write_table(pa.table(columns(images).to_arrow()), sink)
    table = pq.read_table(io.BytesIO(sink.getvalue()))
    assert table.schema.field("box_xmin").type == pa.list_(pa.float32())
    assert table.schema.field("box_label").type == pa.list_(pa.int32())
    read_back = BoxColumns.from_arrow(table)
    assert read_back is not None
    assert read_back.annotated_images(slice(0, len(images))) == images
    assert BoxColumns.from_arrow(pa.table({"source": ["a"]})) is None


PLACES = {"source": "in", "output": "out"}


@pytest.mark.parametrize("boxes", ["b.csv", Path("b.csv"), {"source": "b.csv"}])
def test_a_path_alone_is_the_source(boxes: object) -> None:
    """The short form and the long form mean the same."""
    config = ShardConfig.model_validate({**PLACES, "boxes": boxes})
    assert config.boxes is not None
    assert config.boxes.source == "b.csv"
    assert config.boxes.least_visible == 0.1


def test_the_place_is_no_content() -> None:
    """The path of annotations is no content, and the other options are."""
    content, content_of_other_path = (
        ShardConfig.model_validate({**PLACES, "boxes": {"source": s}}).content() for s in "ab"
    )
    assert content == content_of_other_path
    other = load(None, {**PLACES, "boxes.source": "a", "boxes.least_visible": 0.5}).content()
    assert other != content
    assert ShardConfig.model_validate(PLACES).content()["boxes"] is None


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("boxes.least_visible", 1.5, "boxes.least_visible"),
        ("boxes.sourse", "x", "unknown key boxes.sourse: did you mean boxes.source"),
        ("boxes.columns.lable", "x", "did you mean boxes.columns.label"),
    ],
)
def test_options_that_are_refused(key: str, value: object, message: str) -> None:
    """Wrong keys and values are named."""
    with pytest.raises(ConfigError, match=message):
        load(None, {**PLACES, "boxes.source": "b.csv", key: value})


def test_an_empty_path_is_refused() -> None:
    """The error says what a path is."""
    with pytest.raises(ConfigError, match="give a path or an address"):
        load(None, {**PLACES, "boxes": " "})
