"""Tests of dataprep.sources.sizes."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from dataprep.errors import PermissionRefused
from dataprep.sources.sizes import MISSING, UNREADABLE, sizes_of
from dataprep.stores import StoreOptions
from dataprep.stores.local import LocalStore
from dataprep.stores.s3 import S3Store
from iobench.faults import FaultProxy, Match, Rule, Status
from iobench.s3_server import MotoServer

DENIED = Status(403, "AccessDenied", "Access Denied")


@pytest.fixture
def proxy(s3_server: MotoServer, bucket: str) -> Iterator[FaultProxy]:
    """A proxy that counts requests."""
    with FaultProxy(s3_server.url) as running:
        yield running


@pytest.fixture
def store(proxy: FaultProxy, bucket: str) -> S3Store:
    """A prefix of a bucket, seen through the proxy."""
    return S3Store(f"s3://{bucket}/{secrets.token_hex(3)}", StoreOptions(endpoint_url=proxy.url))


def fill(store: S3Store, proxy: FaultProxy, keys: list[str]) -> None:
    """Objects as long as their keys; the requests so far forgotten."""
    client = store._client()
    for key in keys:
        client.put_object(Bucket=store._bucket.name, Key=store._bucket.prefix + key, Body=key)
    proxy.clear()


def requests(proxy: FaultProxy) -> Counter[str]:
    """How many requests of each method."""
    return Counter(request.method for request in proxy.requests)


def test_files_have_their_sizes_or_a_reason(tmp_path: Path) -> None:
    """Each key in order: bytes, or why there are none; a folder is no file."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "a").write_bytes(b"12345")
    found = sizes_of(LocalStore(str(tmp_path)), ["a", "gone", "folder", "a"])
    assert found == [5, MISSING, MISSING, 5]


def test_many_files_are_answered_in_order(tmp_path: Path) -> None:
    """Side by side or not, sizes are those of their keys."""
    for i in range(300):
        (tmp_path / str(i)).write_bytes(bytes(i))
    assert sizes_of(LocalStore(str(tmp_path)), [str(i) for i in range(300)]) == list(range(300))


def test_few_objects_are_asked_for_one_by_one(store: S3Store, proxy: FaultProxy) -> None:
    """A HEAD each, and no listing."""
    fill(store, proxy, ["a", "bb"])
    assert sizes_of(store, ["bb", "a", "c", "\udcff"])[:3] == [2, 1, MISSING]
    assert requests(proxy) == {"HEAD": 3}


def test_many_objects_below_one_prefix_are_listed(store: S3Store, proxy: FaultProxy) -> None:
    """One LIST tells them all; only what it does not show is asked for."""
    keys = [f"photos/{i:03}" for i in range(120)]
    fill(store, proxy, [*keys, "photos/other", "elsewhere"])
    assert sizes_of(store, keys) == [len(key) for key in keys]
    assert requests(proxy) == {"GET": 1}
    proxy.clear()
    assert sizes_of(store, [*keys, "photos/gone"])[-1] == MISSING
    assert requests(proxy) == {"GET": 1, "HEAD": 1}


def test_without_the_right_to_list_each_is_asked_for(store: S3Store, proxy: FaultProxy) -> None:
    """Who may read objects need not be allowed to list the bucket."""
    keys = [f"{i:03}" for i in range(120)]
    fill(store, proxy, keys)
    proxy.replace_rules([Rule(Match("GET"), DENIED)])
    assert sizes_of(store, keys) == [3] * 120
    assert requests(proxy)["HEAD"] == 120


def test_one_refused_object_fails_alone_and_all_of_them_the_request(
    store: S3Store, proxy: FaultProxy
) -> None:
    """S3 refuses what is missing where one may not list: not a matter of rights by itself."""
    fill(store, proxy, ["a", "b"])
    proxy.replace_rules([Rule(Match("HEAD", times=1), DENIED)])
    assert sorted(sizes_of(store, ["a", "b"]), key=str) == [1, UNREADABLE]
    proxy.replace_rules([Rule(Match("HEAD"), DENIED)])
    with pytest.raises(PermissionRefused):
        sizes_of(store, ["a", "b"])
