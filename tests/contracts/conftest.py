"""Every registered store, opened at a fresh location for each test."""

from __future__ import annotations

import os
import secrets
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from dataprep.stores import Store, StoreOptions, open_store
from iobench.servers.moto_server import MotoServer
from tests.servers.radosgw import RadosGateway

SCHEMES = sorted(entry_points(group="dataprep.stores").names)


def _third_party(scheme: str) -> str:
    """Where a store of another package may write: the value of ``DATAPREP_CONTRACT_<SCHEME>``."""
    variable = f"DATAPREP_CONTRACT_{scheme.upper()}"
    if variable not in os.environ:
        pytest.skip(f"set {variable} to a URI below which these tests may write")
    return f"{os.environ[variable].rstrip('/')}/{secrets.token_hex(6)}"


def open_fresh(scheme: str, request: pytest.FixtureRequest) -> Store:
    """Open an empty, prepared store of this scheme."""
    options = None
    if scheme == "s3":
        bucket: str = request.getfixturevalue("bucket")
        server: MotoServer = request.getfixturevalue("s3_server")
        uri, options = f"s3://{bucket}/some/prefix", StoreOptions(endpoint_url=server.url)
    elif scheme == "s3-radosgw":
        gateway: RadosGateway = request.getfixturevalue("radosgw")
        bucket = request.getfixturevalue("radosgw_bucket")
        uri, options = f"s3://{bucket}/some/prefix", StoreOptions(endpoint_url=gateway.url)
    elif scheme == "file":
        folder: Path = request.getfixturevalue("tmp_path")
        uri = str(folder / "store")
    elif scheme == "memory":
        uri = f"memory://{secrets.token_hex(6)}"
    else:
        uri = _third_party(scheme)
    store = open_store(uri, options)
    store.prepare()
    return store


@pytest.fixture(params=[*SCHEMES, "s3-radosgw"])
def store(request: pytest.FixtureRequest) -> Store:
    """An empty store: one for each registered scheme, and one on a second S3 server."""
    return open_fresh(request.param, request)
