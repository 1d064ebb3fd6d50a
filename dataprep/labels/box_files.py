"""Read bounding boxes and match them to images.

Boxes come from XML files in a folder, from a tar of them, or from a CSV file; local or on S3.

XML files are those of ILSVRC and Pascal VOC. An image has the name of its file, since
``<filename>`` is ``%s`` in some of ILSVRC's. CSV files have three forms: TensorFlow's
``filename,xmin,ymin,xmax,ymax[,label]`` without a header, columns named by a header, or Kaggle's
``ImageId,PredictionString``, whose second column is ``synset xmin ymin xmax ymax`` in pixels, once
for each box.
"""

from __future__ import annotations

import csv
import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple
from xml.etree.ElementTree import ParseError

import numpy as np
from defusedxml.ElementTree import fromstring
from numpy.typing import NDArray

from dataprep.counted import counted
from dataprep.errors import (
    ConfigError,
    ObjectNotFound,
    SourceError,
    SourceNotFound,
)
from dataprep.labels.boxes import SIDES, UNREADABLE, BoxColumns
from dataprep.labels.options import BoxOptions
from dataprep.ordered import in_order
from dataprep.stores import StoreOptions, open_store

_TARS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_TABLES = (".csv", ".csv.gz", ".txt")
_PLAIN = ("filename", *SIDES, "label")
_SIZE = ("width", "height")
_KAGGLE = ["ImageId", "PredictionString"]
_DAMAGED = (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError)
_LARGEST_SIDE = 2**24  # float32 has all whole numbers up to it


class Drawn(NamedTuple):
    """The boxes of one image.

    ``width`` and ``height`` are those of ``Annotated``. ``names`` are the classes of the boxes,
    empty where none is given. ``problem`` says why the annotation could not be read.
    """

    width: int
    height: int
    sides: list[tuple[float, ...]]
    names: list[str]
    problem: str = ""


_NOTHING = Drawn(1, 1, [], [])
Annotations = list[tuple[str, Drawn]]
"""Paths of annotations, or names of images in a table, with their boxes."""


def find_boxes(
    options: BoxOptions,
    store: StoreOptions | None,
    names: Sequence[str | None],
    labels: NDArray[np.int32],
    classes: Mapping[str, int],
    note: Callable[[str], None],
) -> BoxColumns:
    """Read the boxes of images and report how many were found.

    A box without a class has the label of its image; one whose class is not in ``classes`` has -1.

    Args:
        options: where the boxes are, and how they are matched to images.
        store: how the place is reached.
        names: of the images, relative to their source; None for a row that is no image.
        labels: int32, of the images.
        classes: class name to label.
        note: called with each line for the user.

    Raises:
        ConfigError: no image has an annotation, or a match is ambiguous.
        SourceError, StoreError: the boxes cannot be read.
    """
    annotations = read_annotations(options, store)
    found = _matched(annotations, names, labels, classes, options)
    annotated = int(np.count_nonzero(np.diff(found.starts)))
    note(
        f"{options.source}: {counted(len(annotations), 'annotation')} read; {annotated:,} of "
        f"{counted(len(names) - names.count(None), 'image')} have "
        f"{counted(len(found.labels), 'box')}"
    )
    if broken := [(path, drawn.problem) for path, drawn in annotations if drawn.problem]:
        path, problem = broken[0]
        note(
            f"{counted(len(broken), 'annotation')} cannot be read, such as {path!r}: {problem}; "
            "their images have no boxes"
        )
    if unknown := int(np.count_nonzero(found.labels < 0)):
        note(
            f"{counted(unknown, 'box')} of classes that labels.json does not know: they get the "
            "label of their image"
        )
    return found


