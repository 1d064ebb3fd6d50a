"""Objects of a split, for as long as it is the split whose manifest was opened.

``--overwrite`` and ``--retry-failed`` remove the manifest before they touch anything else, and
write the next one when all else is stored. So whatever was read belongs to the manifest that was
opened, if that manifest was still there *after* the reading. It is looked for once an object and
process (one HEAD, or one file opened); later reads give the same version of the object, or it is
looked for again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from functools import lru_cache
from typing import NamedTuple

from dataprep import keys
from dataprep.errors import DatasetChanged, DatasetError, ObjectNotFound
from dataprep.manifest import Manifest
from dataprep.stores import Store
from dataprep.stores.protocol import GetVersioned, Versioned, location

_READINGS = 4


class Opened(NamedTuple):
    """A split's manifest, and its objects."""

    manifest: Manifest
    pinned: Pinned


class Pinned:
    """Reads objects of one split, all of one manifest.

    Can be pickled, in little space, and shared by threads; a copy in another process reads of the
    same manifest. Of a store that tells no versions the manifest itself is read after each object.

    Attributes:
        store: by which it reads.
    """

    def __init__(self, store: Store, split: str, identity: str, version: str) -> None:
        self.store, self._split = store, split
        self._identity, self._version = identity, version
        self._pins = _pins(store.uri, identity)

    @classmethod
    def open(cls, store: Store, split: str) -> Opened:
        """The manifest of a complete split.

        Raises:
            ObjectNotFound: there is none.
            SchemaTooNew, DatasetError: none that can be read.
        """
        manifest, version = _manifest(store, split)
        return Opened(manifest, cls(store, split, _identity(manifest), version))

    def __reduce__(self) -> tuple[type[Pinned], tuple[Store, str, str, str]]:
        return Pinned, (self.store, self._split, self._identity, self._version)

    def by(self, store: Store) -> Pinned:
        """The same split, read by another store: one of a process of its own."""
        return Pinned(store, self._split, self._identity, self._version)

    def manifest(self) -> Manifest:
        """As it was opened, read again.

        Raises:
            DatasetChanged: it says something else of the shards by now, or is gone.
        """
        with self._gone():
            manifest, version = _manifest(self.store, self._split)
        if _identity(manifest) != self._identity:
            raise self._changed("another has been made in its place")
        self._version = version
        return manifest

    def get(self, key: str) -> bytes:
        """All of an object.

        Raises:
            DatasetChanged: the split is another by now, or none.
            ObjectNotFound: it is the same, and the object is missing.
        """
        return self._read(key, 0, None)

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        """Part of an object; raises as ``get``."""
        return self._read(key, offset, length)

    def accepts(self, key: str, version: str) -> bool:
        """Whether what was read of ``key``, by now, is of the manifest; if not, read it again.

        Raises:
            DatasetChanged: the split is another by now, or none.
        """
        if version and self._pins.get(key) == version:
            return True
        if not self._is_current():
            return False
        self._pins[key] = version
        return True

    def check(self) -> None:
        """What was read before this call is of the manifest.

        Raises:
            DatasetChanged: the split is another by now, or none.
        """
        while not self._is_current():
            pass

    @contextlib.contextmanager
    def unchanged(self) -> Iterator[None]:
        """For what the block reads by other ways: it counts only if nothing changed meanwhile.

        Raises:
            DatasetChanged: it did, also where the block failed for that reason.
        """
        try:
            yield
        except (DatasetError, ObjectNotFound):
            self.check()
            raise
        self.check()

    def _read(self, key: str, offset: int, length: int | None) -> bytes:
        for _ in range(_READINGS):
            try:
                with present(self.store, key):
                    data, version = _versioned(self.store, key, offset, length)
            except ObjectNotFound:
                self.check()
                raise
            if self.accepts(key, version):
                return data
        raise self._changed(f"it was written anew {_READINGS} times while {key} was read")

    def _is_current(self) -> bool:
        """Whether the manifest still is the very one that was read; if not, it is read again.

        Raises:
            DatasetChanged: it is gone, or says something else of the shards.
        """
        before = self._version
        if isinstance(self.store, GetVersioned) and before:
            with self._gone():
                if self.store.version(keys.manifest(self._split)) == before:
                    return True
        self.manifest()
        return self._version == before

    @contextlib.contextmanager
    def _gone(self) -> Iterator[None]:
        try:
            yield
        except ObjectNotFound:
            raise self._changed("its manifest is gone: it is being made anew") from None
        except DatasetError:
            raise self._changed("its manifest cannot be read any more") from None

    def _changed(self, why: str) -> DatasetChanged:
        return DatasetChanged(
            f"the data set changed: split {self._split!r} of {self.store.uri} is not the one that "
            f"was opened ({why}). What was read before belongs together; open it again once it is "
            "complete"
        )


@contextlib.contextmanager
def present(store: Store, key: str) -> Iterator[None]:
    """Whatever word a store has for an object that is not there, as one that says where.

    Raises:
        ObjectNotFound: it is not there.
    """
    try:
        yield
    except ObjectNotFound:
        raise ObjectNotFound(
            f"{location(store, key)} is missing: dataprep verify {store.uri} says what else is"
        ) from None


@lru_cache(maxsize=64)
def _pins(uri: str, identity: str) -> dict[str, str]:
    """By key the version that was found to be of this manifest: known to this process for good."""
    return {}


def _identity(manifest: Manifest) -> str:
    """The same for manifests of the same shards, made from the same."""
    formats = {name: asdict(entry) for name, entry in manifest.formats.items()}
    said = json.dumps([manifest.fingerprint, formats], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()


def _manifest(store: Store, split: str) -> tuple[Manifest, str]:
    key = keys.manifest(split)
    data, version = _versioned(store, key, 0, None)
    version = version or hashlib.sha256(data).hexdigest()
    return Manifest.from_json(data, location(store, key)), version


def _versioned(store: Store, key: str, offset: int, length: int | None) -> Versioned:
    if isinstance(store, GetVersioned):
        return store.get_versioned(key, offset, length)
    data = store.get(key) if length is None else store.get_range(key, offset, length)
    return Versioned(data, "")
