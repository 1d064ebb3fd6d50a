"""Where bounding boxes come from, and what they mean."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator


class BoxNames(BaseModel):
    """What the columns of a CSV file with a header are called; ``label`` may be missing there."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

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
    """Boxes beside the images; docs/boxes.md tells what becomes of them."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True
    )

    source: str
    """A folder of XML files, a tar of them, or a CSV file: a path or `s3://bucket/key`."""

    format: Literal["auto", "xml", "csv"] = "auto"
    """What lies there; by its name unless told."""

    units: Literal["relative", "pixels"] = "relative"
    """Of the sides in a CSV file: shares of the image, or pixels of it as it is stored. XML files
    have pixels, and the size of the image that these are of, as a CSV file with the columns `width`
    and `height` has it."""

    columns: BoxNames = BoxNames()
    """What the columns of a CSV file with a header are called."""

    key: Literal["name", "path"] = "name"
    """How an annotation finds its image: by its base name, or by its path below the source; both
    without extension."""

    frame: Literal["auto", "stored", "displayed"] = "auto"
    """Which image the boxes were drawn on, where EXIF turns it: as it is stored, as it is
    displayed, or whichever fits the size in the XML (`stored` where there is none)."""

    labels: Literal["own", "image"] = "own"
    """Whose class a box has: its own, where that is known, or always that of its image."""

    least_visible: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.1
    """A box of which a crop leaves a smaller share than this is dropped."""

    @field_validator("source", mode="before")
    @classmethod
    def _path_or_uri(cls, value: Any) -> Any:
        return os.fspath(value) if isinstance(value, os.PathLike) else value

    @field_validator("source")
    @classmethod
    def _not_empty(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be empty")
        return value
