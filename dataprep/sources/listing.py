"""A listing as a source: a CSV, TSV, Parquet or ``.lst`` file of paths and labels.

Text tables follow RFC 4180: a field in double quotes may hold delimiters, line ends and doubled
quotes. Paths are bytes and need not be UTF-8; class names must be. A ``.lst`` has a line
``index TAB label[ TAB label…] TAB path`` an image (MXNet, ``tools/im2rec.py``). Our own ``.lst``
files escape names as ``dataprep.names`` does; im2rec does not.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
import posixpath
import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dataprep.credentials import without_credentials
from dataprep.errors import (
    DataprepError,
    ObjectNotFound,
    PermissionRefused,
    SourceError,
    SourceNotFound,
)
from dataprep.names import CODEC, by_bytes, escape, unescape
from dataprep.samples import readable
from dataprep.sources.class_names import (
    Classes,
    by_name,
    by_number,
    first_labels,
    read_class_names,
    refuse_detection,
)
from dataprep.sources.classes import CLUTTER, is_system
from dataprep.sources.files import (
    MISSING,
    disk_paths,
    read_error,
    reads_at_once,
    sizes_of,
    split_uri,
)
from dataprep.sources.options import ListingOptions
from dataprep.sources.other_kinds import advice_for, begins_as_image
from dataprep.sources.protocol import Listing, Located, Problem, Problems
from dataprep.stores import Store, StoreOptions, open_store

PATH_COLUMNS = ("path", "filename", "file", "image")
LABEL_COLUMNS = ("label", "class", "synset")
LEAVES = "its path leaves the root of the listing"
_LOOKED_AT = 100
_MOST_FOLDERS = 16
_SHOWN_BYTES = 80

_FORMATS = {
    "csv": "csv",
    "tsv": "tsv",
    "parquet": "parquet",
    "lst": "lst",
    "tab": "tsv",
    "pq": "parquet",
}
_DELIMITERS = {"csv": ",", "tsv": "\t", "lst": "\t"}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_ON_S3 = re.compile(r"s3://[^/@]+/.+", re.DOTALL)
# Keys may hold question marks, and names of crawled images do.
_SIGNED = re.compile(
    r"[?&](x-amz-(signature|credential|security-token)|awsaccesskeyid)=", re.IGNORECASE
)
_WHOLE = re.compile(r"[+-]?(?:0|[1-9][0-9]*)(?:\.0*)?")
_is_quoted = re.compile(r'".*"', re.DOTALL).fullmatch
_PLAIN_BACKSLASH = re.compile(rb"(?:^|[^\\])(?:\\\\)*\\(?!\\|x[0-9a-f]{2})")


class ListingSource:
    """The images that a listing names, local, on S3 or both."""

    only_images = True

    def __init__(
        self, uri: str, options: StoreOptions | None = None, section: ListingOptions | None = None
    ) -> None:
        folder, self._file = split_uri(uri)
        self._options = options or StoreOptions()
        self._section = section or ListingOptions()
        self._folder = _store(folder, self._options).uri
        self._root = _store(self._section.root or folder, self._options).uri
        self.concurrency = reads_at_once(self._store(""))
        self._disk_paths: Sequence[str] = []

    @property
    def uri(self) -> str:
        """The address of the listing."""
        return f"{self._folder.rstrip('/')}/{self._file}"

    def disk_paths(self) -> Sequence[str]:
        """The folders on a disk in which the images are that ``list`` found.

        Of images with relative paths that is the folder where these begin.
        """
        return self._disk_paths

    def __getstate__(self) -> dict[str, Any]:
        # Another process may run in another folder.
        absolute = {"_folder": absolute_uri(self._folder), "_root": absolute_uri(self._root)}
        return {**self.__dict__, **absolute}

    def read(self, item: Located) -> bytes:
        """One image's bytes."""
        root, key = split_name(item.name)
        store = self._store(root)
        try:
            return store.get(key)
        except (ObjectNotFound, PermissionRefused) as error:
            raise read_error(error, store, key, root or self._root) from None

    def list(self) -> Listing:
        """All rows, sorted by the bytes of their names; a repeated path keeps its first row."""
        try:
            data = self._store(self._folder).get(self._file)
        except ObjectNotFound:
            raise SourceNotFound(
                f"no listing at {self.uri!r} (check --source){self._advice()}"
            ) from None
        except OSError as error:
            raise SourceError(f"cannot read {self.uri}: {error}") from None
        paths, labels, numeric = parse(data, self._file, self._section)
        if not paths:
            raise SourceNotFound(f"{self.uri} lists nothing")
        reasons: dict[int, str] = {}
        classes, values = self._classes(labels, reasons, numeric=numeric)
        root = absolute_uri(self._root)  # only for comparison: what is relative stays so
        names: list[str] = []
        first: dict[str, int] = {}
        problems: Problems = {}
        for row, path in enumerate(paths):
            name, reason = place_of(path, f"{root.rstrip('/')}/")
            names.append(name)
            before = first.setdefault(name, row)
            if reason:
                reasons[row] = reason
            elif is_system(name):
                problems[row] = Problem("skipped", CLUTTER)
            elif classes.names[before] != classes.names[row]:
                problems[row] = Problem("failed", "listed before with another label")
            elif before != row:
                problems[row] = Problem("skipped", "listed before")
        problems |= {row: Problem("failed", reason) for row, reason in reasons.items()}
        sizes = self._sizes(names, problems)
        samples = [name for row, name in enumerate(names) if row not in problems]
        self._disk_paths = self._folders_of(samples)
        return Listing.sorted(
            names,
            sizes,
            classes.names,
            problems,
            values=values,
            label_space=classes.space,
            notes=classes.notes,
            form="a listing",
        )

    def _classes(
        self, labels: Sequence[Sequence[str]], reasons: dict[int, str], *, numeric: bool
    ) -> tuple[Classes, NDArray[np.float32] | None]:
        """The class of each row, and all labels where rows have several.

        Rows without a class join ``reasons``. Where there is no column of labels none has one.
        """
        names_file = self._section.class_names
        given = read_class_names(names_file, self._options) if names_file else None
        if not any(labels):
            return Classes([""] * len(labels)), None
        if not numeric:
            return by_name([row[0] for row in labels], given, reasons, self._file), None
        figures = _as_numbers(labels, self._file)
        refuse_detection(figures, self._file)
        numbers, values = first_labels(figures, reasons)
        keep = values is not None
        return by_number(numbers, len(labels), given, reasons, "listing", keep=keep), values

    def _advice(self) -> str:
        """Which kind the files call for where the source is a folder; else empty."""
        with contextlib.suppress(OSError, DataprepError):
            entries = islice(_store(self.uri, self._options).list(), _LOOKED_AT)
            return advice_for(entry.key for entry in entries)
        return ""

    def _sizes(self, names: Sequence[str], problems: Problems) -> Sequence[int]:
        """Bytes of each file; what is not there joins ``problems``."""
        by_root: dict[str, list[int]] = {}
        for row, name in enumerate(names):
            if row not in problems:
                by_root.setdefault(split_name(name)[0], []).append(row)
        sizes = [0] * len(names)
        for root, rows in by_root.items():
            store = self._store(root)
            self.concurrency = max(self.concurrency, reads_at_once(store))
            found = sizes_of(store, [split_name(names[row])[1] for row in rows])
            for row, size in zip(rows, found, strict=True):
                if isinstance(size, str):
                    problems[row] = Problem("failed", size)
                else:
                    sizes[row] = size
        missing = [row for row, problem in problems.items() if problem.reason == MISSING]
        if missing and len(problems) == len(names):
            raise SourceNotFound(
                f"nothing is there of what {self.uri} lists, such as "
                f"{escape(names[min(missing)])!r}: relative paths begin at {self._root}, or where "
                "--set listing.root=FOLDER says"
            )
        return sizes

    def _folders_of(self, names: Sequence[str]) -> Sequence[str]:
        """The folders on a disk that have these images, a few at most."""
        roots = {split_name(name)[0] for name in names}
        below_root = disk_paths(self._store("")) if "" in roots else ()
        return [*below_root, *_upper_folders(names)]

    def _store(self, root: str) -> Store:
        return _store(root or self._root, self._options)


