"""Options about classes and bounding boxes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

_CONFIG = ConfigDict(
    frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True
)


class LabelOptions(BaseModel):
    """Files about classes, each a path or URI. The content of a file decides how it is read."""

    model_config = _CONFIG

    ground_truth: str | None = None
    """The class of each sample, instead of its folder."""

    meta: str | None = None
    """The devkit or its `meta.mat`. (default: the one beside the ground truth)"""

    map: str | None = None
    """Old and new class names, to rename, merge or skip classes."""

    classes: str | None = None
    """The label of each class, or the word `ilsvrc2012`. (default: sorted)"""

    order: Literal["names", "numeric"] = "names"
    """Order of classes without `classes`: by their names as texts, or by value, if all are
    numbers."""

    split_folders: Literal["refuse", "classes"] = "refuse"
    """Folders that look like splits or are called after kinds of files (`train`, `val_images`,
    `masks`): refuse them, or make them classes."""

    texts: str | None = None
    """The classes in words."""


class BoxNames(BaseModel):
    """Column names of a CSV file with a header; the column ``label`` is optional."""

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
    """Name of the box's class."""


class BoxOptions(BaseModel):
    """Bounding boxes stored beside the images; see docs/boxes.md."""

    model_config = _CONFIG

    source: str
    """Folder or tar of XML files, or a CSV file: a path or `s3://bucket/key`."""

    format: Literal["auto", "xml", "csv"] = "auto"
    """Format of `source`; `auto`: by its name."""

    units: Literal["relative", "pixels"] = "relative"
    """Units of a CSV file: shares, or pixels of the stored image or of the columns `width` and
    `height`."""

    columns: BoxNames = BoxNames()
    """Column names of a CSV file with a header."""

    key: Literal["name", "path"] = "name"
    """Match images by base name or by path, without extension."""

    frame: Literal["auto", "stored", "displayed"] = "auto"
    """Which image was annotated, if EXIF turns it. `auto`: the one with the annotated size, else
    `stored`."""

    labels: Literal["own", "image"] = "own"
    """Class of a box: its own if known, or its image's."""

    least_visible: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.1
    """Drop a box if a crop leaves less than this share."""
