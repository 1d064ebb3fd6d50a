"""A listing as a source: a CSV, TSV, Parquet or ``.lst`` file of paths and labels."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from functools import lru_cache

from dataprep.errors import ObjectNotFound, SourceError, SourceNotFound
from dataprep.labels import LabelSpace
from dataprep.names import escape, to_bytes
from dataprep.sources.class_names import read_class_names, split_uri
from dataprep.sources.files import read_file
from dataprep.sources.listed import Listed, are_contiguous, no_number
from dataprep.sources.listed_paths import PathRule, split_name
from dataprep.sources.listing_tables import parse_parquet, parse_text_table
from dataprep.sources.lst import parse_lst
from dataprep.sources.options import ListingOptions
from dataprep.sources.protocol import REMOTE_READS, Listing, Located, Problem
from dataprep.sources.sizes import MISSING, sizes_of
from dataprep.stores import Store, StoreOptions, open_store
from dataprep.stores.s3 import S3Store

_FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".lst": "lst",
}


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
        self.concurrency = self._reads("")

    @property
    def uri(self) -> str:
        """Where the listing lies."""
        return f"{self._folder.rstrip('/')}/{self._file}"

    def read(self, item: Located) -> bytes:
        """One image's bytes."""
        root, key = split_name(item.name)
        return read_file(self._store(root), key, root or self._root)

    def list(self) -> Listing:
        """All rows, sorted by the bytes of their names; a repeated path keeps its first row."""
        rows = self._parsed()
        if not rows.paths:
            raise SourceNotFound(f"{self.uri} lists nothing")
        rule = PathRule(self._root)
        names, refused = [], {}
        for row, path in enumerate(rows.paths):
            name, problem = rule(path)
            names.append(name)
            if problem:
                refused[row] = problem
        problems = _repeated(names, rows.classes)
        for reasons in (rows.problems, refused):
            problems |= {row: Problem("failed", reason) for row, reason in reasons.items()}
        sizes = self._sizes(names, problems)
        self._require_one_there(names, problems)
        classes, space, notes = self._classes(rows, problems)
        return Listing.sorted(
            names,
            sizes,
            classes,
            problems,
            values=rows.values,
            label_space=space,
            notes=notes,
        )

    def _parsed(self) -> Listed:
        try:
            data = self._store(self._folder).get(self._file)
        except ObjectNotFound:
            raise SourceNotFound(f"no listing at {self.uri!r} (check --source)") from None
        except OSError as error:
            raise SourceError(f"cannot read {self.uri}: {error}") from None
        options = self._section
        suffix = "." + self._file.rpartition(".")[2].lower()
        kind = _FORMATS.get(suffix) if options.format == "auto" else options.format
        if kind is None:
            raise SourceError(
                f"{self.uri}: .csv, .tsv, .parquet or .lst is expected; where the file is one of "
                "these under another name, say which with --set listing.format=csv"
            )
        if kind == "lst":
            return parse_lst(data, self._file, options.escaped)
        if kind == "parquet":
            return parse_parquet(data, self._file, options)
        delimiter = options.delimiter or ("\t" if kind == "tsv" else ",")
        return parse_text_table(data, self._file, options, delimiter)

    def _sizes(self, names: Sequence[str], problems: dict[int, Problem]) -> Sequence[int]:
        """Bytes of each file; what is not there joins ``problems``."""
        by_root: dict[str, list[int]] = {}
        for row, name in enumerate(names):
            if row not in problems:
                by_root.setdefault(split_name(name)[0], []).append(row)
        sizes = [0] * len(names)
        for root, rows in by_root.items():
            self.concurrency = max(self.concurrency, self._reads(root))
            found = sizes_of(self._store(root), [split_name(names[row])[1] for row in rows])
            for row, size in zip(rows, found, strict=True):
                if isinstance(size, str):
                    problems[row] = Problem("failed", size)
                else:
                    sizes[row] = size
        return sizes

    def _require_one_there(self, names: Sequence[str], problems: dict[int, Problem]) -> None:
        """Refuse a listing of which nothing is there: its root is wrong, or its column of paths."""
        missing = [row for row, problem in problems.items() if problem.reason == MISSING]
        if missing and len(problems) == len(names):
            root, key = split_name(names[min(missing)])
            root = root or self._root
            first = posixpath.join(root if "://" in root else os.path.abspath(root), key)  # noqa: PTH100
            raise SourceNotFound(
                f"nothing is there of what {self.uri} lists: {escape(first)} was looked for first; "
                "relative paths begin at the listing, or where --set listing.root=FOLDER says"
            )

    def _classes(
        self, rows: Listed, problems: dict[int, Problem]
    ) -> tuple[Sequence[str], LabelSpace | None, tuple[str, ...]]:
        """The class of each row, and how classes are numbered."""
        used = {name for row, name in enumerate(rows.classes) if row not in problems}
        if self._section.class_names:
            space = read_class_names(self._section.class_names, self._options)
            if not rows.numbered:
                _require_known(used, space, self._section.class_names)
                return rows.classes, space, ()
            names = {str(label.index): label.synset for label in space.labels}
            for row, name in enumerate(rows.classes):
                if row not in problems and name not in names:
                    problems[row] = Problem("failed", f"label {name} has no name in class_names")
            return [names.get(name, "") for name in rows.classes], space, ()
        notes: tuple[str, ...] = ()
        if not rows.numbered or not used:
            if (odd := no_number(used)) is not None:
                notes = (
                    f"labels such as {odd!r} are no whole numbers: all labels are names, in the "
                    "order of texts, where 10 comes before 9 (an empty label fails its row alone)",
                )
            return rows.classes, None, notes
        if not are_contiguous(used):
            numbers = sorted(map(int, used))
            notes = (
                f"the labels {numbers[0]} to {numbers[-1]} are not 0 to {len(used) - 1} without a "
                "gap: unless this output numbers them already they become that, in their order, "
                "as labels.json tells; listing.class_names keeps numbers as they are",
            )
        return rows.classes, LabelSpace.numbered(used), notes

    def _store(self, root: str) -> Store:
        return _store(root or self._root, self._options)

    def _reads(self, root: str) -> int:
        return REMOTE_READS if isinstance(self._store(root), S3Store) else 1


@lru_cache(maxsize=64)
def _store(uri: str, options: StoreOptions) -> Store:
    """One store a process and root: a client of S3 takes 0.2 s to make."""
    return open_store(uri, options)


def _repeated(names: Sequence[str], classes: Sequence[str]) -> dict[int, Problem]:
    first: dict[str, int] = {}
    problems = {}
    for row, name in enumerate(names):
        before = first.setdefault(name, row)
        if before != row:
            problems[row] = (
                Problem("skipped", "listed before")
                if classes[row] == classes[before]
                else Problem("failed", "listed before with another label")
            )
    return problems


def _require_known(used: set[str], space: LabelSpace, where: str) -> None:
    strangers = sorted(used - space.index.keys(), key=to_bytes)
    if strangers:
        raise SourceError(
            f"the listing has {len(strangers)} classes that {where} does not name, such as "
            f"{strangers[0]!r}"
        )