def _upper_folders(names: Iterable[str]) -> list[str]:
    """The folders of those paths that are absolute; where they are many, folders above them.

    They are as deep as they can be, since what is mounted on one machine alone may be deep too.
    """
    parents = {name.rpartition("/")[0] for name in names if name.startswith("/")}
    folders = {tuple(parent.split("/")) for parent in parents}
    depth = max(map(len, folders), default=0)
    while len(folders) > _MOST_FOLDERS and depth > 2:
        depth -= 1
        folders = {parts[:depth] for parts in folders}
    return by_bytes("/".join(parts) or "/" for parts in folders)


@lru_cache(maxsize=64)
def _store(uri: str, options: StoreOptions) -> Store:
    """One store a process and root: a client of S3 takes 0.2 s to make."""
    return open_store(uri, options)


def absolute_uri(uri: str) -> str:
    """An address that means the same in every folder."""
    return uri if _SCHEME.match(uri) else os.path.abspath(uri)  # noqa: PTH100


def parse(
    data: bytes, name: str, options: ListingOptions
) -> tuple[list[str], list[list[str]], bool]:
    """The rows of a listing that is called ``name``.

    Returns:
        The paths; the labels of each as texts, empty where one is missing; and whether labels are
        numbers, since there are several in a row or all are whole.

    Raises:
        SourceError: it is no such table, or lacks a column. The error names the row.
    """
    suffix = name.rpartition(".")[2].lower()
    kind = _FORMATS.get(suffix) if options.format == "auto" else options.format
    escaped = options.escaped
    rows: Iterable[Sequence[Any]]
    if kind == "parquet":
        rows = _parquet_rows(data, name, options)
    elif kind:
        rows = _text_rows(data, name, kind, options)
    else:
        first = data[:_SHOWN_BYTES].decode(*CODEC).lstrip().partition("\n")[0].strip()
        raise SourceError(
            f"{name}: .csv, .tsv, .parquet or .lst is expected; where the file is one of "
            "these under another name, say which with --set listing.format=csv. Its first line is "
            f"{escape(first)!r}: lines of a path and a label with a space between them are read "
            "with --set listing.format=csv --set listing.delimiter=' ' --set listing.header=false"
        )
    if kind == "lst" and escaped is None:
        escaped = _PLAIN_BACKSLASH.search(data) is None
    paths, labels = [], []
    shared: dict[tuple[str, ...], list[str]] = {}  # of millions of rows few differ
    for number, (path, *values) in enumerate(rows, 1):
        text = os.fsdecode(path) if isinstance(path, str | bytes) else ""
        if not text:
            raise SourceError(
                f"{name}: the path of sample {number} is empty or no text: name the column of "
                "paths with --set listing.path=NAME"
            )
        paths.append(unescape(text) if escaped else text)
        row = [_as_text(value, name) for value in values]
        labels.append(shared.setdefault(tuple(row), row))
    texts = {text for row in shared.values() for text in row if text}
    if kind in ("csv", "tsv") and (quoted := by_bytes(filter(_is_quoted, texts))):
        raise SourceError(
            f"{name}: the label {escape(quoted[0])} has its quotes in it, since something stands "
            "between the quote and the delimiter: remove the blanks beside the delimiters"
        )
    several = kind == "lst" or bool(options.labels)
    return paths, labels, several or all(map(_WHOLE.fullmatch, texts))


