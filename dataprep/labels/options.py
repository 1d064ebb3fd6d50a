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
    """The class of each sample, by sample name; it takes precedence over folders. ILSVRC's devkit
    (the `.tar.gz`, its folder, or `ILSVRC2012_validation_ground_truth.txt`, which needs `meta`),
    `synset_labels.txt`, Kaggle's `LOC_val_solution.csv`, or a table of names and classes."""

    meta: str | None = None
    """The devkit or its `meta.mat`. Default: the `meta.mat` beside the ground truth."""

    map: str | None = None
    """Rename or merge classes: a table or JSON object of old and new names. A sample whose class
    becomes empty is skipped."""

    classes: str | None = None
    """The label of each class: a file of classes in the order of their labels or with their
    numbers, a `labels.json`, or the word `ilsvrc2012` for the 1,000 synsets. Default: classes are
    sorted."""

    texts: str | None = None
    """The classes in words: `LOC_synset_mapping.txt`, the devkit or its `meta.mat`, a table or
    JSON."""


class BoxNames(BaseModel):
    """Column names of a CSV file with a header; the column ``label`` is optional."""

    model_config = _CONFIG

    filename: str = "filename"
    """The image: its name or path."""

    xmin: str = "xmin"
    """The left side."""

    ymin: str = "ymin"
    """The upper side."""

    xmax: str = "xmax"
    """The right side."""

    ymax: str = "ymax"
    """The lower side."""

    label: str = "label"
    """The class of the box, by name."""


class BoxOptions(BaseModel):
    """Bounding boxes stored beside the images; see docs/boxes.md."""

    model_config = _CONFIG

    source: str
    """A folder of XML files, a tar of them, or a CSV file: a path or `s3://bucket/key`."""

    format: Literal["auto", "xml", "csv"] = "auto"
    """The kind of `source`; `auto` decides by its name."""

    units: Literal["relative", "pixels"] = "relative"
    """Units of the sides in a CSV file: shares of the image, or pixels of the stored image. Pixels
    of a scaled copy need its size: XML files have one, a CSV file in the columns `width` and
    `height`."""

    columns: BoxNames = BoxNames()
    """Column names of a CSV file with a header."""

    key: Literal["name", "path"] = "name"
    """How annotations are matched to images: by base name, or by path below the source; both
    without extension."""

    frame: Literal["auto", "stored", "displayed"] = "auto"
    """The image on which the boxes were drawn, where EXIF turns it: as stored, as displayed, or
    the one that fits the size in the annotation (`stored` where there is none)."""

    labels: Literal["own", "image"] = "own"
    """The class of a box: its own where that is known, or always that of its image."""

    least_visible: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.1
    """A box is dropped where a crop leaves less than this share of it."""
