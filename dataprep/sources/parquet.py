"""Images in Parquet files as a source, in the form in which hubs of data sets store them."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dataprep.counted import counted
from dataprep.errors import (
    DataprepError,
    PermissionRefused,
    SourceChanged,
    SourceError,
    SourceNotFound,
    UnreadableImage,
)
from dataprep.labels import LabelSpace
from dataprep.ordered import in_order
from dataprep.sources.archives import StoredFile
from dataprep.sources.class_names import (
    Classes,
    by_name,
    by_own_number,
    named_classes,
    read_class_names,
)
from dataprep.sources.file_splits import refuse_file_splits
from dataprep.sources.files import FilesSource
from dataprep.sources.local_tree import Tree, shown
from dataprep.sources.options import ParquetOptions
from dataprep.sources.other_kinds import PARQUET_ENDING, advice_for
from dataprep.sources.parquet_columns import Columns, columns_of
from dataprep.sources.protocol import Listing, Located, Problem, Problems
from dataprep.sources.row_groups import (
    ParquetBytes,
    RowGroup,
    column_in,
    container_of,
    file_and_group,
    footer,
)
from dataprep.stores import ObjectInfo, Store, StoreOptions

NO_PARQUET = "no Parquet file by its name (.parquet, .pq)"
NO_ROWS = "a Parquet file without rows"

_MOST_CHUNKS_AHEAD = 8
_MOST_BYTES_AHEAD = 2**27
_LONGEST_CLASS = 1000
_DAMAGED_LABELS = "damaged: the classes of its row group cannot be read"

Value = int | str | bool | None


@dataclass(frozen=True)
class _Group:
    """The rows of a row group.

    Attributes:
        container: what the listing calls the row group.
        rows: the number of rows.
        mean_bytes: the average size of an image.
        labels: the label of each row; None if the labels are damaged.
        paths: the path of each image; None if an image has no path.
    """

    container: str
    rows: int
    mean_bytes: int
    labels: Sequence[Value] | None
    paths: Sequence[str | None]


@dataclass(frozen=True)
class _File:
    """The rows of a Parquet file.

    Attributes:
        stored: the file.
        columns: the columns to read; None if the file has no rows.
        groups: the row groups that have rows.
        has_images: whether any image has bytes, as far as the metadata say.
    """

    stored: StoredFile
    columns: Columns | None = None
    groups: Sequence[_Group] = ()
    has_images: bool = True


@dataclass
class _Rows:
    """The columns of a listing. Entries are in the order of the files and of their rows."""

    names: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    containers: list[str] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    labels: list[Value] = field(default_factory=list)
    problems: Problems = field(default_factory=dict)

    def add_file(self, key: str, size: int, problem: Problem) -> None:
        """Append a file without samples, and the reason."""
        self.problems[len(self.names)] = problem
        self._add(key, size, "", 0, None)

    def add(self, file: _File) -> None:
        """Append the rows of a file.

        A row is named by its path, if that is a file name that occurs once, or else by its number.
        """
        key = file.stored.key
        paths = Counter(path for group in file.groups for path in group.paths if path)
        number = 0
        for group in file.groups:
            labels = group.labels or [None] * group.rows
            for offset, (path, label) in enumerate(zip(group.paths, labels, strict=True)):
                if group.labels is None:
                    self.problems[len(self.names)] = Problem("failed", _DAMAGED_LABELS)
                is_name = path is not None and paths[path] == 1 and _is_file_name(path)
                name = f"{key}/{path if is_name else f'{number:08d}'}"
                self._add(name, group.mean_bytes, group.container, offset, label)
                number += 1

    def _add(self, name: str, size: int, container: str, offset: int, label: Value) -> None:
        self.names.append(name)
        self.sizes.append(size)
        self.containers.append(container)
        self.offsets.append(offset)
        self.labels.append(label)


class ParquetSource(FilesSource):
    """Images in Parquet files, in the order of the files and of their rows.

    ``uri`` is one file, or a folder of files. A row of ``data/train-0.parquet`` whose image has the
    path ``1.jpg`` is called ``data/train-0.parquet/1.jpg``. A row without a path, or with the path
    of another row, is called by its number in the file.
    """

    kind = "parquet"
    only_images = True

    def __init__(
        self, uri: str, options: StoreOptions | None = None, section: ParquetOptions | None = None
    ) -> None:
        super().__init__(uri, options)
        self._section = section or ParquetOptions()
        self._files: dict[str, StoredFile] = {}
        self._image = ""

    def read(self, item: Located) -> bytes:
        """The bytes of one image. Its row group is read from the start up to this image."""
        (data,) = self.read_runs([item])
        if isinstance(data, UnreadableImage):
            raise data
        return data

    def read_runs(self, items: Sequence[Located]) -> Iterator[bytes | UnreadableImage]:
        """The bytes of the images in order. Each run of rows of one row group is read once."""
        runs = [
            (self._group(run[0].container), [item.offset for item in run]) for run in _runs(items)
        ]
        if self.concurrency == 1:
            for group, rows in runs:
                yield from group.values(rows)
            return

        def chunk_of(run: tuple[RowGroup, Sequence[int]]) -> bytes:
            """The whole column chunk; empty if its rows are streamed."""
            group, rows = run
            return group.fetch_chunk() if group.is_read_at_once(rows) else b""

        chunks = in_order(
            chunk_of,
            runs,
            min(self.concurrency, _MOST_CHUNKS_AHEAD),
            weight=lambda run: run[0].chunk_bytes if run[0].is_read_at_once(run[1]) else 0,
            budget=_MOST_BYTES_AHEAD,
        )
        for (group, rows), chunk in zip(runs, chunks, strict=True):
            yield from group.values(rows, chunk)

    def list(self) -> Listing:
        """List every row of every Parquet file, and the other files of the folder."""
        tree = Tree()
        listed = self._files_at("Parquet file", tree)
        rows = _Rows()
        parquet_files: list[ObjectInfo] = []
        others: list[tuple[ObjectInfo, Problem]] = []
        for file in listed.files:
            problem = self._problem_of(file, in_folder=listed.is_folder)
            if problem is None and listed.is_folder and not PARQUET_ENDING.search(file.key):
                problem = Problem("skipped", NO_PARQUET)
            if problem is None:
                parquet_files.append(file)
            else:
                others.append((file, problem))
        if not parquet_files:
            raise SourceNotFound(
                f"no Parquet files in {self.uri!r}: names that end in .parquet or .pq are expected"
                + advice_for(file.key for file in listed.files)
            )
        if not self._splits_are_classes:
            keys = [file.key for file in parquet_files]
            refuse_file_splits(self.uri, self.kind, "Parquet files", PARQUET_ENDING, keys)
        tables = [
            *in_order(
                lambda file: self._read_file(listed.store, file),
                parquet_files,
                self.concurrency - 1,
            )
        ]
        with_rows = [table for table in tables if table.columns is not None]
        columns = self._require_same_columns(with_rows)
        for table in tables:
            if table.columns is None:
                others.append((_info(table), Problem("skipped", NO_ROWS)))
            else:
                rows.add(table)
        for file, problem in others:
            rows.add_file(file.key, file.bytes, problem)
        self._files = {table.stored.key: table.stored for table in with_rows}
        self._image = columns.image
        classes = self._classes(rows, columns)
        return Listing.sorted(
            rows.names,
            rows.sizes,
            classes.names,
            rows.problems,
            containers=rows.containers,
            offsets=rows.offsets,
            in_runs=True,
            label_space=classes.space,
            label_order="as the schema lists them" if columns.class_names else "as numbered",
            notes=(*classes.notes, *_notes(tables, columns), *tree.notes()),
            form="images in Parquet",
            unread=tuple(tree.unread),
            file_versions={key: file.version for key, file in self._files.items()},
        )

    def _read_file(self, store: Store, entry: ObjectInfo) -> _File:
        """Read the footer, the labels and the paths of a file, but no image.

        Raises:
            SourceError: it is no Parquet file, or has no column of images.
        """
        title = f"{self.uri.rstrip('/')}/{entry.key}" if store is self._store else self.uri
        try:
            stored = StoredFile.now(store, entry.key)
            metadata = footer(stored)
            schema = metadata.schema.to_arrow_schema()
        except PermissionRefused as error:
            raise SourceError(f"{error} (check --source)") from None
        except DataprepError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            why = " ".join(str(error).split())[:150].rstrip(".")
            raise SourceError(
                f"{title} cannot be read as Parquet ({why}). Its samples would be missing: fetch "
                f"it again, or leave it out with --exclude {shlex.quote(entry.key)}"
            ) from None
        if not metadata.num_rows:
            return _File(stored)
        columns = columns_of(schema, self._section, title)
        groups = [
            RowGroup(stored, number, columns.image) for number in range(metadata.num_row_groups)
        ]
        numbers = [number for number, group in enumerate(groups) if group.rows]
        labels = _values(stored, numbers, columns.label)
        paths = _values(stored, numbers, columns.path)
        groups_with_rows = []
        for number in numbers:
            group = groups[number]
            no_values = [None] * group.rows
            group_with_rows = _Group(
                container=container_of(stored, number),
                rows=group.rows,
                mean_bytes=max(group.value_bytes // group.rows, 1),
                labels=labels[number] if columns.label else no_values,
                paths=paths.get(number) or no_values,
            )
            groups_with_rows.append(group_with_rows)
        has_images = not all(groups[number].all_null for number in numbers)
        return _File(stored, columns, groups_with_rows, has_images)

    def _require_same_columns(self, files: Sequence[_File]) -> Columns:
        """The columns of the files, which must be the same in all of them.

        Raises:
            SourceNotFound: no file has rows.
            SourceError: files differ in their columns or class names, or no file has an image.
        """
        if not files:
            raise SourceNotFound(f"no rows in the Parquet files of {self.uri!r}")
        first, *others = files
        columns = first.columns
        assert columns is not None  # noqa: S101  for mypy
        for other in others:
            if other.columns is None or _without_advice(other.columns) == _without_advice(columns):
                continue
            different = _difference(columns, other.columns)
            raise SourceError(
                f"{self.uri}: {first.stored.key} and {other.stored.key} differ in {different}: "
                "shard one kind of file at a time, as in --exclude "
                f"{shlex.quote(other.stored.key)}"
            )
        if not any(file.has_images for file in files):
            raise SourceError(
                f"{self.uri}: no image of column {columns.image!r} has bytes; its images are only "
                "named by their paths: list the paths in a CSV file (--kind listing), or embed the "
                "images in the table"
            )
        return columns

    def _classes(self, rows: _Rows, columns: Columns) -> Classes:
        """The class of each row.

        If some rows have a class, each row without a class is added to the problems of ``rows``.
        """
        count = len(rows.names)
        if not columns.label:
            return Classes([""] * count, notes=(columns.advice,) if columns.advice else ())
        if all(label is None for label in rows.labels):
            return Classes([""] * count, notes=(f"column {columns.label!r} has no values",))
        reasons = {row: problem.reason for row, problem in rows.problems.items()}
        names_file = self._section.class_names
        label_space: LabelSpace | None = None
        if names_file:
            label_space = read_class_names(names_file, self._options)
        if columns.has_numbers:
            names_from = "class_names"
            if label_space is None and columns.class_names:
                title = f"{self.uri}: the schema's names of {columns.label!r}"
                label_space = named_classes([*map(str.strip, columns.class_names)], title, "name")
                names_from = "the schema"
            numbers = {
                row: int(label)
                for row, label in enumerate(rows.labels)
                if label is not None and row not in reasons
            }
            classes = by_own_number(numbers, count, label_space, reasons, self.kind, names_from)
        else:
            texts = [_class_text(label) for label in rows.labels]
            for row, text in enumerate(texts):
                if row not in reasons and (problem := _problem_of_text(text)):
                    reasons[row] = problem
            usable = ["" if row in reasons else text for row, text in enumerate(texts)]
            without_class: dict[int, str] = {}
            classes = by_name(usable, label_space, without_class, self.uri)
            reasons = {**without_class, **reasons}
        for row, reason in reasons.items():
            rows.problems.setdefault(row, Problem("failed", reason))
        return classes

    def _group(self, container: str) -> RowGroup:
        """The row group that the listing calls ``container``.

        Raises:
            SourceChanged: the file, or its row group, is gone since it was listed.
        """
        key, group = file_and_group(container)
        file = self._files.get(key)
        try:
            if file is not None:
                return RowGroup(file, group, self._image)
        except DataprepError:
            raise
        except (pa.ArrowException, OSError, ValueError, LookupError):
            pass
        raise SourceChanged(
            f"{key} in {self.uri} was changed or removed since it was listed: restore it, or start "
            "anew with --overwrite"
        )


def _runs(items: Sequence[Located]) -> list[list[Located]]:
    """Cut items into runs: neighbours in one row group whose rows ascend."""
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

    All row groups are read together. If that fails, each is read alone, to see which are damaged.
    """
    if not column or not groups:
        return {}
    parquet_file = pq.ParquetFile(ParquetBytes(file), metadata=footer(file), pre_buffer=True)
    try:
        table = parquet_file.read_row_groups(groups, columns=[column], use_threads=False)
        values = column_in(table, column).to_pylist()
    except DataprepError:
        raise
    except (pa.ArrowException, OSError, ValueError):
        if len(groups) == 1:
            return {groups[0]: None}
        return {group: _values(file, [group], column)[group] for group in groups}
    by_group = {}
    first = 0
    for group in groups:
        rows = footer(file).row_group(group).num_rows
        by_group[group] = values[first : first + rows]
        first += rows
    return by_group