def _text_rows(
    data: bytes, name: str, kind: str, options: ListingOptions
) -> Iterator[Sequence[str]]:
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise SourceError(f"{name} is in UTF-16: save it as UTF-8")
    text = io.TextIOWrapper(io.BytesIO(data.removeprefix(BOM_UTF8)), *CODEC, newline="")
    is_lst = kind == "lst"
    delimiter = options.delimiter or _usual_delimiter(data, kind)
    quoting: Any = csv.QUOTE_NONE if is_lst else csv.QUOTE_MINIMAL
    reader = csv.reader(text, delimiter=delimiter, quoting=quoting, strict=True)
    columns, positions = 0, [0]
    try:
        for number, row in enumerate(filter(None, reader), 1):
            if is_lst and len(row) < 3:
                raise SourceError(
                    f"{name}, row {number}: {len(row)} columns; a .lst has index, label and path, "
                    f"with tabs between them (im2rec.py --list writes one): {_shown(row)}"
                )
            if is_lst:
                yield [row[-1], *row[1:-1]]
                continue
            if number == 1:
                row = _without_blank_end(row, 2)
                columns = len(row)
                positions = _positions([column.strip() for column in row], name, options)
                if options.header:
                    continue
            row = _without_blank_end(row, columns)
            if len(row) != columns:
                raise SourceError(
                    f"{name}, row {number}: {len(row)} columns, the first row has {columns}; a "
                    "path with a delimiter or a line end in it must be in double quotes "
                    f"(listing.delimiter is {delimiter!r}): {_shown(row)}"
                )
            yield [row[position] for position in positions]
    except csv.Error as error:
        raise SourceError(f"{name}, line {reader.line_num}: {error}") from None
    if not columns and not is_lst:
        raise SourceError(f"{name} is empty: it needs a column of paths and one of labels")


def _usual_delimiter(data: bytes, kind: str) -> str:
    """A comma, a tab, or the semicolon of a CSV file whose first line has no comma."""
    first_line = data.partition(b"\n")[0]
    is_semicolon = kind == "csv" and b";" in first_line and b"," not in first_line
    return ";" if is_semicolon else _DELIMITERS[kind]


def _without_blank_end(row: list[str], columns: int) -> list[str]:
    """A row without the empty cells that a delimiter at the end of its line makes."""
    while len(row) > columns and not row[-1].strip():
        row = row[:-1]
    return row


