"""Where jobs that are killed write: a folder, a bucket, a bucket to which shards go in parts."""

from __future__ import annotations

import os
import secrets
import shutil
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dataprep.stores import StoreOptions
from dataprep.stores.local import PARTIAL, LocalStore
from dataprep.stores.s3 import S3Store
from dataprep.stores.s3_bucket import S3Bucket
from iobench.s3_server import MotoServer
from tests.commandline import comparable, objects
from tests.reliability.parts_store import PartsStore, usual_parts

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class Place(Protocol):
    """An output of one's own, empty after ``renew``."""

    name: str
    arguments: list[str]
    """What a command is told of it, beside ``uri``."""

    uri: str

    def renew(self, content: Mapping[str, bytes] | None = None) -> None:
        """Begin anew, with these objects."""
        ...

    def visible(self) -> set[str]:
        """What can be seen, with what only grows yet as ``growing``."""
        ...

    def made(self) -> dict[str, object]:
        """Its objects, as they have to repeat."""
        ...

    def raw(self) -> dict[str, bytes]:
        """Its objects as they are."""
        ...

    def leftovers(self) -> list[str]:
        """What is there and no object: half-written files, leases, uploads in parts."""
        ...


GROWING = "growing"
_STORES = {"s3": S3Store, "partss3": PartsStore}


class Folder:
    """A directory."""

    def __init__(self, root: Path) -> None:
        self.name = "a folder"
        self._path = root / "out"
        self.uri = str(self._path)
        self.arguments: list[str] = []

    def renew(self, content: Mapping[str, bytes] | None = None) -> None:
        """Remove it, and make it with these files."""
        shutil.rmtree(self._path, ignore_errors=True)
        _fill(LocalStore(self.uri), content)

    def visible(self) -> set[str]:
        """Files by key; of half-written ones only that there are some."""
        walk = os.walk(self._path)  # it minds no folder that is gone meanwhile
        found = {
            os.path.relpath(Path(at) / name, self._path) for at, _, names in walk for name in names
        }
        growing = any(Path(name).parent.name == PARTIAL for name in found)
        return found | ({GROWING} if growing else set())

    def made(self) -> dict[str, object]:
        """Without what may differ from run to run."""
        return comparable(self.raw())

    def raw(self) -> dict[str, bytes]:
        """As they are."""
        return objects(LocalStore(self.uri))

    def leftovers(self) -> list[str]:
        """Whatever lies below ``.partial``, itself included."""
        return sorted(str(path) for path in self._path.rglob("*") if PARTIAL in path.parts)


class Bucket:
    """A prefix of a bucket of moto's server."""

    def __init__(self, server: MotoServer, scheme: str = "s3") -> None:
        self.name = "S3" if scheme == "s3" else "S3, in parts"
        self._server, self._scheme = server, scheme
        self._options = StoreOptions(endpoint_url=server.url)
        self.arguments = ["--endpoint-url", server.url]
        self._open("")

    def renew(self, content: Mapping[str, bytes] | None = None) -> None:
        """Forget all that the server holds; another bucket, with these objects."""
        reset = urllib.request.Request(f"{self._server.url}/moto-api/reset", method="POST")
        with urllib.request.urlopen(reset, timeout=60):
            pass
        name = f"killed-{secrets.token_hex(6)}"
        self._server.create_bucket(name)
        self._open(name)
        with usual_parts():
            _fill(_STORES[self._scheme](self.uri, self._options), content)

    def visible(self) -> set[str]:
        """Objects by key, and whether an upload in parts is under way."""
        found = {info.key for info in self._store.list()}
        return found | ({GROWING} if self._uploads() else set())

    def made(self) -> dict[str, object]:
        """Without what may differ from run to run."""
        return comparable(self.raw())

    def raw(self) -> dict[str, bytes]:
        """As they are, but for leases."""
        found = objects(self._store)
        return {key: data for key, data in found.items() if not key.startswith("leases/")}

    def leftovers(self) -> list[str]:
        """Leases and uploads in parts."""
        leases = [info.key for info in self._store.list("leases/")]
        return leases + [f"upload of {item['Key']}" for item in self._uploads()]

    def _open(self, bucket: str) -> None:
        self._bucket = bucket
        self.uri = f"{self._scheme}://{bucket}/out"
        if bucket:
            self._store = S3Store(f"s3://{bucket}/out", self._options)
            self._client: S3Client = S3Bucket(f"s3://{bucket}", self._options).connect()

    def _uploads(self) -> list[Any]:
        return list(self._client.list_multipart_uploads(Bucket=self._bucket).get("Uploads", []))


def _fill(store: LocalStore | S3Store, content: Mapping[str, bytes] | None) -> None:
    if content:
        store.prepare()
    for key, data in (content or {}).items():
        store.put(key, data)
