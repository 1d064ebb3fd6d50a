"""``If-Match``: what each S3 server makes of it, and what the store makes of the server."""

from __future__ import annotations

import pytest

from dataprep.errors import StoreError
from dataprep.stores import StoreOptions
from dataprep.stores.s3 import S3Store
from iobench.faults import FaultProxy, Match, Rule, Status
from iobench.s3_server import MotoServer
from tests.servers.radosgw import RadosGateway

Server = MotoServer | RadosGateway


@pytest.fixture(scope="session")
def s3_server(each_s3_server: Server) -> Server:
    """Ceph's gateway compares the quotes of ``If-Match`` along."""
    return each_s3_server


@pytest.fixture
def store(s3_server: Server, bucket: str) -> S3Store:
    """An empty one."""
    return S3Store(f"s3://{bucket}/p", StoreOptions(endpoint_url=s3_server.url))


def first(store: S3Store) -> str:
    """The ETag of an object under ``key``."""
    etag = store.put("key", b"0").etag
    assert etag
    return etag


def test_what_is_as_it_was_is_replaced(store: S3Store) -> None:
    """Again and again, each time under the ETag that the time before gave."""
    etag = first(store)
    for content in (b"1", b"2"):
        found = store.replace("key", content, etag)
        assert found is not None
        assert store.get("key") == content
        assert store.head("key").etag == found
        etag = found


@pytest.mark.parametrize("known", [False, True], ids=["first", "later"])
def test_what_changed_is_left_alone(store: S3Store, known: bool) -> None:
    """Also once it is known how the server wants to be asked."""
    etag = first(store)
    if known:
        assert store.replace("key", b"1", etag) is not None
    store.put("key", b"another one's")
    assert store.replace("key", b"2", etag) is None
    assert store.get("key") == b"another one's"


def test_what_is_gone_stays_gone(store: S3Store) -> None:
    """Nothing is made."""
    etag = first(store)
    store.delete("key")
    assert store.replace("key", b"1", etag) is None
    assert list(store.list()) == []


def test_a_server_that_always_refuses_is_an_error(s3_server: Server, store: S3Store) -> None:
    """Nobody waits for a lease that can never be taken over."""
    etag = first(store)
    refused = Rule(Match("PUT"), Status(412, "PreconditionFailed"))
    with FaultProxy(s3_server.url) as proxy:
        proxy.replace_rules([refused])
        through = S3Store(store.uri, StoreOptions(endpoint_url=proxy.url))
        with pytest.raises(StoreError, match="refuses If-Match although"):
            through.replace("key", b"1", etag)
        through.close()
    assert store.get("key") == b"0"
