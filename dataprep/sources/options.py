"""The settings of each kind of source. They are the section of a config with the kind's name.

They are separate from the kinds, so that reading a config does not import the libraries for Parquet
files, tars and S3.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from dataprep.formats import get_format

Column = str | Annotated[int, Field(ge=0)]
"""The name of a column, or its number from 0."""


def _auto_or_registered_format(name: str) -> str:
    """Check the name of a record format.

    Raises:
        ConfigError: no such format is registered.
    """
    if name != "auto":
        get_format(name)
    return name


class _Section(BaseModel):
    # Keep values out of error messages, because a refused address may contain a password.
    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True
    )


class ILSVRCOptions(_Section):
    """Kind ``ilsvrc``: how tar archives are read."""

    folder: str | None = None
    """Folder of the archive, such as `ILSVRC/Data/CLS-LOC/train` in Kaggle's archive."""

    classes: Literal["auto", "archives", "folders", "names"] = "auto"
    """What the classes are: the names of the `archives`, the `folders` inside them, or the synsets
    in the `names` of images. `auto` decides itself, and refuses a source that is not clear."""

    cache: str | None = None
    """Folder of indexes. (default: $XDG_CACHE_HOME/dataprep)"""


class ListingOptions(_Section):
    """Kind ``listing``: how a CSV, TSV, Parquet or ``.lst`` file is read.

    A column is given by its name, or by its number from 0.
    """

    format: Literal["auto", "csv", "tsv", "parquet", "lst"] = "auto"
    """Format of the file; `auto`: by its extension."""

    path: Column | None = None
    """Column of paths, by name or number from 0. (default: path, filename, file, image, or the
    first)"""

    label: Column | None = None
    """Column of classes. (default: label, class or synset; without a header the second)"""

    labels: tuple[Column, ...] = ()
    """In place of `label`: several columns of numbers, the class first."""

    delimiter: Annotated[str, Field(min_length=1, max_length=1)] | None = None
    """Column delimiter. (default: comma, in TSV tab)"""

    header: bool = True
    """The first line names the columns."""

    root: str | None = None
    """Folder or URI of relative paths. (default: the listing's folder)"""

    escaped: bool | None = None
    r"""Names are escaped with `\\` and `\xHH`, as dataprep writes them. (default: in `.lst` files
    if every backslash is part of an escape)"""

    class_names: str | None = None
    """Names of numeric labels: one per line, from 0, or a labels.json."""


class ParquetOptions(_Section):
    """Kind ``parquet``: how Parquet files with images are read.

    A column in a struct is named with dots: `sample.image`.
    """

    image: Annotated[str, Field(min_length=1)] | None = None
    """Column of images: a struct with `bytes`, or binary. (default: the only one, or the one called
    image, img, jpg, png or the like)"""

    label: Annotated[str, Field(min_length=1)] | Literal[False] | None = None
    """Column of classes: whole numbers or texts; `false`: none. (default: the schema's ClassLabel,
    or the one called label, class, category or the like)"""

    class_names: str | None = None
    """Names of numeric labels: one per line, from 0, or a labels.json. (default: those in the
    schema)"""


class RecordsOptions(_Section):
    """Kind ``records``: how existing shards are read."""

    format: Annotated[str, AfterValidator(_auto_or_registered_format)] = "auto"
    """Format of the shards; `auto`: by content. If an output has several formats: TFRecord."""

    split: str | None = None
    """Split of the source. (default: as written)"""

    incomplete: bool = False
    """Read a set of shards although some are missing."""

    layout: str | dict[str, str] = "auto"
    """Keys of Examples: `imagenet`, `tfds` or a mapping; `auto`: by the keys of each record."""

    label_offset: Annotated[int, Field(ge=-1000, le=1000)] | None = None
    """Number that was added to 0-based labels inside records. (default: 1 for ImageNet's TFRecords
    without a label 0, else 0)"""

    class_names: str | None = None
    """Names of numeric labels: one per line, from 0, or a labels.json."""


class WebDatasetOptions(_Section):
    """Kind ``webdataset``: how WebDataset tars are read."""

    label: Annotated[str, Field(min_length=1)] | None = None
    """Key of the class in `.json` members, a number or a name. (default: `.cls` members have it)"""

    class_names: str | None = None
    """Names of numeric labels: one per line, from 0, or a labels.json."""

    cache: str | None = None
    """Folder of indexes. (default: $XDG_CACHE_HOME/dataprep)"""