def _matched(
    annotations: Annotations,
    names: Sequence[str | None],
    labels: NDArray[np.int32],
    classes: Mapping[str, int],
    options: BoxOptions,
) -> BoxColumns:
    by_key: dict[str, list[Drawn]] = {}
    for path, drawn in annotations:
        by_key.setdefault(_key(path, options), []).append(drawn)
    counts, sides, sizes, box_labels = [0], [], [], []
    found: set[str] = set()
    for name, label in zip(names, labels.tolist(), strict=True):
        drawn = _NOTHING
        if name is not None and (matches := by_key.get(key := _key(name, options))):
            if key in found or len(matches) > 1:
                raise ConfigError(
                    f"several images or annotations have the name {key!r}: give boxes.key=path to "
                    "distinguish them by their folders"
                )
            found.add(key)
            drawn = matches[0]
        counts.append(len(drawn.sides))
        sides += drawn.sides
        sizes.append((drawn.width, drawn.height))
        for group in drawn.names:
            own = options.labels == "own" and group
            box_labels.append(classes.get(group, -1) if own else label)
    if not found:
        raise ConfigError(
            f"no image has boxes at {options.source!r}: its annotations have names such as "
            f"{next(iter(by_key))!r}, images such as {next(filter(None, names))!r} (boxes.key is "
            f"{options.key!r})"
        )
    widths, heights = np.array(sizes, np.int32).T
    return BoxColumns(
        np.cumsum(counts),
        np.array(sides, np.float32).reshape(-1, 4),
        np.array(box_labels, np.int32),
        np.ascontiguousarray(widths),
        np.ascontiguousarray(heights),
    )


def _key(name: str, options: BoxOptions) -> str:
    """Return what is the same for an image and its annotation: no extension, perhaps no folder."""
    path = PurePosixPath(name)
    return path.stem if options.key == "name" else str(path.parent / path.stem)


def read_annotations(options: BoxOptions, store: StoreOptions | None = None) -> Annotations:
    """Read all annotations at ``options.source``.

    Raises:
        SourceNotFound: nothing is there, or no annotation is in it.
        SourceError: it cannot be read.
        ConfigError: a CSV file of another form.
    """
    uri = options.source.rstrip("/")
    lower = uri.lower()
    try:
        if options.format == "csv" or (options.format == "auto" and lower.endswith(_TABLES)):
            data = _whole(uri, store)
            found = parse_csv(gzip.decompress(data) if lower.endswith(".gz") else data, options)
        else:
            in_tar = lower.endswith(_TARS)
            files = _in_tar(_whole(uri, store)) if in_tar else _in_folder(uri, store)
            found = parse_files(files)
    except ObjectNotFound as error:
        raise SourceNotFound(f"no boxes at {uri!r}: {error} (check boxes.source)") from None
    except _DAMAGED as error:
        raise SourceError(f"{uri!r} is not a whole archive: {error}") from None
    if not found:
        raise SourceNotFound(
            f"no boxes at {uri!r}: expected XML files, a tar of them, or a CSV file"
        )
    return found


def _whole(uri: str, options: StoreOptions | None) -> bytes:
    folder, slash, name = uri.rpartition("/")
    return open_store(folder or slash, options).get(name)


def _in_folder(uri: str, options: StoreOptions | None) -> Iterator[tuple[str, bytes]]:
    store = open_store(uri, options)
    keys = sorted(entry.key for entry in store.list() if _is_annotation(entry.key))
    contents = in_order(store.get, keys, 32 if "://" in uri else 0)  # concurrent reads
    return zip(keys, contents, strict=True)


