"""A data set as one HTML file: everything inlined, every name escaped, no network, no script."""

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
from dataprep.image.rgb import decode_whole
from dataprep.labels import Label
from dataprep.manifest import quirk_name
from dataprep.names import escape
from dataprep.shard_records import Record

_THUMBNAIL = 176
_BINS = 32
_FILES = 200
_SIZES = ("source_width", "source_height", "source_bytes", "width", "height")


@dataclass(frozen=True, slots=True)
class Split:
    """A complete split: its figures, its table of samples, its classes, and some records."""

    figures: Mapping[str, Any]
    samples: pd.DataFrame
    labels: Sequence[Label]
    records: Sequence[Record]


@dataclass(frozen=True, slots=True)
class _Histogram:
    """How the values of a column are spread, and how many are in each interval."""

    column: str
    spread: Mapping[str, float]
    edges: NDArray[np.float64]
    counts: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Thumbnail:
    """An image as a data URI, or why there is none, and its row in the table of samples."""

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
        lost: the first of the source files that are not written.
    """

    figures: Mapping[str, Any]
    names: Sequence[str]
    classes: pd.Series[int]
    thumbnails: Sequence[_Thumbnail]
    histograms: Sequence[_Histogram]
    lost: pd.DataFrame


def render(uri: str, splits: Sequence[Split], missing: Mapping[str, str]) -> bytes:
    """The page, UTF-8. ``missing`` has the splits that are not complete, and why.

    A pure function of what was read.
    """
    environment = Environment(
        loader=PackageLoader("dataprep"), autoescape=True, undefined=StrictUndefined
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
    labelled = labels[labels >= 0]  # without a class the label is -1
    sizes = pd.Series(dtype=np.int64)
    if len(labelled):
        sizes = pd.Series(np.bincount(labelled, minlength=len(names)), names)
    spreads = {name: split.figures[name] for name in _SIZES}
    for entry in split.figures["formats"]:
        column = f"{entry['name']}_length"
        spreads[column] = entry["records"]
    histograms = []
    for column, spread in spreads.items():
        histograms.append(_histogram(column, spread, written[column]))
    lost = samples[~is_written].sort_values("status", kind="stable")
    lost = lost[["status", "source", "reason"]].head(_FILES).fillna("")
    return _Section(
        figures=split.figures,
        names=names,
        classes=sizes.sort_values(ascending=False, kind="stable"),
        thumbnails=[_thumbnail(record) for record in split.records],
        histograms=histograms,
        lost=lost,
    )


def _name(label: Label) -> str:
    """Synset and text, once where they are the same."""
    words = [label.synset]
    if label.text != label.synset:
        words.append(label.text)
    return escape(" ".join(words))


def _histogram(column: str, spread: Mapping[str, float], values: pd.Series[int]) -> _Histogram:
    """Count values in intervals of equal ratio."""
    least = max(spread["least"], 1)
    most = max(spread["most"], least + 1)
    bins = min(_BINS, int(most - least))
    edges = np.geomspace(least, most, bins + 1)
    counts, _ = np.histogram(values, edges)
    return _Histogram(column, spread, edges, counts)


def _thumbnail(record: Record) -> _Thumbnail:
    """A small JPEG of the image of a sample."""
    try:
        image = Image.fromarray(decode_whole(record.image))
    except ImageError as error:
        problem = record.damage or str(error)
        return _Thumbnail(record.known, "", problem)
    image.thumbnail((_THUMBNAIL, _THUMBNAIL))
    sink = io.BytesIO()
    image.save(sink, "JPEG", quality=80)
    content = base64.b64encode(sink.getvalue()).decode()
    uri = f"data:image/jpeg;base64,{content}"
    return _Thumbnail(record.known, uri, record.damage)
