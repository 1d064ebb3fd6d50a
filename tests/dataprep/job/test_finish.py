"""Only correctly stored shards count, and only receipts of the same job complete it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import dataprep
from dataprep.errors import JobError
from dataprep.job.finish import read_receipts
from dataprep.job.job_file import JobFile
from dataprep.job.lock import Locks
from dataprep.job.output_state import complete_shards
from dataprep.output import keys
from dataprep.output.receipt import Receipt
from dataprep.stores import ObjectInfo
from dataprep.stores.local import LocalStore
from dataprep.stores.memory import MemoryStore
from tests.commandline import make


@pytest.fixture
def job(changeable: MemoryStore) -> JobFile:
    """The job file of the copy."""
    return JobFile.from_json(changeable.get(keys.job("train")), "train.job.json")


def test_all_of_a_finished_job(changeable: MemoryStore, job: JobFile) -> None:
    """All shards of a finished job count as stored."""
    assert complete_shards(changeable, job) == list(range(job.shards))


@pytest.mark.parametrize("folder", ["tfrecord/", "index/recordio/", "receipts/"])
def test_a_listing_that_still_shows_what_is_gone(
    changeable: MemoryStore, job: JobFile, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shard that is listed and does not exist is not counted."""
    listed = list(changeable.list())
    gone = min(info.key for info in listed if info.key.startswith(folder))
    changeable.delete(gone)

    def lagging(store: MemoryStore, prefix: str = "") -> Iterator[ObjectInfo]:
        """The objects of the store, with the removed ones."""
        return iter(listed)

    monkeypatch.setattr(MemoryStore, "list", lagging)
    assert complete_shards(changeable, job) == list(range(1, job.shards))


def test_a_listing_that_does_not_show_what_is_there(
    changeable: MemoryStore, job: JobFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shard that exists and is not listed is made again, with the same bytes."""
    monkeypatch.setattr(MemoryStore, "list", lambda store, prefix="": iter(()))
    assert complete_shards(changeable, job) == []


def test_a_receipt_of_another_job_is_refused(changeable: MemoryStore) -> None:
    """A split is not completed from a receipt with another fingerprint."""
    job = JobFile.from_json(changeable.get(keys.job("train")), "train.job.json")
    key = keys.receipt("train", 0, job.shards)
    receipt = Receipt.from_json(changeable.get(key), key)
    other = dataclasses.replace(receipt, fingerprint="0" * 64)
    changeable.put(key, other.to_json())
    with pytest.raises(JobError, match="belongs to another job"):
        read_receipts(changeable, job, range(job.shards), None)


def test_a_shard_of_another_size_is_not_stored(
    changeable: MemoryStore, job: JobFile, tmp_path: Path
) -> None:
    """Without ETags, the size shows that a shard is not that of its receipt."""
    folder = LocalStore(str(tmp_path / "copy"))
    folder.prepare()
    for info in changeable.list():
        folder.put(info.key, changeable.get(info.key))
    for number in range(job.shards):  # ETags of another store do not describe this one
        key = keys.receipt("train", number, job.shards)
        content = json.loads(folder.get(key))
        for format_entry in content["formats"].values():
            for file in (format_entry["file"], *format_entry["indexes"]):
                file["etag"] = ""
        folder.put(key, json.dumps(content).encode())
    assert complete_shards(folder, job) == list(range(job.shards))
    key = keys.data("tfrecord", "", "train", 0, job.shards)
    folder.put(key, folder.get(key)[:-1])
    assert complete_shards(folder, job) == list(range(1, job.shards))


@pytest.fixture
def with_failures(source: Path, tmp_path: Path) -> str:
    """An output with a failed photo, a failed dangling link and a skipped file."""
    broken = min(source.rglob("*.JPEG"))
    broken.write_bytes(broken.read_bytes()[:500])
    (broken.parent / "notes.txt").write_text("not a photo")
    (broken.parent / "gone.JPEG").symlink_to("nothing.JPEG")
    output = str(tmp_path / "out")
    make(source, output, image={"size": 32}, format=("tfrecord",), max_failures=2)
    return output


def test_every_file_has_a_row(source: Path, with_failures: str) -> None:
    """Files that were refused when the job was planned have a row too, without a shard."""
    files = sorted(str(path.relative_to(source)) for path in source.rglob("*.*"))
    samples = dataprep.open(with_failures).samples
    assert sorted(samples["source"]) == files
    assert samples["status"].value_counts().to_dict() == {
        "written": len(files) - 3,
        "failed": 2,
        "skipped": 1,
    }


def test_too_many_failures_are_not_finalised(with_failures: str) -> None:
    """Parts that each keep the limit may exceed it together, which ``finalize`` detects."""
    manifest = Path(with_failures, keys.manifest("train"))
    manifest.unlink()
    with pytest.raises(dataprep.TooManyFailures, match="2 samples failed"):
        dataprep.finalize(with_failures, "train", max_failures=1)
    assert not manifest.exists()
    dataprep.finalize(with_failures, "train", max_failures=2)
    assert manifest.exists()


def test_a_run_that_lost_its_lock_writes_no_manifest(
    with_failures: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock is checked after the table of samples is stored, which may take long."""
    manifest = Path(with_failures, keys.manifest("train"))
    table = Path(with_failures, keys.samples("train"))
    manifest.unlink()
    table.unlink()

    def check(locks: Locks) -> None:
        if table.exists():
            raise dataprep.LeaseLost("another run has taken over")

    monkeypatch.setattr(Locks, "check", check)
    with pytest.raises(dataprep.LeaseLost):
        dataprep.finalize(with_failures, "train", max_failures=2)
    assert table.exists()
    assert not manifest.exists()
