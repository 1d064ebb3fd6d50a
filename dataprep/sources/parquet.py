"""Kind ``parquet``: images in the rows of Parquet files, as hubs of data sets publish them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dataprep.errors import (
    DataprepError,
    PermissionRefused,
    SourceError,
    SourceNotFound,
    UnreadableImage,
)
from dataprep.labels import LabelSpace
from dataprep.message_text import counted, listed
from dataprep.sources.class_names import label_space_of, read_class_names
from dataprep.sources.exclusion import exclude_option
from dataprep.sources.file_names import PARQUET_ENDING, advice_for
from dataprep.sources.files import FilesSource
from dataprep.sources.label_classes import (
    MAX_CLASS_CHARACTERS,
    Classes,
    LabelledEntries,
    classes_from_names,
    classes_with_own_numbers,
)
from dataprep.sources.local_tree import Tree
from dataprep.sources.options import ParquetOptions
from dataprep.sources.parquet_columns import Columns, choose_columns
from dataprep.sources.parquet_row_groups import (
    ColumnChunk,
    ParquetReader,
    column_in,
    container_of,
    file_and_group,
    footer,
)
from dataprep.sources.protocol import Listing, Located, Problem
from dataprep.sources.split_files import refuse_file_splits
from dataprep.sources.stored_file import StoredFile, changed_since_listed
from dataprep.stores import ObjectInfo, Store, StoreOptions
from dataprep.threaded_map import in_order

NO_PARQUET = "no Parquet file by its name (.parquet, .pq)"
NO_ROWS = "a Parquet file without rows"

_MAX_CHUNKS_AHEAD = 8
_MAX_BYTES_AHEAD = 2**27  # limits the memory of a worker
_MAX_REASON_CHARACTERS = 150
_DAMAGED_LABELS = "damaged: the classes of its row group cannot be read"

Label = int | str | bool | None
"""A value of the column of classes."""


@dataclass(frozen=True)
class _Group:
    """The rows of a row group.

    Attributes:
        container: the container of the rows in the listing.
        row_count: the number of rows.
        mean_bytes: the mean size of an image, at least 1.
        labels: the label of each row; None if the labels cannot be read.
        paths: the path of each image; None for an image without a path, and for all images if the
            paths cannot be read.
    """

    container: str
    row_count: int
    mean_bytes: int
    labels: Sequence[Label] | None
    paths: Sequence[str | None]


@dataclass(frozen=True)
class _File:
    """The rows of a Parquet file.

    Attributes:
        stored_file: the file in the store.
        columns: the columns to read; None if the file has no rows.
        groups: the row groups that have rows.
        has_images: whether any image may have bytes. False if the metadata say that all are null.
    """

    stored_file: StoredFile
    columns: Columns | None = None
    groups: Sequence[_Group] = ()
    has_images: bool = True


class _Entries(LabelledEntries[Label]):
    """The entries of Parquet files. Each row of a file is an entry.

    The container of an entry is its row group, and its offset is its row in the group.
    """

    def add_rows(self, file: _File) -> None:
        """Append the rows of a file.

        The name of a row is the key of the file and the path of the image. If the path is missing,
        is repeated in the file, or cannot be a file name, the number of the row in the file takes
        its place.
        """
        path_counts: Counter[str] = Counter()
        for group in file.groups:
            path_counts.update(path for path in group.paths if path)
        number = 0
        for group in file.groups:
            labels = group.labels or [None] * group.row_count
            problem = Problem("failed", _DAMAGED_LABELS) if group.labels is None else None
            for row, (path, label) in enumerate(zip(group.paths, labels, strict=True)):
                base = f"{number:08d}"
                if path is not None and path_counts[path] == 1 and _is_file_name(path):
                    base = path
                name = f"{file.stored_file.key}/{base}"
                entry = Located(name, group.mean_bytes, group.container, row)
                self.add(entry, label, problem)
                number += 1


@dataclass(frozen=True)
class _Run:
    """Rows of one row group that are read together.

    Attributes:
        chunk: the column of images in the row group.
        rows: ascending numbers of rows, from 0 within the row group.
    """

    chunk: ColumnChunk
    rows: Sequence[int]

    @property
    def fetched_bytes(self) -> int:
        """The number of bytes that ``fetch`` returns, which may be 0."""
        return self.chunk.chunk_bytes if self.chunk.is_read_at_once(self.rows) else 0

    def fetch(self) -> bytes:
        """The column chunk, fetched by one request; empty if ``values`` is to stream it."""
        return self.chunk.fetch() if self.chunk.is_read_at_once(self.rows) else b""


class ParquetSource(FilesSource):
    """Images in Parquet files, in the order of the files and of their rows.

    ``uri`` is one file, or a folder of files. If a row of ``data/train-0.parquet`` has an image
    with the path ``1.jpg``, the sample is called ``data/train-0.parquet/1.jpg``. If the row has no
    path, or another row has the same path, the number of the row takes the place of the path.
    """

    kind = "parquet"
    only_images = True

    def __init__(
        self, uri: str, options: StoreOptions | None = None, section: ParquetOptions | None = None
    ) -> None:
        super().__init__(uri, options)
        self._section = section or ParquetOptions()
        self._files: dict[str, StoredFile] = {}
        self._image_column = ""

    def read(self, item: Located) -> bytes:
        """Return the bytes of one image. The row group is read from its start up to the image."""
        (data,) = self.read_runs([item])
        if isinstance(data, UnreadableImage):
            raise data
        return data

    def read_runs(self, items: Sequence[Located]) -> Iterator[bytes | UnreadableImage]:
        """Yield the bytes of the images in the order of ``items``. Each run is read once."""
        runs = []
        for run_items in _runs(items):
            chunk = self._image_chunk(run_items[0].container)
            runs.append(_Run(chunk, [item.offset for item in run_items]))
        if self.concurrency == 1:
            for run in runs:
                yield from run.chunk.values(run.rows)
            return
        # Several threads fetch chunks ahead, up to a limit of memory.
        fetched_chunks = in_order(
            _Run.fetch,
            runs,
            min(self.concurrency, _MAX_CHUNKS_AHEAD),
            weight=lambda run: run.fetched_bytes,
            budget=_MAX_BYTES_AHEAD,
        )
        for run, content in zip(runs, fetched_chunks, strict=True):
            yield from run.chunk.values(run.rows, content)

    def list(self) -> Listing:
        """List every row of every Parquet file, and the other files of the folder."""
        tree = Tree()
        files_at = self._files_at("Parquet file", tree)
        parquet_files: list[ObjectInfo] = []
        files_without_samples: list[tuple[ObjectInfo, Problem]] = []
        for info in files_at.files:
            problem = self._problem_of(info, in_folder=files_at.is_folder)
            if problem is None and files_at.is_folder and not PARQUET_ENDING.search(info.key):
                problem = Problem("skipped", NO_PARQUET)
            if problem is None:
                parquet_files.append(info)
            else:
                files_without_samples.append((info, problem))
        if not parquet_files:
            raise SourceNotFound(
                f"no Parquet files in {self.uri!r}: names that end in .parquet or .pq are expected"
                + advice_for(info.key for info in files_at.files)
            )
        if not self._splits_are_classes:
            keys = [info.key for info in parquet_files]
            refuse_file_splits(self.uri, self.kind, "Parquet files", PARQUET_ENDING, keys)

        def read(info: ObjectInfo) -> _File:
            return self._read_file(files_at.store, info)

        files = [*in_order(read, parquet_files, self.concurrency - 1)]
        files_with_rows = [file for file in files if file.columns is not None]
        columns = self._require_same_columns(files_with_rows)
        entries = _Entries()
        for file in files:
            if file.columns is None:
                info = ObjectInfo(file.stored_file.key, file.stored_file.size)
                files_without_samples.append((info, Problem("skipped", NO_ROWS)))
            else:
                entries.add_rows(file)
        for info, problem in files_without_samples:
            entries.add(Located(info.key, info.bytes), None, problem)
        self._files = {file.stored_file.key: file.stored_file for file in files_with_rows}
        self._image_column = columns.image
        classes = self._classes(entries, columns)
        return entries.listing(
            classes,
            in_runs=True,
            label_order="as the schema lists them" if columns.class_names else "as numbered",
            notes=(*classes.notes, *_notes(files), *tree.notes()),
            form="images in Parquet",
            unread=tuple(tree.unread),
            file_versions={key: file.version for key, file in self._files.items()},
        )

    def _read_file(self, store: Store, info: ObjectInfo) -> _File:
        """Read the footer, the labels and the paths of a file, but no image.

        Raises:
            SourceError: the file cannot be read as Parquet, or its columns cannot be chosen.
        """
        title = f"{self.uri.rstrip('/')}/{info.key}" if store is self._store else self.uri
        try:
            stored_file = StoredFile.now(store, info.key)
            metadata = footer(stored_file)
            schema = metadata.schema.to_arrow_schema()
        except PermissionRefused as error:
            raise SourceError(f"{error} (check --source)") from None
        except DataprepError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            reason = " ".join(str(error).split())[:_MAX_REASON_CHARACTERS].rstrip(".")
            raise SourceError(
                f"{title} cannot be read as Parquet ({reason}). Its samples would be missing: "
                f"fetch it again, or leave it out with {exclude_option(info.key)}"
            ) from None
        if not metadata.num_rows:
            return _File(stored_file)
        columns = choose_columns(schema, self._section, title)
        image_chunks: dict[int, ColumnChunk] = {}
        for number in range(metadata.num_row_groups):
            chunk = ColumnChunk(stored_file, number, columns.image)
            if chunk.rows:
                image_chunks[number] = chunk
        labels = _values(stored_file, [*image_chunks], columns.label)
        paths = _values(stored_file, [*image_chunks], columns.path)
        groups = []
        for number, chunk in image_chunks.items():
            no_values = [None] * chunk.rows
            group = _Group(
                container=container_of(stored_file, number),
                row_count=chunk.rows,
                mean_bytes=max(chunk.value_bytes // chunk.rows, 1),
                labels=labels[number] if columns.label else no_values,
                paths=paths.get(number) or no_values,
            )
            groups.append(group)
        has_images = not all(chunk.all_null for chunk in image_chunks.values())
        return _File(stored_file, columns, groups, has_images)

    def _require_same_columns(self, files: Sequence[_File]) -> Columns:
        """The columns, which must be the same in all files.

        Args:
            files: the files that have rows.

        Raises:
            SourceNotFound: no file has rows.
            SourceError: files differ in their columns or class names, or no file has an image.
        """
        if not files:
            raise SourceNotFound(f"no rows in the Parquet files of {self.uri!r}")
        first_key = files[0].stored_file.key
        columns = files[0].columns
        assert columns is not None  # noqa: S101  for mypy
        for file in files[1:]:
            difference = _difference(columns, file.columns or columns)
            if difference:
                key = file.stored_file.key
                raise SourceError(
                    f"{self.uri}: {first_key} and {key} differ in {difference}: shard one kind of "
                    f"file at a time, as in {exclude_option(key)}"
                )
        if not any(file.has_images for file in files):
            raise SourceError(
                f"{self.uri}: no image of column {columns.image!r} has bytes; its images are only "
                "named by their paths: list the paths in a CSV file (--kind listing), or embed the "
                "images in the table"
            )
        return columns

    def _classes(self, entries: _Entries, columns: Columns) -> Classes:
        """The class of each entry.

        If any entry has a label, entries without a valid label fail, unless all numbers are -1.

        Raises:
            SourceNotFound, SourceError: the names of the classes cannot be read, or do not fit.
        """
        count = len(entries.names)
        if not columns.label:
            return Classes([""] * count, notes=(columns.advice,) if columns.advice else ())
        if all(label is None for label in entries.labels):
            return Classes([""] * count, notes=(f"column {columns.label!r} has no values",))
        names_file = self._section.class_names
        label_space = read_class_names(names_file, self._options) if names_file else None
        reasons = entries.reasons()
        if columns.has_numbers:
            classes = self._classes_by_number(entries, columns, label_space, reasons)
        else:
            classes = self._classes_by_name(entries, label_space, reasons)
        entries.fail(reasons)
        return classes

    def _classes_by_number(
        self,
        entries: _Entries,
        columns: Columns,
        label_space: LabelSpace | None,
        reasons: dict[int, str],
    ) -> Classes:
        """The classes if labels are numbers.

        Args:
            entries: all entries.
            columns: the columns of the files.
            label_space: the classes in the file ``class_names``; None without this file.
            reasons: why entries are not samples. Entries without a class are added.
        """
        names_from = "class_names"
        if label_space is None and columns.class_names:
            title = f"{self.uri}: the schema's names of {columns.label!r}"
            names = [name.strip() for name in columns.class_names]
            label_space = label_space_of(names, title, "name")
            names_from = "the schema"
        numbers = {}
        for row, label in enumerate(entries.labels):
            if label is not None and row not in reasons:
                numbers[row] = int(label)
        return classes_with_own_numbers(
            numbers, len(entries.labels), label_space, reasons, self.kind, names_from
        )

    def _classes_by_name(
        self, entries: _Entries, label_space: LabelSpace | None, reasons: dict[int, str]
    ) -> Classes:
        """The classes if labels are texts. The arguments are those of ``_classes_by_number``."""
        names = []
        for row, label in enumerate(entries.labels):
            name = label.strip() if isinstance(label, str) else ""
            problem = _problem_of_class(name)
            if problem:
                reasons.setdefault(row, problem)
            names.append("" if row in reasons else name)
        # ``classes_from_names`` would replace reasons that are there already.
        without_class: dict[int, str] = {}
        classes = classes_from_names(names, label_space, without_class, self.uri)
        for row, reason in without_class.items():
            reasons.setdefault(row, reason)
        return classes

    def _image_chunk(self, container: str) -> ColumnChunk:
        """The column of images in a row group, which is given by the name of its container.

        Raises:
            SourceChanged: the file or its row group was removed since it was listed.
        """
        key, group = file_and_group(container)
        file = self._files.get(key)
        try:
            if file is not None:
                return ColumnChunk(file, group, self._image_column)
        except DataprepError:
            raise
        except (pa.ArrowException, OSError, ValueError, LookupError):
            pass
        raise changed_since_listed(f"{key} in {self.uri}")


def _runs(items: Sequence[Located]) -> list[list[Located]]:
    """Cut items into runs: successive items of one row group, in ascending order of their rows."""
    runs: list[list[Located]] = []
    for _, neighbours in groupby(items, key=lambda item: item.container):
        run: list[Located] = []
        for item in neighbours:
            if run and item.offset <= run[-1].offset:
                runs.append(run)
                run = []
            run.append(item)
        runs.append(run)
    return runs


def _values(file: StoredFile, groups: Sequence[int], column: str) -> dict[int, Any]:
    """The values of a column, by the number of the row group; None for a damaged row group.

    All row groups are read together. If that fails, each group is read separately, to find the
    damaged groups. The result is empty if there is no column or no group.

    Args:
        file: the Parquet file.
        groups: the numbers of the row groups.
        column: the path of the column in the schema; empty if there is no column.
    """
    if not column or not groups:
        return {}
    parquet_file = pq.ParquetFile(ParquetReader(file), metadata=footer(file), pre_buffer=True)
    try:
        table = parquet_file.read_row_groups(groups, columns=[column], use_threads=False)
        values = column_in(table, column).to_pylist()
    except DataprepError:
        raise
    except (pa.ArrowException, OSError, ValueError):
        if len(groups) == 1:
            return {groups[0]: None}
        return {group: _values(file, [group], column)[group] for group in groups}
    values_by_group = {}
    first_row = 0
    for group in groups:
        rows = footer(file).row_group(group).num_rows
        values_by_group[group] = values[first_row : first_row + rows]
        first_row += rows
    return values_by_group


def _is_file_name(path: str) -> bool:
    """Whether a path can be the name of a sample: it is relative, without ``..``, and no number.

    A number could be the name of a row without a path.
    """
    parts = path.split("/")
    is_relative = not {"", ".", ".."} & {*parts}
    return is_relative and "\0" not in path and not path.isdecimal()


def _problem_of_class(text: str) -> str:
    """Why a text cannot be a class; empty if it can be a class, and for an empty text."""
    if len(text) > MAX_CLASS_CHARACTERS:
        return f"its class has more than {MAX_CLASS_CHARACTERS:,} characters"
    if text and not text.isprintable():
        return "its class has several lines or control characters"
    return ""


def _difference(first: Columns, other: Columns) -> str:
    """Describe the difference between the columns of two files; empty if there is none.

    The attribute ``advice`` may differ.
    """
    if first.image != other.image:
        return f"their column of images ({first.image!r}, {other.image!r})"
    if first.label != other.label:
        return f"their column of classes ({first.label or 'none'!r}, {other.label or 'none'!r})"
    if first.has_numbers != other.has_numbers:
        return f"the type of {first.label!r}: numbers and texts"
    if first.class_names != other.class_names:
        return f"the names of the classes of {first.label!r}"
    if first.path != other.path:
        return f"the paths of {first.image!r}"
    return ""


def _notes(files: Sequence[_File]) -> Iterator[str]:
    """Notes for the user about files without rows."""
    empty = [file.stored_file.key for file in files if file.columns is None]
    if empty:
        yield f"{counted(len(empty), 'Parquet file')} without rows: {listed(empty)}"
