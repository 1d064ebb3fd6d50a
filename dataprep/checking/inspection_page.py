"""A page about a data set: one HTML file without scripts.

Everything is inlined, so that the page loads nothing from a network. Every name is escaped.
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

from dataprep.counted import counted
from dataprep.errors import ImageError
from dataprep.formats.shard_reader import Record
from dataprep.image.rgb import decode_whole
from dataprep.labels import Label
from dataprep.names import escape
from dataprep.output.manifest import quirk_name

_THUMBNAIL_SIDE = 176  # pixels
_MAX_BINS = 32  # of a histogram
_MAX_FILES = 200  # in the list of source files that were not written
_SIZES = ("source_width", "source_height", "source_bytes", "width", "height")


@dataclass(frozen=True, slots=True)
class Split:
    """A complete split.

    Attributes:
        figures: its summary, as ``dataprep inspect --json`` prints it.
        samples: its table of samples.
        labels: its classes.
        records: the records whose images the page shows.
    """

    figures: Mapping[str, Any]
    samples: pd.DataFrame
    labels: Sequence[Label]
    records: Sequence[Record]


@dataclass(frozen=True, slots=True)
class _Histogram:
    """A histogram of a column of the table of samples.

    Attributes:
        column: the name of the column.
        spread: the distribution of its values: minimum, quantiles, maximum.
        edges: the limits of the bins.
        counts: the number of values in each bin.
    """

    column: str
    spread: Mapping[str, float]
    edges: NDArray[np.float64]
    counts: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Thumbnail:
    """A small image of a sample.

    Attributes:
        known: the row of the sample in the table of samples.
        uri: the image as a data URI; empty if it cannot be read.
        problem: what is wrong with the record; empty if nothing is wrong.
    """

    known: Mapping[str, Any]
    uri: str
    problem: str


@dataclass(frozen=True, slots=True)
class _Section:
    """What the page shows of a split.

    Attributes:
        figures: of the whole split, as ``--json`` prints them.
        names: of classes, by label.
        classes: the number of samples of each, by name, the largest first; empty where samples have
            no classes.
        not_written: the first of the source files that are not written.
    """

    figures: Mapping[str, Any]
    names: Sequence[str]
    classes: pd.Series[int]
    thumbnails: Sequence[_Thumbnail]
    histograms: Sequence[_Histogram]
    not_written: pd.DataFrame


def render(uri: str, splits: Sequence[Split], missing: Mapping[str, str]) -> bytes:
    """Render the page.

    Args:
        uri: the URI of the output.
        splits: the complete splits.
        missing: the name of each split that is not complete, with the reason.

    Returns:
        The HTML file, encoded as UTF-8.
    """
    environment = Environment(
        loader=PackageLoader("dataprep.checking"), autoescape=True, undefined=StrictUndefined
    )
    environment.filters["escape_name"] = escape
    environment.filters["quirk_name"] = quirk_name
    environment.globals["counted"] = counted
    template = environment.get_template("inspection.html.j2")
    sections = [_section(split) for split in splits]
    page = template.render(uri=uri, sections=sections, missing=missing)
    return page.encode("utf-8", "replace")


def _section(split: Split) -> _Section:
    samples = split.samples
    is_written = samples["status"] == "written"
    written = samples[is_written]
    names = [_name(label) for label in split.labels]
    labels = written["label"].to_numpy(np.int64)
    class_labels = labels[labels >= 0]  # a sample without a class has the label -1
    class_sizes = pd.Series(dtype=np.int64)
    if len(class_labels):
        class_sizes = pd.Series(np.bincount(class_labels, minlength=len(names)), names)
    spreads = {name: split.figures[name] for name in _SIZES}
    for entry in split.figures["formats"]:
        column = f"{entry['name']}_length"
        spreads[column] = entry["records"]
    histograms = []
    for column, spread in spreads.items():
        histograms.append(_histogram(column, spread, written[column]))
    not_written = samples[~is_written].sort_values("status", kind="stable")
    not_written = not_written[["status", "source", "reason"]].head(_MAX_FILES).fillna("")
    return _Section(
        figures=split.figures,
        names=names,
        classes=class_sizes.sort_values(ascending=False, kind="stable"),
        thumbnails=[_thumbnail(record) for record in split.records],
        histograms=histograms,
        not_written=not_written,
    )


def _name(label: Label) -> str:
    """The synset and the text of a class; only one of them if they are equal."""
    if label.text == label.synset:
        return escape(label.synset)
    return escape(f"{label.synset} {label.text}")


def _histogram(column: str, spread: Mapping[str, float], values: pd.Series[int]) -> _Histogram:
    """Count values in bins whose limits have a constant ratio."""
    minimum = max(spread["least"], 1)
    maximum = max(spread["most"], minimum + 1)
    bins = min(_MAX_BINS, int(maximum - minimum))
    edges = np.geomspace(minimum, maximum, bins + 1)
    counts, _ = np.histogram(values, edges)
    return _Histogram(column, spread, edges, counts)


def _thumbnail(record: Record) -> _Thumbnail:
    """A small JPEG of the image of a sample."""
    try:
        image = Image.fromarray(decode_whole(record.image))
    except ImageError as error:
        problem = record.damage or str(error)
        return _Thumbnail(record.known, "", problem)
    image.thumbnail((_THUMBNAIL_SIDE, _THUMBNAIL_SIDE))
    jpeg = io.BytesIO()
    image.save(jpeg, "JPEG", quality=80)
    content = base64.b64encode(jpeg.getvalue()).decode()
    uri = f"data:image/jpeg;base64,{content}"
    return _Thumbnail(record.known, uri, record.damage)
