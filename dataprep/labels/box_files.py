"""Read bounding boxes and match them to images.

Boxes are in a folder of XML files, in a tar of XML files, or in a CSV file, on a disk or on S3.

XML files have the form of ILSVRC and Pascal VOC. An XML file has the same name as its image, except
for the extension. Its element ``<filename>`` is not used, because it is ``%s`` in some files of
ILSVRC.

CSV files have one of three forms:

- TensorFlow's ``filename,xmin,ymin,xmax,ymax[,label]``, without a header.
- A header that names the columns.
- Kaggle's ``ImageId,PredictionString``. The second column has ``synset xmin ymin xmax ymax`` in
  pixels for each box.
"""

from __future__ import annotations

import csv
import gzip
import io
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

from dataprep.errors import ConfigError, ObjectNotFound, SourceError, SourceNotFound
from dataprep.labels.boxes import SIDES, BoxColumns
from dataprep.labels.options import BoxOptions
from dataprep.labels.tar_files import files_in_tar
from dataprep.message_text import counted
from dataprep.stores import ObjectInfo, Store, StoreOptions, open_store
from dataprep.stores.protocol import BROKEN, LEAVES
from dataprep.threaded_map import in_order

_TARS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_TABLES = (".csv", ".csv.gz", ".txt")
_COLUMNS = ("filename", *SIDES, "label")
_KAGGLE_HEADER = ["ImageId", "PredictionString"]
_ARCHIVE_ERRORS = (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error)
"""The exceptions that reading a damaged tar or gzip file raises."""

_CONCURRENT_REQUESTS = 32
# float32 can represent all smaller whole numbers. The size of an image has the same limit.
_SIDE_LIMIT = 2**24


class Annotation(NamedTuple):
    """The boxes of one image, as a file contains them.

    Attributes:
        width, height: the size of the annotated image, as in ``AnnotatedImage``: 1 x 1 if the
            sides are shares of the image, and 0 x 0 if they are pixels and the size is unknown.
        boxes: the class and the sides of each box: xmin, ymin, xmax and ymax, in the units of the
            size. The class may be empty.
    """

    width: int
    height: int
    boxes: list[tuple[str, tuple[float, ...]]]


_NO_BOXES = Annotation(1, 1, [])
Annotations = list[tuple[str, Annotation]]
"""Pairs of a name and an annotation: the path of an XML file, or the name of an image in a CSV."""

ListFiles = Callable[[Store], Iterable[ObjectInfo]]
"""A function that lists all files of a store. It decides which links are followed."""


def _list_files(store: Store) -> Iterable[ObjectInfo]:
    """List the files as the store does it."""
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
    """Read the boxes of images, and report how many images have boxes.

    A box gets the label of its own class. If this class is not in ``classes``, the label is -1,
    which ``convert_boxes`` replaces with the label of the image. A box without a class gets the
    label of its image. If ``options.labels`` is ``image``, every box gets the label of its image.

    Args:
        options: where the boxes are, and how they are matched to images.
        store: options of the store that has the boxes; None for the defaults.
        names: the name of each image, relative to its source; None for a row without an image.
        labels: the label of each row (int32).
        classes: the label of each class, by its name.
        note: called with each message for the user.
        list_files: lists the files of a folder of annotations.

    Returns:
        The boxes, with a row for each of ``names``.

    Raises:
        ConfigError: no image has an annotation, a match is ambiguous, or a CSV file does not have
            the expected form.
        SourceError, StoreError: the boxes cannot be read.
    """
    annotations = read_annotations(options, store, list_files)
    annotation_by_row = _match(names, annotations, options)
    ends = [0]
    sides: list[tuple[float, ...]] = []
    sizes: list[tuple[int, int]] = []
    box_labels: list[int] = []
    for annotation, label in zip(annotation_by_row, labels.tolist(), strict=True):
        for class_name, box_sides in annotation.boxes:
            has_own_class = options.labels == "own" and class_name
            box_labels.append(classes.get(class_name, -1) if has_own_class else label)
            sides.append(box_sides)
        ends.append(len(sides))
        sizes.append((annotation.width, annotation.height))
    image_count = sum(bool(name) for name in names)
    # The end of an image without boxes is the same as the end of the image before it.
    images_with_boxes = len(set(ends)) - 1
    note(
        f"{options.source}: {counted(len(annotations), 'annotation')} read; "
        f"{images_with_boxes:,} of {counted(image_count, 'image')} have "
        f"{counted(len(sides), 'box')}"
    )
    unknown_classes = box_labels.count(-1)
    if unknown_classes:
        note(
            f"{counted(unknown_classes, 'box')} of classes that are not in labels.json: they get "
            "the label of their image"
        )
    return BoxColumns.from_lists(ends, sides, box_labels, sizes)


