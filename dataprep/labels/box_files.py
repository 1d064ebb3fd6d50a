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
from itertools import chain
from pathlib import PurePosixPath
from typing import NamedTuple
from xml.etree.ElementTree import ParseError

import numpy as np
from defusedxml.ElementTree import fromstring
from numpy.typing import NDArray

from dataprep.counted import counted
from dataprep.errors import ConfigError, ObjectNotFound, SourceError, SourceNotFound
from dataprep.labels.boxes import SIDES, BoxColumns
from dataprep.labels.options import BoxOptions
from dataprep.ordered import in_order
from dataprep.stores import ObjectInfo, Store, StoreOptions, open_store
from dataprep.stores.protocol import BROKEN, LEAVES

_TARS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_TABLES = (".csv", ".csv.gz", ".txt")
_COLUMNS = ("filename", *SIDES, "label")
_KAGGLE = ["ImageId", "PredictionString"]
_DAMAGED = (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError)
_LARGEST_SIDE = 2**24  # float32 has all whole numbers up to it


class Drawn(NamedTuple):
    """The boxes of one image: the class of each, empty where none is given, and its sides.

    ``width`` and ``height`` are those of ``Annotated``.
    """

    width: int
    height: int
    boxes: list[tuple[str, tuple[float, ...]]]


_NOTHING = Drawn(1, 1, [])
Annotations = list[tuple[str, Drawn]]
"""Paths of annotations, or names of images in a table, with their boxes."""

ListFiles = Callable[[Store], Iterable[ObjectInfo]]
"""Lists all files of a store, with links followed as the caller wants it."""


def _list_files(store: Store) -> Iterable[ObjectInfo]:
    return store.list()


