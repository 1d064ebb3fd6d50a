"""What a source is: its entries, their places and classes, and how they are read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dataprep.errors import UnreadableImage
from dataprep.labels import LabelSpace
from dataprep.names import CODEC, to_bytes

REMOTE_READS = 32
"""Reads in flight from a store behind a network: at 50 ms a request 640 files a second, which is
more than one processor converts."""


class Problem(NamedTuple):
    """Why a listed entry does not become a sample."""

    status: Literal["failed", "skipped"]
    reason: str


Problems = dict[int, Problem]
"""Rows of a listing that are no samples, and why."""


class Located(NamedTuple):
    """The place of the bytes of one entry.

    ``container`` is the key of the file in which they begin at ``offset``. It is empty if the
    entry is a file of its own.
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
        names: relative to the source, as ``os.fsdecode`` makes them.
        sizes: int64 bytes of each entry.
        classes: the class of each entry; empty where it has none.
        problems: row to why it is no sample; rows without one are samples.
        containers: for entries within files, the key of the file of each; else empty.
        offsets: int64 first byte within the container; empty where there are no containers.
        values: float32 labels of shape (rows, k) if samples have several, the class first; else
            None.
        order: int64 rows in the source's own order, which a job without shuffling keeps; None if
            that is the order of the names.
        in_runs: entries of one container are read together, see ``ReadsRuns``, so that
            calibration and a validation split take whole containers.
        label_space: the classes as the source numbers them; None where their names decide.
        notes: notes for the user about how the source was read.
        form: what the source is, in words, such as ``class folders``; empty: the name of its kind.
        unread: folders that are no part of the source by their names, and cannot be read.
        left_out: files of the source that ``exclude`` leaves out, and that are no entries.
        file_versions: for entries within files, the version of each file by its key: its ETag, or
            its modification time and size. A resumed job compares it, since a file of the same
            size can have other entries of the same sizes.
        label_order: how ``label_space`` orders the classes, in words, such as ``as its class_names
            lists them``.
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
        **more: Any,
    ) -> Listing:
        """A listing of rows in the source's own order, which it keeps as ``order``.

        Rows of one name stay in that order. ``more`` are further columns and attributes.
        """
        order = sorted(range(len(names)), key=lambda row: to_bytes(names[row]))
        back = np.argsort(np.array(order, dtype=np.int64), kind="stable")
        for name in ("values", "offsets"):
            if more.get(name) is not None:
                more[name] = np.asarray(more[name])[order]
        if more.get("containers"):
            more["containers"] = [more["containers"][row] for row in order]
        return cls(
            names=[names[row] for row in order],
            sizes=np.array([sizes[row] for row in order], dtype=np.int64),
            classes=["" if row in problems else classes[row] for row in order],
            problems={int(back[row]): problems[row] for row in sorted(problems)},
            order=back.astype(np.int64),
            **more,
        )

    def __len__(self) -> int:
        return len(self.names)

    def located(self, row: int) -> Located:
        """The place of one entry."""
        name, size = self.names[row], int(self.sizes[row])
        if not self.containers:
            return Located(name, size)
        return Located(name, size, self.containers[row], int(self.offsets[row]))

    def digest(self) -> str:
        """SHA-256 over names, sizes, classes and places: what a resumed job compares."""
        digest = hashlib.sha256()
        for name, size, group in zip(self.names, self.sizes.tolist(), self.classes, strict=True):
            digest.update(b"%s\0%d\0%s\0" % (name.encode(*CODEC), size, group.encode(*CODEC)))
        for key, offset in zip(self.containers, self.offsets.tolist(), strict=True):
            digest.update(b"%s\0%d\0" % (key.encode(*CODEC), offset))
        if self.values is not None:
            digest.update(self.values.astype("<f4").tobytes())
        return digest.hexdigest()


class Source(Protocol):
    """A collection of labelled images; picklable, so that workers can read it.

    ``concurrency`` is how many reads a worker keeps in flight to hide the source's latency. A
    source with ``only_images`` true promises that every entry is meant as an image: one that is
    none fails, where in a folder it is passed over by its name.
    """

    concurrency: int

    @property
    def uri(self) -> str:
        """Its address, without credentials."""
        ...

    def list(self) -> Listing:
        """All entries, sorted, so that they are the same everywhere.

        Raises:
            SourceNotFound: nothing there, or nothing in it.
            SourceError: it cannot be listed.
        """
        ...

    def read(self, item: Located) -> bytes:
        """The bytes of one entry.

        Raises:
            UnreadableImage: this one entry may not be read.
            SourceChanged: it is gone since it was listed.
            StoreError: it could not be read this time.
        """
        ...


@runtime_checkable
class ReadsRuns(Protocol):
    """A source whose entries cannot be read singly at their own cost; optional.

    Neighbours in one container are a run, which is read at once. A job keeps the source's own order
    (``Listing.order``), and cuts its work where a run ends. The sizes in its listing are estimates:
    the mean of all entries of a container.
    """

    def read_runs(self, items: Sequence[Located]) -> Iterator[bytes | UnreadableImage]:
        """The bytes of entries in their order, or why one of them cannot be read.

        Raises:
            SourceChanged: a container is gone, or is another one, since it was listed.
            StoreError: it could not be read this time.
        """
        ...


@runtime_checkable
class OnDisk(Protocol):
    """A source that may read files of a disk, which every worker has to see; optional."""

    def disk_paths(self) -> Sequence[str]:
        """Return the absolute paths of these folders and files; none of a source on S3."""
        ...


@runtime_checkable
class LeavingOut(Protocol):
    """A source that must know which entries are left out before it finds the classes."""

    def leave_out(self, globs: tuple[str, ...]) -> None:
        """Have ``list`` skip what these globs match, in the sense of ``sources.exclusion``."""
        ...


@runtime_checkable
class HavingFolders(Protocol):
    """A source that refuses folders that look like splits, unless the job reads them as classes."""

    def read_splits_as_classes(self) -> None:
        """Have ``list`` make classes of folders that look like splits."""
        ...


@runtime_checkable
class Announcing(Protocol):
    """A source that may take long to list and announces it."""

    def announce_to(self, note: Callable[[str], None]) -> None:
        """Have ``note`` called with what costs time, before it does."""
        ...