def _match(
    names: Sequence[str | None], annotations: Annotations, options: BoxOptions
) -> list[Annotation]:
    """The annotation of each row; ``_NO_BOXES`` for a row without an annotation.

    Args:
        names: the name of the image of each row; None for a row without an image.
        annotations: all annotations.
        options: how annotations are matched to images.

    Raises:
        ConfigError: no image has an annotation, or a match is ambiguous.
    """
    annotations_by_key: dict[str, list[Annotation]] = {}
    for path, annotation in annotations:
        annotations_by_key.setdefault(_match_key(path, options), []).append(annotation)
    matched: list[Annotation] = []
    matched_keys: set[str] = set()
    for name in names:
        key = _match_key(name or "", options)
        if not name or key not in annotations_by_key:
            matched.append(_NO_BOXES)
            continue
        if len(annotations_by_key[key]) > 1 or key in matched_keys:
            raise ConfigError(
                f"several images or annotations have the name {key!r}: give boxes.key=path to "
                "distinguish them by their folders"
            )
        matched_keys.add(key)
        matched.append(annotations_by_key[key][0])
    if not matched_keys:
        annotation_name = next(iter(annotations_by_key))
        image_name = next(name for name in names if name)
        raise ConfigError(
            f"no image has boxes at {options.source!r}: its annotations have names such as "
            f"{annotation_name!r}, images such as {image_name!r} (boxes.key is {options.key!r})"
        )
    return matched


def _match_key(name: str, options: BoxOptions) -> str:
    """The base name or path without extension, which an image and its annotation share."""
    path = PurePosixPath(name)
    if options.key == "name":
        return path.stem
    return str(path.parent / path.stem)


def read_annotations(
    options: BoxOptions, store: StoreOptions | None = None, list_files: ListFiles = _list_files
) -> Annotations:
    """Read all annotations at ``options.source``.

    Args:
        options: where the boxes are, and their format.
        store: options of the store that has the boxes; None for the defaults.
        list_files: lists the files of a folder of annotations.

    Raises:
        SourceNotFound: the source does not exist, or has no annotation.
        SourceError: an archive or an XML file is damaged, or a link is broken or is not followed.
        ConfigError: a CSV file does not have the expected form.
        StoreError: the source cannot be read.
    """
    uri = options.source.rstrip("/")
    lower = uri.lower()
    try:
        if options.format == "csv" or (options.format == "auto" and lower.endswith(_TABLES)):
            data = _read_file(uri, store)
            if lower.endswith(".gz"):
                data = gzip.decompress(data)
            annotations = parse_csv(data, options)
        elif _is_tar(uri):
            annotations = _parse_files(_files_in_tar(_read_file(uri, store)))
        else:
            opened = open_store(uri, store)
            entries = list(list_files(opened))
            _refuse_links(uri, entries)
            keys = sorted(entry.key for entry in entries if _is_annotation(entry.key))
            concurrent_reads = _CONCURRENT_REQUESTS if "://" in uri else 0
            contents = in_order(opened.get, keys, concurrent_reads)
            annotations = _parse_files(zip(keys, contents, strict=True))
    except ObjectNotFound:
        annotations = []
    except _ARCHIVE_ERRORS as error:
        raise SourceError(f"{uri!r} is a damaged archive: {error}") from None
    if not annotations:
        raise SourceNotFound(
            f"no boxes at {uri!r}: boxes.source must be a folder of XML files, a tar of them, or a "
            "CSV file"
        )
    return annotations


