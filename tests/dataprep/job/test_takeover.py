"""A run whose lock was taken over changes nothing, and a later run uses the stored shards."""

from __future__ import annotations

import json
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import dataprep
from dataprep.drawn import draw_tree
from dataprep.errors import Changes, LeaseLost, TooManyFailures
from dataprep.job import prepare
from dataprep.job.lock import Locks
from dataprep.job.output_state import read_job, read_plan
from dataprep.job.retry import remove_for_retry
from dataprep.stores import ObjectInfo, Store, StoreOptions, open_store
from dataprep.stores.local import LocalStore
from dataprep.stores.memory import MemoryStore
from dataprep.stores.protocol import Upload
from dataprep.stores.s3 import S3Store
from iobench.servers.moto_server import MotoServer
from tests.commandline import comparable, objects

SMALL = {"size": 64, "quality": 95}
SETTINGS: dict[str, Mapping[str, Any]] = {
    "another quality": {**SMALL, "quality": 40},
    "another number of shards": {},  # unchanged, the photos do not fit into one shard
}
WRITTEN = ("tfrecord/", "index/tfrecord/", "receipts/", "train.samples", "train.manifest")


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few photos. Read only."""
    return draw_tree(tmp_path_factory.mktemp("few") / "photos", images=30, classes=2, seed=1).root


def job(photos: Path, output: str, image: Mapping[str, Any], **more: Any) -> dataprep.ShardConfig:
    """The config of a job of one or two shards."""
    return dataprep.ShardConfig.model_validate(
        {
            "source": str(photos),
            "output": output,
            "image": image,
            "shard_size": "1MB",
            "dask": {"workers": 1, "processes": False},
            **more,
        }
    )


def fresh() -> str:
    """The address of an empty store."""
    return f"memory://{secrets.token_hex(6)}"


def is_taken_over_from(
    photos: Path, output: str, alone: str, settings: str, location: str, creating: tuple[type, str]
) -> None:
    """Another run starts and completes the output just before an object is created.

    At most this object remains, under a name that the other run does not use, and verify names it.
    ``alone`` is an output in which the other run writes the same again, and ``creating`` is the
    method of the store that creates an object.
    """
    store_class, method = creating
    create = getattr(store_class, method)
    at: list[str] = []

    def taken_over(store: Any, created: Any, *data: Any) -> Any:
        key: str = created.key if isinstance(created, Upload) else created
        if key.startswith(location) and not at:
            at.append(key)
            other = job(photos, output, SETTINGS[settings])
            dataprep.shard(other, overwrite=True, takeover=True)
        return create(store, created, *data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_class, method, taken_over)
        lost = f"another run has taken over split 'train' in {output}"
        with pytest.raises(LeaseLost, match=re.escape(lost)):
            dataprep.shard(job(photos, output, SMALL))
    dataprep.shard(job(photos, alone, SETTINGS[settings]))
    files, expected = comparable(objects(output)), comparable(objects(alone))
    orphans = files.keys() - expected.keys()
    assert {key: files[key] for key in expected} == expected
    assert orphans <= {*at}
    (report,) = dataprep.verify(output)
    assert {fault.key for fault in report.faults} == orphans
    assert all("does not belong to this data set" in fault.what for fault in report.faults)


@pytest.mark.parametrize("location", WRITTEN)
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("where", ["memory", "folder"])
def test_a_run_that_lost_its_lock_changes_nothing(
    photos: Path, tmp_path: Path, where: str, settings: str, location: str
) -> None:
    """A run that lost its lock changes no object, before any creation and with any other output."""
    if where == "memory":
        is_taken_over_from(photos, fresh(), fresh(), settings, location, (MemoryStore, "create"))
        return
    output, alone = str(tmp_path / "out"), str(tmp_path / "alone")
    is_taken_over_from(photos, output, alone, settings, location, (LocalStore, "create"))


@pytest.mark.parametrize(
    "location", [pytest.param("tfrecord/", marks=pytest.mark.smoke), *WRITTEN[1:]]
)
@pytest.mark.parametrize("settings", SETTINGS)
def test_a_run_that_lost_its_lock_changes_nothing_on_s3(
    photos: Path,
    bucket: str,
    s3_server: MotoServer,
    monkeypatch: pytest.MonkeyPatch,
    settings: str,
    location: str,
) -> None:
    """Conditional requests give the same guarantee over HTTP."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3_server.url)
    output, alone = f"s3://{bucket}/out", f"s3://{bucket}/alone"
    is_taken_over_from(photos, output, alone, settings, location, (S3Store, "create_upload"))


@pytest.mark.parametrize("change", ["equal", "other bytes", "longer"])
def test_a_shard_without_receipt_is_confirmed_or_replaced(photos: Path, change: str) -> None:
    """Equal bytes of a killed run are not written again, and different bytes are replaced."""
    output = fresh()
    dataprep.shard(job(photos, output, SMALL))
    store, before = MemoryStore(output), comparable(objects(output))
    (shard,) = (key for key in objects(output) if key.startswith("tfrecord/"))
    data = store.get(shard)
    if change != "equal":
        store.put(shard, data[::-1] if change == "other bytes" else data + b"x")
    version = store.version(shard)
    for key in ("train.manifest.json", "receipts/train-00000-of-00001.json"):
        store.delete(key)
    (done,) = dataprep.shard(job(photos, output, SMALL))
    assert done.made_shards == 1
    assert (store.version(shard) == version) == (change == "equal")
    assert comparable(objects(output)) == before