def find_boxes(
    options: BoxOptions,
    store: StoreOptions | None,
    names: Sequence[str | None],
    labels: NDArray[np.int32],
    classes: Mapping[str, int],
    note: Callable[[str], None],
    list_files: ListFiles = _list_files,
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
        list_files: lists the files of a folder of annotations.

    Raises:
        ConfigError: no image has an annotation, or a match is ambiguous.
        SourceError, StoreError: the boxes cannot be read.
    """
    annotations = read_annotations(options, store, list_files)
    by_key: dict[str, list[Drawn]] = {}
    for path, drawn in annotations:
        by_key.setdefault(_key(path, options), []).append(drawn)
    ends, sides, sizes, box_labels = [0], [], [], []
    found: set[str] = set()
    for name, label in zip(names, labels.tolist(), strict=True):
        drawn = _NOTHING
        key = _key(name or "", options)
        if name and key in by_key:
            drawn, *others = by_key[key]
            if others or key in found:
                raise ConfigError(
                    f"several images or annotations have the name {key!r}: give boxes.key=path to "
                    "distinguish them by their folders"
                )
            found.add(key)
        for group, four in drawn.boxes:
            own = options.labels == "own" and group
            box_labels.append(classes.get(group, -1) if own else label)
            sides.append(four)
        ends.append(len(sides))
        sizes.append(drawn[:2])
    images = [name for name in names if name]
    if not found:
        raise ConfigError(
            f"no image has boxes at {options.source!r}: its annotations have names such as "
            f"{next(iter(by_key))!r}, images such as {images[0]!r} (boxes.key is {options.key!r})"
        )
    annotated = len(set(ends)) - 1  # images without boxes end where the one before ends
    note(
        f"{options.source}: {counted(len(annotations), 'annotation')} read; {annotated:,} of "
        f"{counted(len(images), 'image')} have {counted(len(sides), 'box')}"
    )
    if unknown := box_labels.count(-1):
        note(
            f"{counted(unknown, 'box')} of classes that labels.json does not know: they get the "
            "label of their image"
        )
    return BoxColumns.made(ends, sides, box_labels, sizes)


def _key(name: str, options: BoxOptions) -> str:
    """Return what is the same for an image and its annotation: no extension, perhaps no folder."""
    path = PurePosixPath(name)
    return path.stem if options.key == "name" else str(path.parent / path.stem)


def read_annotations(
    options: BoxOptions, store: StoreOptions | None = None, list_files: ListFiles = _list_files
) -> Annotations:
    """Read all annotations at ``options.source``.

    Raises:
        SourceNotFound: nothing is there, or no annotation is in it.
        SourceError: it cannot be read, or a link leads to nothing or is not followed.
        ConfigError: a CSV file of another form.
    """
    uri = options.source.rstrip("/")
    lower = uri.lower()
    try:
        if options.format == "csv" or (options.format == "auto" and lower.endswith(_TABLES)):
            data = _whole(uri, store)
            found = parse_csv(gzip.decompress(data) if lower.endswith(".gz") else data, options)
        elif lower.endswith(_TARS):
            found = _parsed(_in_tar(_whole(uri, store)))
        else:
            opened = open_store(uri, store)
            entries = list(list_files(opened))
            _refuse_links(uri, entries)
            keys = sorted(entry.key for entry in entries if _is_annotation(entry.key))
            contents = in_order(opened.get, keys, 32 if "://" in uri else 0)  # concurrent reads
            found = _parsed(zip(keys, contents, strict=True))
    except ObjectNotFound:
        found = []
    except _DAMAGED as error:
        raise SourceError(f"{uri!r} is not a whole archive: {error}") from None
    if not found:
        raise SourceNotFound(
            f"no boxes at {uri!r}: boxes.source is XML files, a tar of them, or a CSV file"
        )
    return found


def _refuse_links(uri: str, entries: Iterable[ObjectInfo]) -> None:
    """Refuse links to nothing, and links that ``entries`` do not follow: boxes would be missing."""
    for entry in entries:
        is_hidden = entry.key.startswith(".") or "/." in entry.key
        if entry.problem in (BROKEN, LEAVES) and not is_hidden:
            raise SourceError(
                f"{uri}/{entry.key} of boxes.source: {entry.problem}, so that boxes would be "
                "missing: bring its target back, or remove the link"
            )


def _whole(uri: str, options: StoreOptions | None) -> bytes:
    folder, slash, name = uri.rpartition("/")
    return open_store(folder or slash, options).get(name)


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


def _parsed(files: Iterable[tuple[str, bytes]]) -> Annotations:
    """Parse XML files, given by path and content."""
    found: Annotations = []
    for path, data in files:
        try:
            found.append((path, parse_xml(data)))
        except ValueError as error:
            raise SourceError(f"{path!r} of boxes.source: {error}; mend or remove it") from None
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
    if root.tag != "annotation":
        raise ValueError(f"<{root.tag[:40]}> is no annotation")
    size = _size(root.findtext("size/width", ""), root.findtext("size/height", ""))
    drawn = Drawn(*size, [])
    for item in root.iter("object"):
        group = item.findtext("name", "").strip()
        for box in item.findall("bndbox"):
            sides = _sides(box.findtext(side, "") for side in SIDES)
            drawn.boxes.append((group, sides))
    return drawn


def _sides(texts: Iterable[str]) -> tuple[float, ...]:
    sides = tuple(map(float, texts))
    if not all(abs(side) < _LARGEST_SIDE for side in sides):
        raise ValueError(f"{sides} are not four sides")
    return sides


def _size(width: str, height: str) -> tuple[int, int]:
    """Return width and height in pixels; 0 and 0 where one is not given."""
    size = int(width.strip() or 0), int(height.strip() or 0)
    return size if min(size) > 0 else (0, 0)


def parse_csv(data: bytes, options: BoxOptions) -> Annotations:
    """Parse a CSV file: one annotation for each image, boxes in the order of the lines.

    Raises:
        ConfigError: a column is missing, or a line is no box; the error names it.
    """
    text = io.StringIO(data.decode("utf-8-sig", "surrogateescape"))
    reader = csv.reader(text, skipinitialspace=True, strict=True)
    found: dict[str, Drawn] = {}
    try:
        for name, size, boxes in _rows(filter(any, reader), options):
            drawn = found.setdefault(name, Drawn(*size, []))
            for group, *sides in boxes:
                drawn.boxes.append((group, _sides(sides)))
    except (csv.Error, ValueError) as error:
        raise ConfigError(f"{options.source}, line {reader.line_num:,}: {error}") from None
    relative = [drawn.boxes for drawn in found.values() if drawn.width == 1]
    largest = [max(sides) for _, sides in chain(*relative)]
    if largest and np.median(largest) > 1.5:
        raise ConfigError(
            f"{options.source}: its boxes look like pixels, not like shares of the image: give "
            "boxes.units=pixels"
        )
    return list(found.items())


def _rows(
    lines: Iterator[list[str]], options: BoxOptions
) -> Iterator[tuple[str, tuple[int, int], list[list[str]]]]:
    """Yield image, its size, and class and sides of each box, for each line of a CSV file."""
    header = [cell.strip() for cell in next(lines, [])]
    if header == _KAGGLE:
        for image, prediction in lines:
            words = prediction.split()
            if len(words) % 5:
                raise ValueError("expected a synset and four sides for each box")
            yield image.strip(), (0, 0), [words[i : i + 5] for i in range(0, len(words), 5)]
        return
    columns = options.columns.model_dump()
    if any(cell.replace(".", "").isdecimal() for cell in header[1:5]):
        lines = chain([header], lines)
        header = list(_COLUMNS[: len(header)])
        columns = dict(zip(_COLUMNS, _COLUMNS, strict=True))
    image, *sides, label = (columns[name] for name in _COLUMNS)
    if not {image, *sides} <= set(header):
        raise ValueError(
            f"expected a header with the columns {','.join([image, *sides])}, as boxes.columns "
            "names them, or no header and these five columns, or six with the label"
        )
    for cells in lines:
        if len(cells) != len(header):
            raise ValueError(f"{len(cells)} columns, expected {len(header)}")
        row = {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
        size = (1, 1)
        if options.units == "pixels":
            size = _size(row.get("width", ""), row.get("height", ""))
        yield row[image], size, [[row.get(label, ""), *(row[side] for side in sides)]]
