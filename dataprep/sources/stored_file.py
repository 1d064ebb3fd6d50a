"""A file or object that a source reads in ranges, as long as the file has not changed.

Tars, Parquet files and shards are read in this way. Each read checks that the file still has the
version that was listed, so that a replaced file is noticed.
"""

from __future__ import annotations

import contextlib
import io
import os
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from dataprep.errors import SourceChanged
from dataprep.stores import Store
from dataprep.stores.local import LocalStore
from dataprep.stores.protocol import GetVersioned, location

_LOCAL_BUFFER_BYTES = 2**15
_REMOTE_BUFFER_BYTES = 2**21


@dataclass(frozen=True)
class StoredFile:
    """A file or object in the version in which it was listed.

    Two objects for the same version of a file are equal, also in different processes, so that they
    can be keys of a cache.

    Attributes:
        uri: the address for messages.
        store: the store that contains the file.
        address: the absolute path, or the address in a remote store. It identifies the file.
        key: the key in the store.
        size: the number of bytes.
        version: the ETag, or the modification time and size; empty to accept any version.
    """

    uri: str = field(compare=False)
    store: Store = field(compare=False)
    address: str
    key: str
    size: int
    version: str

    @classmethod
    def now(cls, store: Store, key: str) -> StoredFile:
        """Return the file at ``key`` in its current version.

        Raises:
            ObjectNotFound: there is no such file.
            StoreError: the store does not answer.
        """
        uri = address = location(store, key)
        version = store.version(key) if isinstance(store, GetVersioned) else ""
        if isinstance(store, LocalStore):
            # Leave out the inode number, which machines that share a disk may see differently.
            version = version.partition("-")[2]
            address = os.path.abspath(uri)  # noqa: PTH100
        return cls(uri, store, address, key, store.head(key).bytes, version)

    def read(self, offset: int, length: int) -> bytes:
        """Return ``length`` bytes from ``offset``, or fewer at the end of the file.

        Raises:
            SourceChanged: the file was replaced or removed since it was listed.
            StoreError: the store failed. Reading again may succeed.
        """
        with contextlib.suppress(FileNotFoundError):
            if not self.version:
                return self.store.get_range(self.key, offset, length)
            store: Any = self.store  # The store is a GetVersioned, because there is a version.
            data, version = store.get_versioned(self.key, offset, length)
            # The version of a file on a disk begins with the inode number, which ``now`` left out.
            if version == self.version or version.endswith(f"-{self.version}"):
                return bytes(data)
        raise changed_since_listed(self.uri)

    def open(self, end: int) -> BinaryIO:
        """Open the bytes before byte ``end`` as a buffered file."""
        is_local = isinstance(self.store, LocalStore)
        buffer_bytes = _LOCAL_BUFFER_BYTES if is_local else _REMOTE_BUFFER_BYTES
        return io.BufferedReader(StoredFileReader(self, end), buffer_bytes)


def changed_since_listed(title: str) -> SourceChanged:
    """Return the error for a file that has changed. The message begins with ``title``."""
    return SourceChanged(
        f"{title} was changed or removed since it was listed: restore it, or start again with "
        "--overwrite"
    )


class StoredFileReader(io.RawIOBase):
    """A file object over the first ``size`` bytes of a stored file."""

    def __init__(self, file: StoredFile, size: int) -> None:
        self._file, self._size, self._position = file, size, 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the position of the next byte, and return it."""
        bases = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}
        self._position = bases[whence] + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill ``buffer``, and return the number of bytes that were read."""
        data = self._read_up_to(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _read_up_to(self, max_bytes: int) -> bytes:
        """Read up to ``max_bytes`` bytes; fewer at the end of the file."""
        length = min(max_bytes, self._size - self._position)
        if length <= 0:
            return b""
        data = self._file.read(self._position, length)
        self._position += len(data)
        return data
