"""The protocols of sources. A source lists its entries, and reads their bytes.

All kinds of source implement ``Source``. The protocols after it are optional: the job uses
``isinstance`` to check whether a source implements them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dataprep.errors import UnreadableImage
from dataprep.labels import LabelSpace
from dataprep.name_encoding import CODEC, to_bytes

REMOTE_READS = 32
"""The number of reads that a worker keeps in flight from a remote store.

If a request takes 50 ms, this gives 640 files per second, which is more than one processor can
convert.
"""


class Problem(NamedTuple):
    """Why an entry is not a sample.

    Attributes:
        status: ``failed`` for an entry that should be a sample; ``skipped`` for other entries.
        reason: the reason in words.
    """

    status: Literal["failed", "skipped"]
    reason: str


Problems = dict[int, Problem]
"""Why entries are not samples, by the row of the entry.

In a listing, a row is the index in its sorted columns. While a source is read, it is the index in
the columns that are not sorted yet.
"""


class Located(NamedTuple):
    """An entry with the location of its bytes.

    Attributes:
        name: the name of the entry in the listing.
        bytes: the number of bytes; an estimate in a source that is ``ReadsRuns``.
        container: the key of the file, or the name of the part of a file, that contains the entry;
            empty if the entry is itself a file.
        offset: the first byte within the container. In a source that is ``ReadsRuns``, it is the
            row within the container.
    """

    name: str
    bytes: int
    container: str = ""
    offset: int = 0


Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Listing:
    """All entries of a source, as columns in the byte order of the names.

    Attributes:
        names: the path of each entry relative to the source, decoded by ``os.fsdecode``.
        sizes: the size of each entry in bytes (int64), as in ``Located``.
        classes: the class of each entry; empty if it has none.
        problems: why entries are not samples, by their row. All other entries are samples.
        containers: the container of each entry, as in ``Located``; an empty sequence if all entries
            are files.
        offsets: the offset of each entry, as in ``Located`` (int64); an empty array if all entries
            are files.
        values: all labels of each entry (float32, rows x labels). The first label is the number of
            the class. None if samples have one label.
        order: the rows in the order of the source, which a job without shuffling keeps (int64).
            None if the order of the source is the order of the names.
        in_runs: whether entries of one container are read together (``ReadsRuns``). Calibration and
            a validation split then use whole containers.
        label_space: the classes as the source numbers them; None to sort them by name.
        notes: messages for the user about how the source was read.
        form: the form of the source in words, such as ``class folders``; empty for the name of its
            kind.
        unread: folders that cannot be read, which is no error because the job leaves them out.
        left_out: files that ``exclude`` leaves out and that are not in the listing.
        file_versions: for entries in containers, the version of each file by its key. A version is
            the ETag, the modification time and size, or the SHA-256 in a manifest. A resumed job
            compares the versions, because a replaced file can have the same size and entries of the
            same sizes.
        label_order: how ``label_space`` orders the classes, in words.
    """

    names: Sequence[str]
    sizes: Integers
    classes: Sequence[str]
    problems: Problems = field(default_factory=dict)
    containers: Sequence[str] = ()
    offsets: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    values: NDArray[np.float32] | None = None
    order: Integers | None = None
    in_runs: bool = False
    label_space: LabelSpace | None = None
    notes: tuple[str, ...] = ()
    form: str = ""
    unread: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    file_versions: Mapping[str, str] = field(default_factory=dict)
    label_order: str = "as the source numbers them"

    @classmethod
    def sorted(
        cls,
        names: Sequence[str],
        sizes: Sequence[int],
        classes: Sequence[str],
        problems: Problems,
        *,
        containers: Sequence[str] = (),
        offsets: Sequence[int] | Integers = (),
        values: NDArray[np.float32] | None = None,
        **attributes: Any,
    ) -> Listing:
        """Sort entries, which are in the order of the source, into a listing.

        The listing keeps the original order as ``order``. Entries with the same name stay in that
        order.

        Args:
            names: the name of each entry.
            sizes: the size of each entry in bytes.
            classes: the class of each entry.
            problems: why entries are not samples, by their index in these columns. The class of an
                entry with a problem is ignored.
            containers: the container of each entry; an empty sequence if all entries are files.
            offsets: the offset of each entry; an empty sequence if all entries are files.
            values: all labels of each entry; None if samples have one label.
            **attributes: further attributes of the listing, which are not columns.
        """
        order = sorted(range(len(names)), key=lambda index: to_bytes(names[index]))
        # Sorting a permutation gives its inverse.
        row_by_index = np.argsort(np.array(order, dtype=np.int64), kind="stable").astype(np.int64)
        sorted_problems = {}
        for index in sorted(problems):
            sorted_problems[int(row_by_index[index])] = problems[index]
        sorted_offsets = np.array(offsets, dtype=np.int64)
        if len(sorted_offsets):
            sorted_offsets = sorted_offsets[order]
        return cls(
            names=[names[index] for index in order],
            sizes=np.array([sizes[index] for index in order], dtype=np.int64),
            classes=["" if index in problems else classes[index] for index in order],
            problems=sorted_problems,
            containers=[containers[index] for index in order] if containers else (),
            offsets=sorted_offsets,
            values=None if values is None else values[order],
            order=row_by_index,
            **attributes,
        )

    def __len__(self) -> int:
        return len(self.names)

    def located(self, row: int) -> Located:
        """Return one entry with its location."""
        name, size_bytes = self.names[row], int(self.sizes[row])
        if not self.containers:
            return Located(name, size_bytes)
        return Located(name, size_bytes, self.containers[row], int(self.offsets[row]))

    def digest(self) -> str:
        """Return the SHA-256 of names, sizes, classes, containers, offsets and ``values``.

        A resumed job compares it with the digest of the planned job.
        """
        digest = hashlib.sha256()
        columns = zip(self.names, self.sizes.tolist(), self.classes, strict=True)
        for name, size, class_name in columns:
            digest.update(b"%s\0%d\0%s\0" % (name.encode(*CODEC), size, class_name.encode(*CODEC)))
        for key, offset in zip(self.containers, self.offsets.tolist(), strict=True):
            digest.update(b"%s\0%d\0" % (key.encode(*CODEC), offset))
        if self.values is not None:
            digest.update(self.values.astype("<f4").tobytes())
        return digest.hexdigest()


class Source(Protocol):
    """A collection of images, with or without classes. It can be pickled for the workers.

    A source may have an attribute ``only_images``. If it is true, every entry should be an image,
    and a file that is not an image is a failure. Otherwise, such a file is skipped unless its name
    is that of an image.

    Attributes:
        concurrency: the number of reads that a worker keeps in flight to hide the latency.
    """

    concurrency: int

    @property
    def uri(self) -> str:
        """The address of the source, without credentials."""
        ...

    def list(self) -> Listing:
        """List all entries, sorted, so that every machine gets the same listing.

        Raises:
            SourceNotFound: the source does not exist, or has no entries.
            SourceError: the source cannot be listed, or can be understood in two ways.
        """
        ...

    def read(self, item: Located) -> bytes:
        """Return the bytes of one entry.

        Raises:
            ImageError: this entry cannot be read. If its file may not be read, the error is an
                ``UnreadableImage``.
            SourceChanged: the entry was removed or replaced since it was listed.
            StoreError: the store failed. Reading the entry again may succeed.
        """
        ...


@runtime_checkable
class ReadsRuns(Protocol):
    """Optional: a source that reads neighbouring entries together.

    A run is a sequence of neighbouring entries in one container. The source can read an entry only
    by reading all entries before it in the container. Therefore a job keeps the order of the source
    (``Listing.order``), and divides its work at the ends of runs. The sizes in the listing are
    estimates: each is the mean size of all entries of the container.
    """

    def read_runs(self, items: Sequence[Located]) -> Iterator[bytes | UnreadableImage]:
        """Yield, in the order of ``items``, the bytes of each entry, or why it cannot be read.

        Raises:
            SourceChanged: a container was removed or replaced since it was listed.
            StoreError: the store failed. Reading the entries again may succeed.
        """
        ...


@runtime_checkable
class OnDisk(Protocol):
    """Optional: a source that may read files on a disk, which every worker must see."""

    def disk_paths(self) -> Sequence[str]:
        """Return the absolute paths of the folders and files; none for a source on S3."""
        ...


@runtime_checkable
class LeavingOut(Protocol):
    """Optional: a source that must know which entries are left out before it finds the classes."""

    def leave_out(self, globs: tuple[str, ...]) -> None:
        """Let ``list`` skip entries that these globs match, as ``sources.exclusion`` defines."""
        ...


@runtime_checkable
class HavingFolders(Protocol):
    """Optional: a source that refuses folders with names of splits by default."""

    def read_splits_as_classes(self) -> None:
        """Let ``list`` read folders with names of splits as classes."""
        ...


@runtime_checkable
class Announcing(Protocol):
    """Optional: a source that tells the user before steps of ``list`` that take long."""

    def announce_to(self, note: Callable[[str], None]) -> None:
        """Let ``list`` call ``note`` with a message before each step that takes long."""
        ...