def _is_file_name(path: str) -> bool:
    """Whether a path can name a sample: a relative path without ``..`` that is no number."""
    parts = path.split("/")
    return not ({"", ".", ".."} & {*parts} or "\0" in path or path.isdecimal())


def _class_text(label: Value) -> str:
    return label.strip() if isinstance(label, str) else ""


def _problem_of_text(text: str) -> str:
    """Why a text is no class; empty if it can be a class, or is empty."""
    if len(text) > _LONGEST_CLASS:
        return f"its class has more than {_LONGEST_CLASS:,} characters"
    if text and not text.isprintable():
        return "its class has several lines or control characters"
    return ""


def _without_advice(columns: Columns) -> Columns:
    """What must be the same in all files: everything but the advice."""
    return replace(columns, advice="")


def _difference(first: Columns, other: Columns) -> str:
    """Say for a message in what two files differ."""
    if first.image != other.image:
        return f"their column of images ({first.image!r}, {other.image!r})"
    if first.label != other.label:
        return f"their column of classes ({first.label or 'none'!r}, {other.label or 'none'!r})"
    if first.has_numbers != other.has_numbers:
        return f"the type of {first.label!r}: numbers and texts"
    if first.class_names != other.class_names:
        return f"the names of the classes of {first.label!r}"
    return f"the paths of {first.image!r}"


def _info(file: _File) -> ObjectInfo:
    return ObjectInfo(file.stored.key, file.stored.size)


def _notes(files: Sequence[_File], columns: Columns) -> Iterator[str]:
    """Notes for the user about the files."""
    empty = [file.stored.key for file in files if file.columns is None]
    if empty:
        yield f"{counted(len(empty), 'Parquet file')} without rows: {shown(empty)}"
