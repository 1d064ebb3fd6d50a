"""Render a page about a data set: one HTML file without scripts.

Styles and images are inside the file, so that the page loads nothing from a network. All names are
escaped.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from numpy.typing import NDArray
from PIL import Image

from dataprep.checking.split_summary import CompleteSplit, Distribution, SizeColumn
from dataprep.errors import ImageError
from dataprep.formats.shard_reader import Record
from dataprep.image.rgb import decode_rgb
from dataprep.labels import Label
from dataprep.message_text import counted
from dataprep.name_encoding import escape
from dataprep.output.manifest import OUT_OF_BOUNDS, quirk_name

_THUMBNAIL_SIDE = 176  # pixels
_MAX_BINS = 32  # of a histogram
_MAX_FILES = 200  # in the list of source files that were not written
_SIZES: tuple[SizeColumn, ...] = (
    "source_width",
    "source_height",
    "source_bytes",
    "width",
    "height",
)


@dataclass(frozen=True, slots=True)
class Split:
    """A complete split.

    Attributes:
        summary: the summary of the split, as ``dataprep inspect --json`` prints it.
        samples: the table of samples.
        labels: the classes.
        records: the records whose images the page shows.
    """

    summary: CompleteSplit
    samples: pd.DataFrame
    labels: Sequence[Label]
    records: Sequence[Record]


@dataclass(frozen=True, slots=True)
class _Histogram:
    """A histogram of a column of the table of samples.

    Attributes:
        column: the name of the column.
        distribution: minimum, quantiles and maximum of the values.
        edges: the limits of the bins.
        counts: the number of values in each bin.
    """

    column: str
    distribution: Distribution
    edges: NDArray[np.float64]
    counts: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Thumbnail:
    """A small image of a sample.

    Attributes:
        row: the row of the sample in the table of samples.
        uri: the image as a data URI; empty if the image cannot be read.
        problem: why the image cannot be read, or how the record is damaged; otherwise empty.
    """

    row: Mapping[str, Any]
    uri: str
    problem: str


@dataclass(frozen=True, slots=True)
class _Section:
    """The content of the page about one split.

    Attributes:
        summary: the summary of the split, as ``dataprep inspect --json`` prints it.
        class_names: the name of each class, in the order of the labels.
        class_sizes: the number of samples of each class, by its name. The largest class is the
            first. It is empty if the samples have no classes.
        thumbnails: small images of some samples.
        histograms: the distributions of the sizes of images, files and records.
        not_written: status, source and reason of the first source files that failed or were
            skipped.
    """

    summary: CompleteSplit
    class_names: Sequence[str]
    class_sizes: pd.Series[int]
    thumbnails: Sequence[_Thumbnail]
    histograms: Sequence[_Histogram]
    not_written: pd.DataFrame


def render(uri: str, splits: Sequence[Split], incomplete: Mapping[str, str]) -> bytes:
    """Render the page.

    Args:
        uri: the URI of the output.
        splits: the complete splits.
        incomplete: the reason why each other split is not complete, by the name of the split.

    Returns:
        The HTML file, encoded as UTF-8.
    """
    environment = Environment(
        loader=PackageLoader("dataprep.checking"), autoescape=True, undefined=StrictUndefined
    )
    environment.filters["escape_name"] = escape
    environment.filters["quirk_name"] = quirk_name
    environment.globals["counted"] = counted
    environment.globals["out_of_bounds"] = OUT_OF_BOUNDS  # a count of shards, not of files
    template = environment.get_template("inspection.html.j2")
    sections = [_section(split) for split in splits]
    page = template.render(uri=uri, sections=sections, incomplete=incomplete)
    return page.encode("utf-8", "replace")


def _section(split: Split) -> _Section:
    """Collect the content of the page about one split."""
    samples = split.samples
    is_written = samples["status"] == "written"
    written = samples[is_written]
    class_names = [_class_name(label) for label in split.labels]
    labels = written["label"].to_numpy(np.int64)
    class_labels = labels[labels >= 0]  # a sample without a class has the label -1
    class_sizes = pd.Series(dtype=np.int64)
    if len(class_labels):
        counts = np.bincount(class_labels, minlength=len(class_names))
        class_sizes = pd.Series(counts, class_names)
    distributions: dict[str, Distribution] = {}
    for size_column in _SIZES:
        distributions[size_column] = split.summary[size_column]
    for entry in split.summary["formats"]:
        column = f"{entry['name']}_length"
        distributions[column] = entry["records"]
    histograms = []
    for column, distribution in distributions.items():
        histograms.append(_histogram(column, distribution, written[column]))
    not_written = samples[~is_written].sort_values("status", kind="stable")
    not_written = not_written[["status", "source", "reason"]].head(_MAX_FILES).fillna("")
    return _Section(
        summary=split.summary,
        class_names=class_names,
        class_sizes=class_sizes.sort_values(ascending=False, kind="stable"),
        thumbnails=[_thumbnail(record) for record in split.records],
        histograms=histograms,
        not_written=not_written,
    )


def _class_name(label: Label) -> str:
    """The synset and the text of a class; only the synset if they are equal."""
    if label.text == label.synset:
        return escape(label.synset)
    return escape(f"{label.synset} {label.text}")


def _histogram(column: str, distribution: Distribution, values: pd.Series[int]) -> _Histogram:
    """Count values in bins of equal width on a logarithmic scale.

    The scale begins at 1 or above. Values of 0 are not counted.
    """
    minimum = max(distribution["least"], 1)
    maximum = max(distribution["most"], minimum + 1)
    bins = min(_MAX_BINS, int(maximum - minimum))
    edges = np.geomspace(minimum, maximum, bins + 1)
    counts, _ = np.histogram(values, edges)
    return _Histogram(column, distribution, edges, counts)


def _thumbnail(record: Record) -> _Thumbnail:
    """Make a small JPEG of the image of a sample, or say why it cannot be decoded."""
    try:
        image = Image.fromarray(decode_rgb(record.image))
    except ImageError as error:
        problem = record.damage or str(error)
        return _Thumbnail(record.row, "", problem)
    image.thumbnail((_THUMBNAIL_SIDE, _THUMBNAIL_SIDE))
    jpeg = io.BytesIO()
    image.save(jpeg, "JPEG", quality=80)
    content = base64.b64encode(jpeg.getvalue()).decode()
    uri = f"data:image/jpeg;base64,{content}"
    return _Thumbnail(record.row, uri, record.damage)
