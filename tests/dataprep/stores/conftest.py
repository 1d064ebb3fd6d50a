"""A local store, and the requests that the S3 store sends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from botocore.awsrequest import AWSPreparedRequest
from botocore.httpsession import URLLib3Session

from dataprep.stores import StoreOptions
from dataprep.stores.local import LocalStore
from dataprep.stores.s3 import S3Store
from iobench.servers.moto_server import MotoServer


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    """A prepared store in an empty directory."""
    store = LocalStore(str(tmp_path / "store"))
    store.prepare()
    return store


@dataclass(frozen=True)
class Sent:
    """One request as it was sent, with names of headers in lower case."""

    method: str
    path: str
    query: str
    headers: dict[str, str]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Sent]:
    """Every request that botocore sends from now on."""
    requests: list[Sent] = []
    send = URLLib3Session.send

    def recording(session: URLLib3Session, request: AWSPreparedRequest) -> object:
        url = urlsplit(request.url)
        headers = {
            name.lower(): value.decode() if isinstance(value, bytes) else str(value)
            for name, value in dict[str, object](request.headers.items()).items()
        }
        requests.append(Sent(request.method or "", unquote(url.path), url.query, headers))
        return send(session, request)

    monkeypatch.setattr(URLLib3Session, "send", recording)
    return requests


OpenS3 = Callable[..., S3Store]


@pytest.fixture
def open_s3(s3_server: MotoServer, bucket: str) -> OpenS3:
    """A function that opens the test's bucket, or another one, with options."""

    def open_(prefix: str = "prefix", *, into: str = bucket, **options: object) -> S3Store:
        settings = {"endpoint_url": s3_server.url, "max_attempts": 2, **options}
        return S3Store(f"s3://{into}/{prefix}", StoreOptions.model_validate(settings))

    return open_