def _in_tar(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield XML files, also those in inner tars, as in ILSVRC's older archives."""
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:*") as tar:
        while (member := tar.next()) is not None:
            tar.members = []  # type: ignore[attr-defined]  # it would keep all of them
            content = tar.extractfile(member) if member.isfile() else None
            if content and member.name.lower().endswith(_TARS):
                yield from _in_tar(content.read())
            elif content and _is_annotation(member.name):
                yield member.name.removeprefix("./"), content.read()


def _is_annotation(name: str) -> bool:
    path = PurePosixPath(name)
    return path.suffix.lower() == ".xml" and not path.name.startswith(".")


def parse_files(files: Iterable[tuple[str, bytes]]) -> Annotations:
    """Parse XML files, given by path and content; one that cannot be read has no boxes."""
    found: Annotations = []
    for path, data in files:
        try:
            drawn = parse_xml(data)
        except ValueError as error:
            drawn = Drawn(UNREADABLE, UNREADABLE, [], [], str(error))
        found.append((path, drawn))
    return found


def parse_xml(data: bytes) -> Drawn:
    """Parse one XML file. Boxes of an object's parts (a person's head) are left out.

    Raises:
        ValueError: not XML, with a document type, no annotation, or a box without numbers.
    """
    try:
        root = fromstring(data, forbid_dtd=True)
    except (ParseError, LookupError, ValueError, RecursionError) as error:
        raise ValueError(f"not XML, or XML with a document type: {error}") from None
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    if root.tag != "annotation":
        raise ValueError(f"<{root.tag[:40]}> is no annotation")
    drawn = Drawn(*_size([root.findtext(f"size/{side}") for side in _SIZE]), [], [])
    for item in root.iter("object"):
        for box in item.findall("bndbox"):
            drawn.sides.append(_sides([box.findtext(side) for side in SIDES]))
            drawn.names.append((item.findtext("name") or "").strip())
    return drawn


def _sides(texts: Iterable[str | None]) -> tuple[float, ...]:
    sides = tuple(float(text or "") for text in texts)
    if not all(abs(side) < _LARGEST_SIDE for side in sides):
        raise ValueError(f"{sides} are not four sides")
    return sides


def _size(texts: Iterable[str | None]) -> tuple[int, int]:
    """Return width and height in pixels; 0 and 0 where one is not given."""
    width, height = (int((text or "").strip() or 0) for text in texts)
    return (width, height) if min(width, height) > 0 else (0, 0)


def parse_csv(data: bytes, options: BoxOptions) -> Annotations:
    """Parse a CSV file: one annotation for each image, boxes in the order of the lines.

    Raises:
        ConfigError: a column is missing, or a line is no box; the error names it.
    """
    name, units, columns = options.source, options.units, options.columns.model_dump()
    rows = _csv_rows(data, name)
    header = rows[0][1]
    if header == _KAGGLE:
        rows, units = list(_kaggle_rows(rows[1:], name)), "pixels"
        header = keys = list(_PLAIN)
    elif any(cell.replace(".", "").isdecimal() for cell in header[1:5]):
        keys = list(_PLAIN[: len(header)])
    else:
        size = {side: side for side in _SIZE if units == "pixels"}
        by_column = {column: key for key, column in {**size, **columns}.items()}
        rows, keys = rows[1:], [by_column.get(column, "") for column in header]
    if not {*_PLAIN[:5]} <= {*keys} or len(keys) != len(header):
        raise ConfigError(
            f"{name} begins with {','.join(header)!r}: expected a header with the columns "
            f"{','.join(columns[key] for key in _PLAIN[:5])}, as boxes.columns names them, or no "
            "header and these five columns, or six with the label"
        )
    found: dict[str, Drawn] = {}
    for line, cells in rows:
        try:
            _add_box(found, dict(zip(keys, cells, strict=True)), units)
        except ValueError as error:
            raise ConfigError(f"{name}, line {line:,}: {error}") from None
    large = [max(four) > 1.5 for drawn in found.values() for four in drawn.sides]
    if units == "relative" and 2 * sum(large) > len(large):
        raise ConfigError(
            f"{name}: its boxes look like pixels, not like shares of the image: give "
            "boxes.units=pixels"
        )
    return list(found.items())


def _csv_rows(data: bytes, name: str) -> list[tuple[int, list[str]]]:
    """Return the number and cells of each line that is not blank."""
    text = data.decode("utf-8-sig", "surrogateescape")
    reader = csv.reader(io.StringIO(text), skipinitialspace=True, strict=True)
    rows: list[tuple[int, list[str]]] = []
    try:
        for cells in filter(any, reader):
            rows.append((reader.line_num, [cell.strip() for cell in cells]))
            if len(cells) != len(rows[0][1]):
                raise csv.Error(f"{len(cells)} columns, the first line has {len(rows[0][1])}")
    except csv.Error as error:
        raise ConfigError(f"{name}, line {reader.line_num:,}: {error}") from None
    if not rows:
        raise ConfigError(f"{name} has blank lines only: expected a CSV file of boxes")
    return rows


def _kaggle_rows(
    rows: Iterable[tuple[int, list[str]]], name: str
) -> Iterator[tuple[int, list[str]]]:
    for line, (image, prediction) in rows:
        words = prediction.split()
        if len(words) % 5:
            raise ConfigError(
                f"{name}, line {line:,}: expected a synset and four sides for each box"
            )
        for i in range(0, len(words), 5):
            yield line, [image, *words[i + 1 : i + 5], words[i]]


def _add_box(found: dict[str, Drawn], cells: Mapping[str, str], units: str) -> None:
    sizes = [cells[side] for side in _SIZE if side in cells]
    size = _size(sizes) if len(sizes) == 2 else {"relative": (1, 1), "pixels": (0, 0)}[units]
    drawn = found.setdefault(cells["filename"], Drawn(*size, [], []))
    if drawn[:2] != size:
        raise ValueError(f"its image has the size {size} here and {drawn[:2]} before")
    drawn.sides.append(_sides(cells[side] for side in SIDES))
    drawn.names.append(cells.get("label", ""))
