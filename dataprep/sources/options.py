"""Parts of a config that belong to one kind of source each."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Column = str | Annotated[int, Field(ge=0)]


class _Section(BaseModel):
    # Hidden, since an address that is refused may hold a password.
    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True
    )


class ILSVRCOptions(_Section):
    """Kind ``ilsvrc``: how tar archives are read."""

    folder: str | None = None
    """Take this folder of the archive as if it were the source, as in
    ``ILSVRC/Data/CLS-LOC/train`` of Kaggle's archive."""

    cache: str | None = None
    """A folder for indexes of archives. (default: $XDG_CACHE_HOME/dataprep) Workers on other
    machines need one that they see too where the archive is compressed."""


class ListingOptions(_Section):
    """Kind ``listing``: how a CSV, TSV, Parquet or ``.lst`` file is read.

    A column is named, or counted from 0.
    """

    format: Literal["auto", "csv", "tsv", "parquet", "lst"] = "auto"
    """Of the file; ``auto`` goes by its extension."""

    path: Column | None = None
    """Column of the images' places. (default: path, filename, file or image, or else the first)"""

    label: Column | None = None
    """Column of the classes. (default: label, class or synset; without a header the second)"""

    labels: tuple[Column, ...] = ()
    """Several columns of numbers, the class first, in place of ``label``."""

    delimiter: Annotated[str, Field(min_length=1, max_length=1)] | None = None
    """Between columns of a text table. (default: a comma, in a TSV file a tab)"""

    header: bool = True
    """Whether the first line of a text table names the columns."""

    root: str | None = None
    """Where relative paths begin: a path or URI. (default: the folder of the listing)"""

    escaped: bool | None = None
    r"""Whether names are written as this program writes them, with ``\\`` and ``\xHH``.
    (default: in ``.lst`` files if every backslash is part of one, elsewhere not)"""

    class_names: str | None = None
    """A file that names the classes of numeric labels: a line each, from 0, or a labels.json."""


class RecordsOptions(_Section):
    """Kind ``records``: how shards that exist are read."""

    format: Literal["auto", "tfrecord", "recordio"] = "auto"
    """Of the shards; ``auto`` looks at them."""

    split: str | None = None
    """Which split of the source. (default: the one that is written)"""

    incomplete: bool = False
    """Read the shards that are there where others of a numbered set are missing, as of
    ``train-00000-of-00128`` to ``train-00127-of-00128``."""

    layout: str | dict[str, str] = "auto"
    """Keys of tf.train.Example: ``imagenet``, ``tfds``, or a mapping from keys to fields
    (docs/layouts.md). (default: by the keys of each record)"""

    label_offset: Annotated[int, Field(ge=-1000, le=1000)] | None = None
    """What the records add to a 0-based label. (default: 1 for customary TFRecords in which no
    label is 0, since that is the background there; otherwise 0)"""

    class_names: str | None = None
    """A file that names the classes of numeric labels: a line each, from 0, or a labels.json."""