def _refuse_links(uri: str, entries: Iterable[ObjectInfo]) -> None:
    """Refuse broken links and links that are not followed, because boxes would be missing."""
    for entry in entries:
        is_hidden = entry.key.startswith(".") or "/." in entry.key
        if entry.problem in (BROKEN, LEAVES) and not is_hidden:
            raise SourceError(
                f"{uri}/{entry.key} of boxes.source: {entry.problem}, so that boxes would be "
                "missing: restore its target, or remove the link"
            )


def _read_file(uri: str, options: StoreOptions | None) -> bytes:
    """Read one file at a path or URI. Raises StoreError."""
    folder, slash, name = uri.rpartition("/")
    return open_store(folder or slash, options).get(name)


def _files_in_tar(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the content of each XML file in a tar.

    Inner tars are read too, because older archives of ILSVRC contain them.

    Raises:
        tarfile.TarError: a tar is damaged or truncated.
    """
    for path, content in files_in_tar(data, lambda name: _is_tar(name) or _is_annotation(name)):
        if _is_tar(path):
            yield from _files_in_tar(content)
        else:
            yield path.removeprefix("./"), content


def _is_tar(name: str) -> bool:
    """Whether a file has the name of a tar."""
    return name.lower().endswith(_TARS)


def _is_annotation(name: str) -> bool:
    """Whether a file is an XML file that is not hidden."""
    path = PurePosixPath(name)
    return path.suffix.lower() == ".xml" and not path.name.startswith(".")


def _parse_files(files: Iterable[tuple[str, bytes]]) -> Annotations:
    """Parse XML files.

    Args:
        files: the path and the content of each file.

    Raises:
        SourceError: a file is not an annotation.
    """
    annotations: Annotations = []
    for path, data in files:
        try:
            annotations.append((path, parse_xml(data)))
        except ValueError as error:
            raise SourceError(f"{path!r} of boxes.source: {error}; repair or remove it") from None
    return annotations


def parse_xml(data: bytes) -> Annotation:
    """Parse one XML file. Boxes of the parts of an object, such as a head, are left out.

    Raises:
        ValueError: the file is not XML, has a document type, is not an annotation, or has a size
            that is not a whole number or is too large, or a side that is not a number or is too
            large.
    """
    try:
        root = fromstring(data, forbid_dtd=True)
    except (ParseError, LookupError, ValueError, RecursionError) as error:
        raise ValueError(f"not XML, or XML with a document type: {error}") from None
    if root.tag != "annotation":
        raise ValueError(f"<{root.tag[:40]}> is not an annotation")
    size = _size(root.findtext("size/width", ""), root.findtext("size/height", ""))
    annotation = Annotation(*size, [])
    for item in root.iter("object"):
        class_name = item.findtext("name", "").strip()
        for box in item.findall("bndbox"):
            sides = _sides([box.findtext(side, "") for side in SIDES])
            annotation.boxes.append((class_name, sides))
    return annotation


def _sides(texts: Iterable[str]) -> tuple[float, ...]:
    """The sides of a box as numbers.

    Raises:
        ValueError: a side is not a number, or its absolute value is not below ``_SIDE_LIMIT``.
    """
    sides = tuple(float(text) for text in texts)
    if not all(abs(side) < _SIDE_LIMIT for side in sides):
        raise ValueError(f"{sides} are not the sides of a box")
    return sides


def _size(width: str, height: str) -> tuple[int, int]:
    """The width and height in pixels; 0 and 0 if one of them is missing or is not positive.

    Raises:
        ValueError: one of them is not a whole number, or is not below ``_SIDE_LIMIT``.
    """
    size = int(width.strip() or 0), int(height.strip() or 0)
    if max(size) >= _SIDE_LIMIT:
        raise ValueError(f"the size {size[0]} x {size[1]} of the image is too large")
    return size if min(size) > 0 else (0, 0)


def parse_csv(data: bytes, options: BoxOptions) -> Annotations:
    """Parse a CSV file. The lines of an image form one annotation, in the order of the lines.

    Raises:
        ConfigError: a column is missing, or a line is not a box; the message names the line. Or the
            sides should be shares of the image, but the median of the largest sides is above 1.5.
    """
    text = io.StringIO(data.decode("utf-8-sig", "surrogateescape"))
    reader = csv.reader(text, skipinitialspace=True, strict=True)
    annotations: dict[str, Annotation] = {}
    try:
        for name, size, boxes in _rows(filter(any, reader), options):
            annotation = annotations.setdefault(name, Annotation(*size, []))
            for class_name, *sides in boxes:
                annotation.boxes.append((class_name, _sides(sides)))
    except (csv.Error, ValueError) as error:
        raise ConfigError(f"{options.source}, line {reader.line_num:,}: {error}") from None
    largest_sides = []
    for annotation in annotations.values():
        # With a width of 1, the sides should be shares of the image.
        if annotation.width == 1:
            largest_sides += [max(sides) for _, sides in annotation.boxes]
    if largest_sides and np.median(largest_sides) > 1.5:
        raise ConfigError(
            f"{options.source}: its boxes look like pixels, not like shares of the image: give "
            "boxes.units=pixels"
        )
    return list(annotations.items())


def _rows(
    lines: Iterator[list[str]], options: BoxOptions
) -> Iterator[tuple[str, tuple[int, int], list[list[str]]]]:
    """Yield the image, its size, and its boxes for each line.

    The size is as in ``Annotation``. A box is a list of its class and its four sides, as texts.

    Raises:
        ValueError: there is no header and the first line has fewer than five columns; a header does
            not name the required columns; a line has another number of columns than the first line;
            or a size or the boxes of Kaggle's second column do not have the expected form.
    """
    header = [cell.strip() for cell in next(lines, [])]
    if header == _KAGGLE_HEADER:
        for cells in lines:
            _require_columns(cells, len(_KAGGLE_HEADER))
            image, prediction = cells
            yield image.strip(), (0, 0), _kaggle_boxes(prediction)
        return
    columns = options.columns.model_dump()
    # Without a header, the first line has the four sides of a box after the name.
    has_header = not any(cell.replace(".", "").isdecimal() for cell in header[1:5])
    if not has_header:
        lines = chain([header], lines)
        header = list(_COLUMNS[: len(header)])
        columns = {name: name for name in _COLUMNS}
    image, *sides, label = [columns[name] for name in _COLUMNS]
    if not {image, *sides} <= set(header):
        raise ValueError(
            f"expected a header with the columns {','.join([image, *sides])}, as boxes.columns "
            "names them, or no header and these five columns, or six with the label"
        )
    for cells in lines:
        _require_columns(cells, len(header))
        cell_by_column = {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
        size = (1, 1)
        if options.units == "pixels":
            size = _size(cell_by_column.get("width", ""), cell_by_column.get("height", ""))
        box = [cell_by_column.get(label, "")] + [cell_by_column[side] for side in sides]
        yield cell_by_column[image], size, [box]


def _require_columns(cells: Sequence[str], count: int) -> None:
    """Raise ValueError if a line does not have this number of columns."""
    if len(cells) != count:
        raise ValueError(f"{counted(len(cells), 'column')}, expected {count}")


def _kaggle_boxes(prediction: str) -> list[list[str]]:
    """The synset and the four sides of each box in Kaggle's second column.

    Raises:
        ValueError: the number of words is not a multiple of five.
    """
    cells = prediction.split()
    if len(cells) % 5:
        raise ValueError("expected a synset and four sides for each box")
    return [cells[start : start + 5] for start in range(0, len(cells), 5)]
