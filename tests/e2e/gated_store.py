"""Stores that stop a job at an exact object, registered like the stores of another package.

``GATE`` is ``KEY-PREFIX=COUNT``. The process stops before it writes the COUNT-th object under the
prefix, or before it removes that object for ``delete:KEY-PREFIX``. It ends as by ``kill -9``
(``GATE_KILLS=1``), or it makes ``GATE_FILE`` and waits for ``GATE_FILE + ".open"``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from dataprep.stores import Buffer, ObjectInfo, StoreOptions
from dataprep.stores.local import LocalStore
from dataprep.stores.protocol import Upload
from dataprep.stores.s3 import S3Store

ENTRY_POINTS = {
    "dataprep.stores": {
        "gated": "tests.e2e.gated_store:GatedLocalStore",
        "gateds3": "tests.e2e.gated_store:GatedS3Store",
    }
}

_LOCK = threading.Lock()
_seen = 0


@contextlib.contextmanager
def gate(key: str) -> Iterator[None]:
    """Stop here if ``key`` is the object of the gate.

    If the process is to end, objects under the prefix are stored one after the other, so that all
    objects that were counted before are stored.
    """
    prefix, _, count = os.environ["GATE"].partition("=")
    if not key.startswith(prefix):
        yield
    elif os.environ.get("GATE_KILLS"):
        with _LOCK:
            if _counted() == int(count):
                os.kill(os.getpid(), signal.SIGKILL)
            yield
    else:
        with _LOCK:
            here = _counted() == int(count)
        if here:
            _wait(Path(os.environ["GATE_FILE"]))
        yield


def _counted() -> int:
    """Count an object at the gate. Return the number of objects so far."""
    global _seen
    _seen += 1
    return _seen


def _wait(marker: Path) -> None:
    """Make the marker, and wait until the gate is open."""
    marker.touch()
    while not marker.with_suffix(".open").exists():
        time.sleep(0.01)


class GatedLocalStore(LocalStore):
    """A local store with a gate: ``gated:///path``."""

    def __init__(self, uri: str, options: StoreOptions | None = None) -> None:
        super().__init__(uri.removeprefix("gated://"), options)

    def put_pieces(self, key: str, pieces: Iterable[Buffer]) -> ObjectInfo:
        """Store an object as the parent class does, behind the gate."""
        with gate(key):
            return super().put_pieces(key, pieces)

    def create(self, key: str, data: Buffer) -> bool:
        """Create an object as the parent class does, behind the gate."""
        with gate(key):
            return super().create(key, data)

    def delete(self, key: str) -> None:
        """Delete an object as the parent class does, behind the gate ``delete:KEY``."""
        with gate(f"delete:{key}"):
            super().delete(key)


class GatedS3Store(S3Store):
    """An S3 store with a gate: ``gateds3://bucket/prefix``."""

    def __init__(self, uri: str, options: StoreOptions | None = None) -> None:
        super().__init__(uri.replace("gateds3://", "s3://"), options)

    def put(self, key: str, data: Buffer) -> ObjectInfo:
        """Store an object as the parent class does, behind the gate."""
        with gate(key):
            return super().put(key, data)

    def create_upload(self, upload: Upload) -> ObjectInfo | None:
        """Create an object as the parent class does, behind the gate. ``create`` calls it too."""
        with gate(upload.key):
            return super().create_upload(upload)
