"""Where bounding boxes come from, and what they mean."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator


class BoxNames(BaseModel):
    """What the columns of a CSV file with a header are called; ``label`` may be missing there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    filename: str = "filename"
    xmin: str = "xmin"
    ymin: str = "ymin"
    xmax: str = "xmax"
    ymax: str = "ymax"
    label: str = "label"


class BoxOptions(BaseModel):
    """Boxes beside the images; docs/boxes.md tells what becomes of them.

    ``source`` is a folder of XML files, a tar of them, or a CSV file: a path or
    ``s3://bucket/key``. ``format`` goes by that name unless told. ``units`` are those of a CSV
    file; XML files have pixels, and the size of the image that these are of. ``key`` says how an
    annotation finds its image: by its base ``name`` or by its ``path``, both without extension.
    ``frame`` says which image the boxes were drawn on, where EXIF turns it: as ``stored``, as
    ``displayed``, or whichever fits the size in the XML (``auto``, ``stored`` without a size).
    ``labels``: each box has its ``own`` class, or that of its ``image``. A box of which less than
    ``least_visible`` is left by a crop is dropped.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    format: Literal["auto", "xml", "csv"] = "auto"
    units: Literal["relative", "pixels"] = "relative"
    columns: BoxNames = BoxNames()
    key: Literal["name", "path"] = "name"
    frame: Literal["auto", "stored", "displayed"] = "auto"
    labels: Literal["own", "image"] = "own"
    least_visible: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.1

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