@pytest.mark.parametrize("kind", ["tfrecord/", "index/"])
def test_a_resumed_job_makes_a_shard_again_that_has_another_etag(photos: Path, kind: str) -> None:
    """A shard whose ETag differs from its receipt is made again, even if its size is equal."""
    output = fresh()
    dataprep.shard(job(photos, output, SMALL))
    store, before = MemoryStore(output), comparable(objects(output))
    (key,) = (key for key in objects(output) if key.startswith(kind))
    store.put(key, bytes(len(store.get(key))))
    (done,) = dataprep.shard(job(photos, output, SMALL))
    assert (done.made_shards, done.kept_shards) == (1, 0)
    assert comparable(objects(output)) == before


@pytest.mark.parametrize("lists", ["another file", "a file less"])
def test_a_resumed_job_makes_a_shard_again_whose_receipt_has_other_files(
    photos: Path, lists: str
) -> None:
    """A shard whose receipt lists other stored files than those of the job is made again."""
    output = fresh()
    dataprep.shard(job(photos, output, SMALL))
    store, before = MemoryStore(output), comparable(objects(output))
    key = "receipts/train-00000-of-00001.json"
    receipt = json.loads(store.get(key))
    shard = receipt["formats"]["tfrecord"]
    if lists == "another file":
        labels = store.head("labels.json")
        shard["file"] |= {"key": "labels.json", "bytes": labels.bytes, "etag": labels.etag}
    else:
        shard["indexes"] = []
    store.put(key, json.dumps(receipt).encode())
    (done,) = dataprep.shard(job(photos, output, SMALL))
    assert (done.made_shards, done.kept_shards) == (1, 0)
    assert comparable(objects(output)) == before


@pytest.mark.parametrize("location", ["memory", "folder"])
@pytest.mark.parametrize("kind", ["tfrecord/", "index/"])
def test_a_resumed_job_makes_a_shard_again_that_is_cut(
    photos: Path, tmp_path: Path, kind: str, location: str
) -> None:
    """A folder has no ETags, so that the size shows that a shard is cut."""
    output = fresh() if location == "memory" else str(tmp_path / "out")
    dataprep.shard(job(photos, output, SMALL))
    store = open_store(output)
    before = comparable(objects(store))
    (key,) = (info.key for info in store.list(kind))
    store.put(key, store.get(key)[:-1])
    (done,) = dataprep.shard(job(photos, output, SMALL))
    assert (done.made_shards, done.kept_shards) == (1, 0)
    assert comparable(objects(store)) == before


@pytest.mark.parametrize("damage", ["manifest of another job", "samples cut", "samples gone"])
def test_a_split_is_complete_only_with_its_own_manifest_and_table(
    photos: Path, damage: str
) -> None:
    """If the manifest or the table is damaged, both are made again from the receipts."""
    output = fresh()
    dataprep.shard(job(photos, output, SMALL))
    store, before = MemoryStore(output), comparable(objects(output))
    manifest, samples = "train.manifest.json", "train.samples.parquet"
    if damage == "manifest of another job":
        content = json.loads(store.get(manifest))
        store.put(manifest, json.dumps({**content, "fingerprint": "0" * 64}).encode())
    elif damage == "samples cut":
        store.put(samples, store.get(samples)[:-1])
    else:
        store.delete(samples)
    (done,) = dataprep.shard(job(photos, output, SMALL))
    assert (done.made_shards, done.kept_shards) == (0, 1)
    assert comparable(objects(output)) == before


@pytest.mark.parametrize("calls", [0, 1])
def test_nothing_is_removed_for_another_try_without_the_lock(photos: Path, calls: int) -> None:
    """The lock is checked before the manifest is removed, and before each receipt."""
    output = fresh()
    dataprep.shard(job(photos, output, SMALL))
    store = MemoryStore(output)
    stored_job = read_job(store, "train")
    assert stored_job is not None
    left = iter([None] * calls)

    def check_lock() -> None:
        if next(left, "lost") == "lost":
            raise LeaseLost("another run has taken over")

    plan, before = read_plan(store, "train", stored_job), {*objects(output)}
    with pytest.raises(LeaseLost):
        remove_for_retry(store, stored_job, plan, {0: 1}, Changes(), lambda line: None, check_lock)
    assert before - {*objects(output)} == ({"train.manifest.json"} if calls else set())


