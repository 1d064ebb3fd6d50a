"""Kind ``webdataset``: tars in which neighbouring members with the same key are one sample."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import pyarrow as pa

from dataprep.errors import SourceError
from dataprep.labels.space import is_number
from dataprep.message_text import counted, listed
from dataprep.name_encoding import escape
from dataprep.sources.class_names import read_class_names
from dataprep.sources.exclusion import EXCLUDED, exclude_option
from dataprep.sources.file_names import TAR_ENDING, is_clutter
from dataprep.sources.label_classes import (
    Classes,
    LabelledEntries,
    classes_from_names,
    classes_with_own_numbers,
)
from dataprep.sources.local_tree import Tree
from dataprep.sources.options import WebDatasetOptions
from dataprep.sources.protocol import Listing, Located, Problem
from dataprep.sources.split_files import refuse_file_splits
from dataprep.sources.tar_index import EMPTY
from dataprep.sources.tar_source import TarSource, interned_texts
from dataprep.sources.webdataset_samples import (
    MAX_JSON_BYTES,
    Member,
    SampleReader,
    key_and_extension,
)
from dataprep.stores import StoreOptions
from dataprep.threaded_map import in_order

_MAX_EXTENSIONS_SHOWN = 10


@dataclass
class _Entries(LabelledEntries[str]):
    """The entries of WebDataset tars. The label of a sample without a class is empty.

    Attributes:
        tars: the tars that have members.
    """

    tars: list[str] = field(default_factory=list)


class WebDataset(TarSource):
    """Images in WebDataset tars. The class of an image is in another member of its sample.

    ``uri`` is one tar, or a folder of tars. The image ``0001.jpg`` in ``train-000.tar`` of a folder
    is called ``train-000/0001.jpg``. The index of a tar contains the content of the small members
    that give the classes.
    """

    kind = "webdataset"

    def __init__(
        self,
        uri: str,
        options: StoreOptions | None = None,
        section: WebDatasetOptions | None = None,
    ) -> None:
        self._section = section or WebDatasetOptions()
        super().__init__(uri, options, self._section.cache)

    def list(self) -> Listing:
        """List the image of each sample, and a member with a problem for each other sample.

        Files and members that belong to no sample are listed, too.

        Raises:
            SourceNotFound: no tar has a member.
            SourceError: a tar cannot be read, tars belong to different splits or have equal names
                of samples, or the classes are not clear.
        """
        tree = Tree()
        reader = SampleReader(self._section.label or "", self._exclusion)
        entries = _Entries()
        self._indexed(tree, lambda index: self._add_entries(index, reader, entries))
        if not self._splits_are_classes:
            refuse_file_splits(self.uri, self.kind, "tars", TAR_ENDING, entries.tars)
        self._refuse_equal_names(entries)
        classes = self._classes(entries, reader)
        notes = [*classes.notes, *_notes_of(reader, entries), *tree.notes()]
        return entries.listing(
            classes,
            notes=tuple(notes),
            form="WebDataset tars",
            unread=tuple(tree.unread),
            file_versions=self._versions,
            left_out=tuple(reader.left_out),
        )

    def _add_entries(self, index: pa.Table, reader: SampleReader, entries: _Entries) -> None:
        """Add the entries of an index: the samples of its tars, and files that are not tars.

        Raises:
            SourceError: a file has the name of a tar, but cannot be read as a tar.
        """
        tars = interned_texts(index, "tar")
        tars_and_members = zip(tars, _members_of(index), strict=True)
        for tar, group in groupby(tars_and_members, key=lambda tar_and_member: tar_and_member[0]):
            members: Sequence[Member] = [member for _, member in group]
            # A file that is not a tar, and a tar without members, have no container.
            if not members[0].entry.container:
                for file in members:
                    self._refuse_broken(file)
                    entries.add(file.entry, "", file.problem)
                continue
            if self._section.label:
                members = self._with_large_json(members)
            for row in reader.rows(members):
                entries.add(row.member.entry, row.label, row.problem)
            entries.tars.append(tar)

    def _refuse_broken(self, file: Member) -> None:
        """Refuse a file that has the name of a tar, but cannot be read as a tar.

        Raises:
            SourceError: the samples of the file would be missing.
        """
        reason = file.problem.reason if file.problem else ""
        is_left_out = reason.startswith(EXCLUDED) or is_clutter(file.name)
        if is_left_out or reason == EMPTY or not TAR_ENDING.search(file.name):
            return
        raise SourceError(
            f"{self.uri}: {file.name}: {reason}. Its samples would be missing: fetch it again, or "
            f"leave it out with {exclude_option(file.name)}"
        )

    def _with_large_json(self, members: Sequence[Member]) -> Sequence[Member]:
        """Return the members of a tar, with the content of ``.json`` members from 4 KiB to 1 MiB.

        They are too large for the index, and are read from the tar.
        """
        complete = [*members]
        large: dict[int, Located] = {}
        for row, member in enumerate(members):
            is_json = key_and_extension(member.name)[1] == "json"
            needs_content = member.content is None and member.problem is None
            if is_json and needs_content and member.entry.bytes < MAX_JSON_BYTES:
                large[row] = member.entry
        contents = in_order(self.read, large.values(), self.concurrency - 1)
        for row, content in zip(large, contents, strict=True):
            complete[row] = members[row]._replace(content=content)
        return complete

    def _refuse_equal_names(self, entries: _Entries) -> None:
        """Refuse archives whose samples have the same names, such as ``a.tar`` and ``a.tar.gz``.

        Raises:
            SourceError: two archives have a sample of the same name.
        """
        row_by_name: dict[str, int] = {}
        for row, name in enumerate(entries.names):
            if row in entries.problems:
                continue
            first_row = row_by_name.setdefault(name, row)
            if first_row != row:
                first = entries.containers[first_row].split("!gzip@")[0]
                second = entries.containers[row].split("!gzip@")[0]
                raise SourceError(
                    f"{self.uri}: {first} and {second} both have a sample {name!r}: leave one of "
                    f"them out, as in {exclude_option(second)}"
                )

    def _classes(self, entries: _Entries, reader: SampleReader) -> Classes:
        """The class of each entry.

        If some samples have a class, all samples without a class become failures.

        Raises:
            SourceNotFound, SourceError: some samples have numbers as classes, and others have
                names; or the names of the classes cannot be read, or do not fit.
        """
        names, problems = entries.names, entries.problems
        labels = [*entries.labels]
        for row in problems:
            labels[row] = ""
        numbers: dict[int, int] = {}
        rows_with_names = []
        for row, label in enumerate(labels):
            if is_number(label):
                numbers[row] = int(label)
            elif label:
                rows_with_names.append(row)
        if not (numbers or rows_with_names):
            return Classes(labels, notes=_advice(reader))
        member = ".json" if self._section.label else ".cls"
        if numbers and rows_with_names:
            number_row, name_row = min(numbers), rows_with_names[0]
            raise SourceError(
                f"{self.uri}: {names[number_row]!r} has the number {labels[number_row]} for its "
                f"class and {names[name_row]!r} the name {labels[name_row]!r}, so that labels "
                f"would be guessed: use only numbers or only names in all {member}, or leave them "
                f"out with --exclude '*{member}' and give the classes with --set "
                "labels.ground_truth=FILE"
            )
        for row, label in enumerate(labels):
            if not label and row not in problems:
                reason = f"the sample has no {member}, which gives the class"
                problems[row] = Problem("failed", reason)
        reasons = entries.reasons()
        names_file = self._section.class_names
        label_space = read_class_names(names_file, self._options) if names_file else None
        if numbers:
            classes = classes_with_own_numbers(
                numbers, len(labels), label_space, reasons, "webdataset"
            )
        else:
            classes = classes_from_names(labels, label_space, reasons, self.uri)
        entries.fail(reasons)
        return classes


def _members_of(index: pa.Table) -> Iterator[Member]:
    """The members in an index. A file that is not an archive is one member without a container."""
    rows = zip(
        (os.fsdecode(name) for name in index["name"].to_pylist()),
        interned_texts(index, "container"),
        index["offset"].to_pylist(),
        index["bytes"].to_pylist(),
        index["status"].to_pylist(),
        index["problem"].to_pylist(),
        index["content"].to_pylist(),
        strict=True,
    )
    for name, container, offset, size, status, reason, content in rows:
        problem = None if reason is None else Problem(status, reason)
        yield Member(Located(name, size, container, offset), problem, content)


def _notes_of(reader: SampleReader, entries: _Entries) -> Iterator[str]:
    """Notes for the user about members that are not used, and about empty tars."""
    if reader.ignored:
        most_common = reader.ignored.most_common(_MAX_EXTENSIONS_SHOWN)
        extensions = [f"{count:,} .{escape(extension)}" for extension, count in most_common]
        more = ", ..." if len(reader.ignored) > _MAX_EXTENSIONS_SHOWN else ""
        total = counted(reader.ignored.total(), "member")
        yield f"not used: {total} beside the images ({', '.join(extensions)}{more})"
    empty = [
        entries.names[row] for row, problem in entries.problems.items() if problem.reason == EMPTY
    ]
    if empty:
        yield f"{counted(len(empty), 'archive')} without members: {listed(empty)}"


def _advice(reader: SampleReader) -> tuple[str, ...]:
    """One note that says where the classes may be, for tars without a class."""
    if reader.json_keys:
        return (
            f"no sample has a .cls; their .json have the keys {listed(reader.json_keys)}: --set "
            "webdataset.label=KEY takes the class from one of them",
        )
    if reader.label_key:
        return ("no sample has a .json, which should have the key of webdataset.label",)
    return (
        "no sample has a .cls: --kind ilsvrc takes classes from the names of tars, folders or "
        "images",
    )
