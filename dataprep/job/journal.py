"""Which samples this process has in hand, kept so that the next run finds them if it dies.

Small jobs, and the few conversions by which a job is planned, are done by threads of the program
itself: native code that crashes takes it along. What its threads had in hand stands in a small
file in memory that is shared with the kernel, which the death of a process does not touch.
A run that finds such names converts every sample in processes of their own (``isolation``).

The file lies in the cache folder, by source, output, split and part. Where nothing can be
written there, or another run has it, nothing is kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from dataprep.cache_folder import default_folder
from dataprep.config import ShardConfig
from dataprep.counted import counted
from dataprep.errors import StoreError
from dataprep.names import escape, to_bytes
from dataprep.stores.local_leases import FileLease, take

ISOLATED = "samples are converted in a process of their own, where one that crashes fails alone"
_SLOT_BYTES = 256  # a name that is longer is cut
_SLOTS = 256
_SHOWN = 3


class Journal:
    """One run's; ``path`` None keeps nothing.

    Attributes:
        path: where it is kept.
        isolated: whether samples are to be converted in processes of their own.
        died_over: names that the last run had in hand when it died.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lease: FileLease | None = None
        self._map: mmap.mmap | None = None
        self._free: list[int] = []
        self._mine: dict[int, int] = {}
        self.died_over: tuple[str, ...] = ()
        self.isolated = False

    @classmethod
    def of(cls, config: ShardConfig, use: str) -> Journal:
        """That of a job and a ``use``: the command, and which part."""
        places = (_absolute(config.source), _absolute(config.output), config.split, use)
        name = hashlib.sha256("\0".join(places).encode("utf-8", "surrogateescape")).hexdigest()
        with contextlib.suppress(RuntimeError):  # nobody's home is known
            return cls(default_folder() / "in-hand" / name[:32])
        return cls(None)

    def __enter__(self) -> Journal:
        with contextlib.suppress(OSError, StoreError):
            self._open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if self._map is None or self.path is None or self._lease is None:
            return
        self._free.clear()
        self._mine.clear()
        self._map = None  # a thread that lives on may write to it
        # A run that was isolated and did not end well: the next one is, too.
        if kind is None or not self.died_over:
            self.path.unlink(missing_ok=True)
        self._lease.release()

    def announce(self, note: Callable[[str], None]) -> None:
        """Say what was found, if anything."""
        if self.died_over:
            shown = ", ".join(repr(escape(name)) for name in self.died_over[:_SHOWN])
            more = len(self.died_over) - _SHOWN
            others = f" and {counted(more, 'other')}" if more > 0 else ""
            note(f"the last run died with {shown} in hand{others}: {ISOLATED}")

    def reach(self, name: str) -> None:
        """The calling thread begins to read this sample: a source may have native code too.

        Many may read at a time; half of the places are for those who convert.
        """
        if len(self._free) > _SLOTS // 2:
            self.take(name)

    def reached(self) -> None:
        """It has read it, or could not."""
        self.lay_down()

    def take(self, name: str) -> None:
        """The calling thread begins to convert this sample."""
        held = self._map
        if held is None:
            return
        try:
            slot = self._mine[threading.get_ident()] = self._free.pop()
        except IndexError:
            return
        held[slot : slot + _SLOT_BYTES] = to_bytes(name)[:_SLOT_BYTES].ljust(_SLOT_BYTES, b"\0")

    def lay_down(self) -> None:
        """It is done with it."""
        slot = self._mine.pop(threading.get_ident(), None)
        held = self._map
        if slot is not None and held is not None:
            held[slot] = 0
            self._free.append(slot)

    def _open(self) -> None:
        if self.path is None:
            return
        lease = take(self.path.with_suffix(".lock"), "")
        if not isinstance(lease, FileLease):
            return
        size = _SLOTS * _SLOT_BYTES
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.ftruncate(descriptor, size)
                self._map = mmap.mmap(descriptor, size)
            finally:
                os.close(descriptor)
        except BaseException:
            lease.release()
            raise
        self._lease = lease
        starts = range(0, size, _SLOT_BYTES)
        held = [slot for slot in starts if self._map[slot]]
        self.died_over = tuple(
            os.fsdecode(self._map[slot : slot + _SLOT_BYTES].rstrip(b"\0")) for slot in held
        )
        self.isolated = bool(held)
        self._free = sorted({*starts} - {*held}, reverse=True)


def _absolute(place: str) -> str:
    return place if "://" in place else str(Path(place).absolute())