def test_the_limit_of_failures_is_exact(photos: Path, tmp_path: Path) -> None:
    """With one failed sample more than allowed, there is no manifest."""
    source, output = tmp_path / "photos", fresh()
    shutil.copytree(photos, source)
    broken = min(source.rglob("*.JPEG"))
    broken.write_bytes(broken.read_bytes()[:200])
    dataprep.shard(job(source, output, SMALL, max_failures=1))
    store = MemoryStore(output)
    store.delete("train.manifest.json")
    with pytest.raises(TooManyFailures):
        dataprep.finalize(output, "train", max_failures=0)
    assert "train.manifest.json" not in objects(output)
    dataprep.finalize(output, "train", max_failures=1)
    assert "train.manifest.json" in objects(output)


def test_a_part_reads_the_receipts_of_its_own_shards_only(
    photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part knows the other parts' missing shards from one listing of the receipts."""
    output = fresh()
    config = job(photos, output, {})
    dataprep.shard_part(config, dataprep.Part(0, 2))
    requests: list[str] = []
    for method in ("get_versioned", "head"):
        real = getattr(MemoryStore, method)

        def noted(store: MemoryStore, key: str, *range_: int, real: Any = real) -> Any:
            requests.append(key)
            return real(store, key, *range_)

        monkeypatch.setattr(MemoryStore, method, noted)
    (done,) = dataprep.shard_part(config, dataprep.Part(1, 2))
    assert (done.made_shards, done.shards, done.lacking_shards) == (1, 2, 0)
    assert not [key for key in requests if "train-00000-of-00002" in key]


def test_a_listing_during_which_the_lock_was_lost_removes_nothing(
    photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the lock is lost while ``--overwrite`` lists the output, nothing is removed.

    Another run may complete the output in the meantime.
    """
    output, alone = fresh(), fresh()
    dataprep.shard(job(photos, output, SMALL))
    other = SETTINGS["another quality"]
    listed = MemoryStore.list
    calls: list[str] = []

    def taken_over(store: MemoryStore, prefix: str = "") -> Iterator[ObjectInfo]:
        entries = [*listed(store, prefix)]
        calls.append(prefix)
        if len(calls) == number:
            monkeypatch.setattr(MemoryStore, "list", listed)
            dataprep.shard(job(photos, output, other), overwrite=True, takeover=True)
        return iter(entries)

    dataprep.shard(job(photos, alone, other))
    expected = comparable(objects(alone))
    # These are the listings between taking the lock and checking it.
    for number in (2, 3, 4):  # noqa: B007  ``taken_over`` reads it
        calls.clear()
        monkeypatch.setattr(MemoryStore, "list", taken_over)
        with pytest.raises(LeaseLost, match="another run has taken over"):
            dataprep.shard(job(photos, output, SMALL), overwrite=True)
        assert comparable(objects(output)) == expected


def test_a_receipt_of_another_job_does_not_count(photos: Path) -> None:
    """A shard with the receipt of another job is made again, even if its sizes are right."""
    output = fresh()
    dataprep.shard(job(photos, output, SMALL))
    store, before = MemoryStore(output), comparable(objects(output))
    (key,) = (key for key in objects(output) if key.startswith("receipts/"))
    receipt = json.loads(store.get(key))
    store.put(key, json.dumps({**receipt, "fingerprint": "0" * 64}).encode())
    store.delete("train.manifest.json")
    (done,) = dataprep.shard(job(photos, output, SMALL))
    assert (done.made_shards, done.kept_shards) == (1, 0)
    assert comparable(objects(output)) == before


def test_finalize_leaves_what_another_one_has_finished_meanwhile(
    photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """finalize waits for the lock, finds the split complete, and keeps its manifest."""
    output = fresh()
    dataprep.shard_part(job(photos, output, SMALL), dataprep.Part(0, 1))
    take = Locks.take
    finished: list[bytes] = []

    def waiting(locks: Locks, splits: Sequence[str]) -> None:
        if not finished:
            finished.append(b"")
            dataprep.finalize(output, "train")
            finished[0] = MemoryStore(output).get("train.manifest.json")
        take(locks, splits)

    monkeypatch.setattr(Locks, "take", waiting)
    summary = dataprep.finalize(output, "train")
    assert [MemoryStore(output).get("train.manifest.json")] == finished
    assert (summary.made_shards, summary.kept_shards) == (0, 1)


class Plain:
    """A store of another package with only the required methods, without a base class."""

    def __init__(self, uri: str, options: StoreOptions | None = None) -> None:
        self.uri = uri
        store = MemoryStore(uri, options)
        self.prepare, self.free_bytes, self.tidy = store.prepare, store.free_bytes, store.tidy
        self.get, self.get_range, self.head = store.get, store.get_range, store.head
        self.put, self.create, self.delete = store.put, store.create, store.delete
        self.list = store.list

    def __reduce__(self) -> tuple[Any, ...]:
        return Plain, (self.uri,)


def test_a_store_needs_no_optional_methods(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job runs with a store that has only the methods of the Protocol."""
    monkeypatch.setattr(prepare, "open_store", Plain)
    output = fresh()
    assert isinstance(Plain(output), Store)
    (done,) = dataprep.shard(job(photos, output, SMALL))
    assert done.made_shards == 1
