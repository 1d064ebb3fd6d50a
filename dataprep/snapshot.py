"""Read a split as it was opened, or fail once it is made anew.

``--overwrite`` and ``--retry-failed`` remove the manifest before they change anything else and
write the next one last. So bytes belong to the manifest that was opened if that manifest is still
there after they were read. Each process checks this at most once per object, with one HEAD request
or one file opened. Objects that are read together share a check. The same version of an object is
read again without a check.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from dataprep import keys
from dataprep.errors import DatasetChanged, DatasetError, ObjectNotFound
from dataprep.manifest import Manifest
from dataprep.stores.protocol import GetVersioned, Store, Versioned, location


class Snapshot:
    """Reads objects of one split while its manifest stays the one that was opened.

    It can be pickled, in little space, and shared by threads. A copy in another process accepts
    the same manifest only. If a store reports no versions, the manifest is read after each object.

    Attributes:
        store: the store that it reads.
    """

    def __init__(self, store: Store, split: str, digest: str, version: str) -> None:
        self.store = store
        self._split, self._digest, self._version = split, digest, version
        self._confirmed: dict[str, str] = {}

    @classmethod
    def open(cls, store: Store, split: str) -> tuple[Manifest, Snapshot]:
        """The manifest of a complete split, and a snapshot of its objects.

        Raises:
            ObjectNotFound: the split has no manifest.
            SchemaTooNew, DatasetError: the manifest cannot be read.
        """
        key = keys.manifest(split)
        data, version = _get(store, key, 0, None)
        manifest = Manifest.from_json(data, location(store, key))
        return manifest, cls(store, split, hashlib.sha256(data).hexdigest(), version)

    def __reduce__(self) -> tuple[Any, ...]:
        return Snapshot, (self.store, self._split, self._digest, self._version)

    def manifest(self) -> Manifest:
        """The manifest, read again.

        Raises:
            DatasetChanged: it is gone, or another one.
        """
        try:
            manifest, found = Snapshot.open(self.store, self._split)
        except (ObjectNotFound, DatasetError):
            raise self._changed("its manifest is gone") from None
        if found._digest != self._digest:
            raise self._changed("it has another manifest")
        self._version = found._version
        return manifest

    def check(self) -> None:
        """Confirm that everything read before this call belongs to the manifest.

        Raises:
            DatasetChanged: the split was made anew since it was opened, or is being.
        """
        key = keys.manifest(self._split)
        with suppress(ObjectNotFound):
            if isinstance(self.store, GetVersioned) and self.store.version(key) == self._version:
                return
        self.manifest()

    def confirm(self, versions: Mapping[str, str]) -> None:
        """Confirm that these versions of objects, which were just read, belong to the manifest.

        A single check serves all of them. It is not needed if all were confirmed before.

        Args:
            versions: the version of each object that was read, by key; "" where the store reports
                none.

        Raises:
            DatasetChanged: as ``check``.
        """
        for key, version in versions.items():
            if not version or self._confirmed.get(key) != version:
                self.check()
                self._confirmed.update(versions)
                return

    def get(self, key: str) -> bytes:
        """All bytes of an object.

        Raises:
            DatasetChanged: the split was made anew since it was opened, or is being.
            ObjectNotFound: it was not, and the object is missing.
        """
        return self.get_range(key, 0, None)

    def get_range(self, key: str, offset: int, length: int | None) -> bytes:
        """``length`` bytes of an object from ``offset``, or all that follow; raises as ``get``."""
        data, version = self.get_unconfirmed(key, offset, length)
        self.confirm({key: version})
        return data

    def get_unconfirmed(self, key: str, offset: int, length: int | None) -> Versioned:
        """As ``get_range``, for a caller that confirms several reads at once.

        Nobody may use the bytes before ``confirm`` has accepted their version.
        """
        try:
            return _get(self.store, key, offset, length)
        except ObjectNotFound:
            self.check()
            raise ObjectNotFound(
                f"{location(self.store, key)} is missing: "
                f"dataprep verify {self.store.uri} lists all faults"
            ) from None

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Confirm what the block reads by other means.

        Raises:
            DatasetChanged: as ``check``, also in place of an error of the block that this explains.
        """
        try:
            yield
        except (DatasetError, ObjectNotFound):
            self.check()
            raise
        self.check()

    def _changed(self, why: str) -> DatasetChanged:
        return DatasetChanged(
            f"the data set changed: split {self._split!r} of {self.store.uri} was made anew since "
            f"it was opened ({why}). Samples read before are consistent; open it again when it is "
            "complete"
        )


def _get(store: Store, key: str, offset: int, length: int | None) -> Versioned:
    if isinstance(store, GetVersioned):
        return store.get_versioned(key, offset, length)
    data = store.get(key) if length is None else store.get_range(key, offset, length)
    return Versioned(data, "")
