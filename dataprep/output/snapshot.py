"""Read a split in the state in which it was opened. Fail if the split has changed since then.

``--overwrite`` and ``--retry-failed`` remove the manifest before they change anything else, and
write the new manifest last. Therefore, if the manifest has not changed after bytes were read, the
bytes belong to this manifest.

A check of the manifest takes one HEAD request, or opens one file. Objects that are read together
share a check. Each process checks the same version of an object only once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from dataprep.errors import DatasetChanged, DatasetError, ObjectNotFound
from dataprep.output import keys
from dataprep.output.manifest import Manifest
from dataprep.stores.protocol import GetVersioned, Store, Versioned, location


class Snapshot:
    """Reads objects of one split, as long as the split still has the manifest that was opened.

    Threads can share a snapshot, and its pickle is small. A copy in another process accepts only
    the same manifest. If a store has no versions, the manifest is read again after each object.

    Args:
        store: the store that contains the split.
        split: the name of the split.
        digest: the SHA-256 of the manifest.
        version: the version of the manifest in the store; empty if it is unknown.

    Attributes:
        store: the store that contains the split.
    """

    def __init__(self, store: Store, split: str, digest: str, version: str) -> None:
        self.store = store
        self._split, self._digest, self._version = split, digest, version
        # The version of each object, by its key, that was found to belong to the manifest.
        self._confirmed: dict[str, str] = {}

    @classmethod
    def open(cls, store: Store, split: str) -> tuple[Manifest, Snapshot]:
        """Return the manifest of a complete split, and a snapshot of its objects.

        Raises:
            ObjectNotFound: the split has no manifest.
            SchemaTooNew, DatasetError: the manifest cannot be read.
        """
        key = keys.manifest(split)
        data, version = _read_versioned(store, key, 0, None)
        manifest = Manifest.from_json(data, location(store, key))
        return manifest, cls(store, split, hashlib.sha256(data).hexdigest(), version)

    def __reduce__(self) -> tuple[Any, ...]:
        return Snapshot, (self.store, self._split, self._digest, self._version)

    def manifest(self) -> Manifest:
        """Read the manifest again, and check that its bytes are the same.

        Raises:
            DatasetChanged: the manifest is missing, cannot be read, or has changed since it was
                opened.
        """
        try:
            manifest, current = Snapshot.open(self.store, self._split)
        except ObjectNotFound:
            raise self._changed("its manifest is gone") from None
        except DatasetError as error:
            raise self._changed(f"its manifest can no longer be read: {error}") from None
        if current._digest != self._digest:
            raise self._changed("it has another manifest")
        # The same bytes may have been stored again, with another version.
        self._version = current._version
        return manifest

    def check(self) -> None:
        """Confirm that all bytes that were read before this call belong to the manifest.

        Raises:
            DatasetChanged: the split has been made again since it was opened, or is being made.
        """
        key = keys.manifest(self._split)
        with suppress(ObjectNotFound):
            if isinstance(self.store, GetVersioned) and self.store.version(key) == self._version:
                return
        self.manifest()

    def confirm(self, versions: Mapping[str, str]) -> None:
        """Confirm that versions of objects that were just read belong to the manifest.

        One check confirms all of them. There is no check if all were confirmed before.

        Args:
            versions: the version of each object, by its key; empty if the store has no versions.

        Raises:
            DatasetChanged: see ``check``.
        """
        for key, version in versions.items():
            if not version or self._confirmed.get(key) != version:
                self.check()
                self._confirmed.update(versions)
                return

    def get(self, key: str) -> bytes:
        """Return all bytes of an object.

        Raises:
            DatasetChanged: the split has been made again since it was opened, or is being made.
            ObjectNotFound: the object is missing, and the split is unchanged.
        """
        return self.get_range(key, 0, None)

    def get_range(self, key: str, offset: int, length: int | None) -> bytes:
        """Return ``length`` bytes of an object from ``offset``. Raises the errors of ``get``.

        If ``length`` is None, return all bytes from ``offset`` on.
        """
        data, version = self.get_unconfirmed(key, offset, length)
        self.confirm({key: version})
        return data

    def get_unconfirmed(self, key: str, offset: int, length: int | None) -> Versioned:
        """Return the bytes of ``get_range`` and their version, without checking the manifest.

        The caller must use the bytes only after ``confirm`` has accepted their version. One call of
        ``confirm`` can serve many reads.
        """
        try:
            return _read_versioned(self.store, key, offset, length)
        except ObjectNotFound:
            self.check()
            raise ObjectNotFound(
                f"{location(self.store, key)} is missing: "
                f"dataprep verify {self.store.uri} lists all faults"
            ) from None

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Check the manifest after the ``with`` block, which reads the split without this class.

        Raises:
            DatasetChanged: see ``check``. If the split has changed, it also replaces a DatasetError
                or ObjectNotFound of the block.
        """
        try:
            yield
        except (DatasetError, ObjectNotFound):
            self.check()
            raise
        self.check()

    def _changed(self, reason: str) -> DatasetChanged:
        """Return the error for a split that was made again."""
        return DatasetChanged(
            f"the data set changed: split {self._split!r} of {self.store.uri} was made again "
            f"since it was opened ({reason}). Samples read before are consistent. Open it again "
            "when it is complete"
        )


def _read_versioned(store: Store, key: str, offset: int, length: int | None) -> Versioned:
    """Return bytes of an object; without a version if the store has none."""
    if isinstance(store, GetVersioned):
        return store.get_versioned(key, offset, length)
    if length is None:
        return Versioned(store.get(key)[offset:], "")
    return Versioned(store.get_range(key, offset, length), "")