def _shown(row: Sequence[str]) -> str:
    """A row in short, for errors."""
    text = escape(", ".join(row))
    return repr(text if len(text) <= _SHOWN_BYTES else f"{text[:_SHOWN_BYTES]}...")


def _parquet_rows(data: bytes, name: str, options: ListingOptions) -> Sequence[Sequence[Any]]:
    try:
        file = pq.ParquetFile(readable(data))
        schema = file.schema_arrow
        wanted = [schema.names[at] for at in _positions(schema.names, name, options)]
        if pa.types.is_struct(schema.field(wanted[0]).type):
            raise SourceError(_holds_images(name, wanted[0]))
        table = file.read(columns=wanted)
        first = table[wanted[0]][0].as_py() if len(table) else ""
        if isinstance(first, bytes) and begins_as_image(first):
            raise SourceError(_holds_images(name, wanted[0]))
        return [*zip(*[table.column(column).to_pylist() for column in wanted], strict=True)]
    except SourceError:
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError) as error:
        raise SourceError(f"{name} cannot be read as Parquet: {error}") from None


def _holds_images(name: str, column: str) -> str:
    return (
        f"{name}: column {column!r} has images, not paths: read it with --kind parquet; if "
        "another column has the paths, name it with --set listing.path=NAME"
    )


def _positions(names: Sequence[str], name: str, options: ListingOptions) -> list[int]:
    """Positions of the column of paths and of those of labels among ``names``."""
    labels = options.labels or (options.label,)
    if options.header and len(names) == 1 and labels == (None,):
        labels = ()  # paths alone, of images without classes
    asked = [(options.path, PATH_COLUMNS, 0), *[(label, LABEL_COLUMNS, 1) for label in labels]]
    positions = []
    for column, usual, position in asked:
        if column is None and options.header:
            lower = [each.lower() for each in names]
            column = next((lower.index(each) for each in usual if each in lower), usual[0])
        if column is None:
            column = position
        if column in names:
            column = names.index(str(column))
        if not isinstance(column, int) or column >= len(names):
            shown = ", ".join(map(repr, names[:20]))
            raise SourceError(
                f"{name} has no column {column!r}: it has {shown}; name the right one with --set "
                "listing.path=NAME or listing.label=NAME, the separator with listing.delimiter, or "
                "set listing.header=false where the first line is no header"
            )
        positions.append(column)
    return positions


def _as_text(value: Any, name: str) -> str:
    """A label as text: 3.0 of a column of floats is 3, and what is missing there is NaN."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        value = int(value)
    text = os.fsdecode(value) if isinstance(value, bytes) else str(value)
    if text.encode(errors="ignore").decode() != text:
        raise SourceError(f"{name}: label {text[:40]!r} is not UTF-8: save the listing as UTF-8")
    return text.strip()


def _as_numbers(labels: Sequence[Sequence[str]], name: str) -> list[list[float]]:
    """Labels as numbers; NaN where one is missing."""
    try:
        return [[float(text or "nan") for text in row] for row in labels]
    except ValueError as error:
        raise SourceError(
            f"{name}: {error}, but all labels are numbers in a .lst and in listing.labels; one "
            "column of names is listing.label"
        ) from None


def place_of(path: str, root: str) -> tuple[str, str]:
    """The name of a listed path as a sample, and why it is refused, or nothing.

    One file has one name however it was written: relative to ``root``, which is absolute and ends
    with a slash, wherever it is below that. So the order of the samples is that of the same files
    in class folders.

    Raises:
        SourceError: an address that is neither a path nor on S3, or that has credentials, which
            would be stored in the table of samples.
    """
    path = path.removeprefix("file://")
    if _SCHEME.match(path):
        if not _ON_S3.fullmatch(path) or _SIGNED.search(path):
            raise SourceError(
                f"{without_credentials(escape(path))}: a listing has paths and addresses "
                "s3://BUCKET/KEY without credentials; copy images that are on the web to a disk or "
                "to S3 first"
            )
        return path.removeprefix(root), ""
    name = posixpath.normpath(path)
    if "\0" in path:
        return path, "its path holds a zero byte"
    if name.startswith("/"):
        return f"/{name.lstrip('/')}".removeprefix(root), ""
    leaves = name == ".." or name.startswith("../")
    if leaves:
        return path, LEAVES
    return (path if name == path else name), ""  # one text where they are the same


def split_name(name: str) -> tuple[str, str]:
    """The root at which a name is looked up, and the key there: empty for the listing's own."""
    if name.startswith("s3://"):
        bucket, _, key = name[len("s3://") :].partition("/")
        return f"s3://{bucket}", key
    return ("/", name[1:]) if name.startswith("/") else ("", name)
