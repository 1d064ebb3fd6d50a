"""The settings ``labels`` and ``boxes`` of a shard config: classes and bounding boxes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

_CONFIG = ConfigDict(
    frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True
)


class LabelOptions(BaseModel):
    """Files about classes: paths or URIs. The content of a file decides how it is read."""

    model_config = _CONFIG

    ground_truth: str | None = None
    """File with the class of each sample, which replaces the class of its folder."""

    meta: str | None = None
    """The devkit or its `meta.mat`. (default: the file beside the ground truth)"""

    map: str | None = None
    """File with old and new class names, to rename, merge or skip classes."""

    classes: str | None = None
    """File with the label of each class, or `ilsvrc2012`. (default: classes are sorted)"""

    order: Literal["names", "numeric"] = "names"
    """Order of the classes if there is no `classes` file: by name, or by value if all classes are
    numbers."""

    split_folders: Literal["refuse", "classes"] = "refuse"
    """Folders with the names of splits or kinds of files (`train`, `val_images`, `masks`): refuse
    them, or use them as classes."""

    texts: str | None = None
    """File with a description of each class."""


class BoxNames(BaseModel):
    """Column names of a CSV file with a header. The column ``label`` is optional."""

    model_config = _CONFIG

    filename: str = "filename"
    """Name or path of the image."""

    xmin: str = "xmin"
    """Left side."""

    ymin: str = "ymin"
    """Upper side."""

    xmax: str = "xmax"
    """Right side."""

    ymax: str = "ymax"
    """Lower side."""

    label: str = "label"
    """Class of the box."""


class BoxOptions(BaseModel):
    """Bounding boxes in files beside the images; see docs/boxes.md."""

    model_config = _CONFIG

    source: str
    """Folder or tar of XML files, or a CSV file: a path or `s3://bucket/key`."""

    format: Literal["auto", "xml", "csv"] = "auto"
    """Format of `source`. `auto`: the name of the file decides."""

    units: Literal["relative", "pixels"] = "relative"
    """Units in a CSV file: shares of the image, or pixels. Pixels refer to the size in the columns
    `width` and `height`, or to the stored image."""

    columns: BoxNames = BoxNames()
    """Column names of a CSV file with a header."""

    key: Literal["name", "path"] = "name"
    """Match annotations and images by base name or by path, without extension."""

    frame: Literal["auto", "stored", "displayed"] = "auto"
    """Image on which boxes were drawn if it has an Exif orientation: the `stored` or the
    `displayed` image. `auto`: the image with the annotated size, or else `stored`."""

    labels: Literal["own", "image"] = "own"
    """Class of a box: its `own`, if that is one of the classes, or the class of its `image`."""

    least_visible: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.1
    """Drop a box if a crop leaves less than this share of it."""
