"""Tests of dataprep.sources.scan_cache, through the source that uses it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dataprep.sources import open_source, records, scan_cache
from dataprep.sources.options import RecordsOptions
from dataprep.sources.record_scan import scan
from dataprep.stores import Store, StoreOptions, open_store
from dataprep.stores.s3 import S3Store
from iobench.s3_server import MotoServer
from tests.dataprep.sources.shards import customary, examples, flipped

ROWS: list[dict[str, bytes | int]] = [
    {**customary(1), "image/class/text": b"\xff text"},
    {**customary(2), "image/filename": b"a\tb.jpg"},
    {"image/encoded": b"x", "image/class/label": 3, "image/class/synset": b"n00000003"},
]


@pytest.fixture(params=["file", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Two shards, one of them damaged, on a disk and on S3."""
    shard, spans = examples(ROWS)
    if request.param == "s3":
        bucket: str = request.getfixturevalue("bucket")
        server: MotoServer = request.getfixturevalue("s3_server")
        made: Store = S3Store(f"s3://{bucket}/p", StoreOptions(endpoint_url=server.url))
    else:
        made = open_store(tmp_path / "shards")
        made.prepare()
    made.put("train-00000-of-00002", shard)
    made.put("train-00001-of-00002", flipped(examples([customary(7)])[0], spans[0][0] + 40))
    return made


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many shards each pass went through."""
    counted: list[int] = []

    def counting(*arguments: Any) -> Any:
        counted.append(len(arguments[1]))
        return scan(*arguments)

    monkeypatch.setattr(records, "scan", counting)
    return counted


def digest(store: Store, cache: Path) -> tuple[str, list[str]]:
    """The listing's digest, and why some of it is no sample."""
    options = getattr(store, "options", None)
    section = RecordsOptions(cache=str(cache))
    listing = open_source(store.uri, "records", options, section).list()
    return listing.digest(), [problem.reason for problem in listing.problems.values()]


def test_a_second_run_goes_through_nothing(
    store: Store, tmp_path: Path, passes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The listing is the same, damage and odd names included, until a shard changes."""
    monkeypatch.setattr(scan_cache, "KEPT_FROM_BYTES", 1)
    cache = tmp_path / "cache"
    first = digest(store, cache)
    assert digest(store, cache) == first
    assert passes == [2]
    assert len(first[1]) == 1
    store.put("train-00001-of-00002", examples([customary(8)])[0])
    if not isinstance(store, S3Store):
        os.utime(tmp_path / "shards/train-00001-of-00002", ns=(1, 1))
    assert digest(store, cache) != first
    assert passes == [2, 2]


def test_a_broken_file_counts_as_missing(
    store: Store, tmp_path: Path, passes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made anew; a folder that cannot be written to keeps nothing and disturbs nobody."""
    monkeypatch.setattr(scan_cache, "KEPT_FROM_BYTES", 1)
    cache = tmp_path / "cache"
    first = digest(store, cache)
    (kept,) = cache.iterdir()
    kept.write_bytes(kept.read_bytes()[:-9])
    assert digest(store, cache) == first
    (tmp_path / "file").write_text("")
    assert digest(store, tmp_path / "file") == first
    assert passes == [2, 2, 2]


def test_small_sources_leave_nothing_behind(store: Store, tmp_path: Path) -> None:
    """What takes no time is not kept."""
    digest(store, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()
