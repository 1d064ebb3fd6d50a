"""Each damage of an output is overwritten, repaired or refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dataprep
from dataprep.config.shard_config import load
from dataprep.errors import (
    ConfigError,
    JobError,
    OutputConflict,
    ShardsMissing,
    TooManyFailures,
)
from dataprep.job.finish import finalize
from dataprep.job.plan_command import plan
from dataprep.job.report import Summary
from dataprep.stores import StoreOptions
from dataprep.stores.s3 import S3Store
from iobench.servers.moto_server import MotoServer
from tests import commandline

pytestmark = pytest.mark.slow


def run(source: Path, output: Path | str, *, overwrite: bool = False, **more: Any) -> list[Summary]:
    """Shard into small shards, on threads of this process."""
    values = {"source": source, "output": output, "image.size": 64, "shard_size": "1MB", **more}
    return list(dataprep.shard(load(None, values), overwrite=overwrite))


def contents(output: Path) -> dict[str, bytes]:
    """All objects of an output except its manifests, whose times differ."""
    data_of_name = {}
    for path in sorted(output.rglob("*")):
        if path.is_file() and not path.name.endswith(".manifest.json"):
            data_of_name[str(path.relative_to(output))] = path.read_bytes()
    return data_of_name


def test_an_overwrite_that_is_refused_removes_nothing(
    tree: Path, source: Path, tmp_path: Path
) -> None:
    """If the source does not fit the labels of other splits, --overwrite leaves the old split."""
    output = tmp_path / "out"
    run(tree, output)
    run(tree, output, split="test")
    before = contents(output)
    shutil.copytree(next(source.iterdir()), source / "n99999999")
    with pytest.raises(OutputConflict, match="n99999999"):
        run(source, output, overwrite=True)
    assert contents(output) == before
    assert all(verification.ok for verification in dataprep.verify(output))


def test_an_overwrite_says_what_it_removes(tree: Path, tmp_path: Path) -> None:
    """Each split that --overwrite removes is named, such as a validation split."""
    output = tmp_path / "out"
    job = ("shard", "--source", str(tree), "--output", str(output), "--size", "64")
    assert "removes" not in commandline.dataprep(*job, "--overwrite", "--validation", "10%").err
    message = commandline.dataprep(*job, "--overwrite").err
    assert f"--overwrite removes split 'train' of {output}\n" in message
    assert f"--overwrite removes split 'validation' of {output}\n" in message
    (verification,) = dataprep.verify(output)
    assert (verification.split, verification.samples) == ("train", 120)


def test_resuming_with_other_labels_is_refused(tree: Path, tmp_path: Path) -> None:
    """labels.json is compared with the job before anything is made with it."""
    run(tree, tmp_path)
    labels = tmp_path / "labels.json"
    content = json.loads(labels.read_bytes())
    content["classes"][0]["text"] = "something else"
    labels.write_text(json.dumps(content))
    next((tmp_path / "receipts").iterdir()).unlink()
    with pytest.raises(OutputConflict, match=r"labels\.json.*--overwrite"):
        run(tree, tmp_path)


@pytest.mark.parametrize("lost", ["labels.json", "train.plan.parquet"])
def test_lost_labels_and_plans_are_refused(tree: Path, tmp_path: Path, lost: str) -> None:
    """The refusal names the missing file, and with the file the job can be resumed.

    Another split is not started without labels, because its labels could differ from the first.
    """
    run(tree, tmp_path)
    (tmp_path / lost).rename(tmp_path / "kept")
    with pytest.raises(OutputConflict, match=f"{lost}.* is missing: put it back"):
        run(tree, tmp_path)
    if lost == "labels.json":
        with pytest.raises(OutputConflict, match=r"labels\.json is missing"):
            run(tree, tmp_path, split="more")
    (tmp_path / "kept").rename(tmp_path / lost)
    assert [summary.made_shards for summary in run(tree, tmp_path)] == [0]


FOREIGN = [
    "labels.json",
    "train.samples.parquet",
    "train.manifest.json",
    "tfrecord/train-00000-of-00001",
    "tfrecord/train-00000-of-00003",
    "index/tfrecord/train-00000-of-00003.idx",
]


@pytest.mark.parametrize("key", FOREIGN)
def test_somebody_elses_files_are_refused(tree: Path, tmp_path: Path, key: str) -> None:
    """Files under the keys of a split without a job file are named, and stay as they are."""
    (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / key).write_bytes(b"mine")
    (tmp_path / "notes.txt").write_bytes(b"mine")
    before = contents(tmp_path)
    with pytest.raises(OutputConflict, match=rf"has {key}, but not train\.job\.json") as caught:
        run(tree, tmp_path)
    assert caught.value.exit_code == 2
    assert contents(tmp_path) == before
    run(tree, tmp_path, overwrite=True)
    assert all(verification.ok for verification in dataprep.verify(tmp_path))


def test_a_lost_job_file(tree: Path, source: Path, tmp_path: Path) -> None:
    """A split without its job file is refused, and its labels still count for another split."""
    run(tree, tmp_path)
    (tmp_path / "train.job.json").unlink()
    before = contents(tmp_path)
    with pytest.raises(OutputConflict, match=r"but not train\.job\.json.*put this file back"):
        run(tree, tmp_path)
    shutil.rmtree(min(source.iterdir()))
    run(source, tmp_path, split="test")
    assert contents(tmp_path)["labels.json"] == before["labels.json"]


@pytest.mark.parametrize("content", [b"", b"{", b'{"schema": 1}'])
def test_a_damaged_job_file(tree: Path, tmp_path: Path, content: bytes) -> None:
    """A damaged job file is refused with a remedy, and --overwrite is one."""
    run(tree, tmp_path)
    before = contents(tmp_path)
    (tmp_path / "train.job.json").write_bytes(content)
    with pytest.raises(OutputConflict, match=r"^train\.job\.json: .*Restore.*output.*--overwrite"):
        run(tree, tmp_path)
    run(tree, tmp_path, overwrite=True)
    assert contents(tmp_path) == before


def cut(path: Path) -> None:
    """Remove the second half of a file."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize(
    "damage",
    [cut, lambda path: path.write_bytes(b""), Path.unlink],
    ids=["cut", "empty", "gone"],
)
@pytest.mark.parametrize("finished", [True, False], ids=["finished", "no manifest"])
@pytest.mark.parametrize("kind", ["tfrecord", "index/tfrecord", "receipts"])
def test_a_damaged_file_is_made_again(
    tree: Path, tmp_path: Path, kind: str, finished: bool, damage: Callable[[Path], None]
) -> None:
    """A shard is made again if one of its files is missing or has another size."""
    run(tree, tmp_path)
    before = contents(tmp_path)
    if not finished:
        (tmp_path / "train.manifest.json").unlink()
    damage(min((tmp_path / kind).iterdir()))
    with pytest.raises(ShardsMissing, match=r"are missing in .*: number 0"):
        finalize(tmp_path, "train")
    (summary,) = run(tree, tmp_path)
    assert summary.made_shards == 1
    assert contents(tmp_path) == before
    assert all(verification.ok for verification in dataprep.verify(tmp_path))


@pytest.mark.parametrize("damage", [Path.unlink, cut], ids=["missing", "cut"])
@pytest.mark.parametrize("name", ["train.samples.parquet", "train.manifest.json"])
def test_a_damaged_table_is_written_again(
    tree: Path, tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    """The table of samples and the manifest are written again from receipts, without conversion."""
    run(tree, tmp_path)
    before = contents(tmp_path)
    damage(tmp_path / name)
    (summary,) = run(tree, tmp_path)
    assert summary.made_shards == 0
    assert contents(tmp_path) == before
    assert all(verification.ok for verification in dataprep.verify(tmp_path))


def test_another_etag_is_another_shard(tree: Path, bucket: str, s3_server: MotoServer) -> None:
    """A shard on S3 whose ETag differs from its receipt is made again."""
    options = StoreOptions(endpoint_url=s3_server.url)
    output = f"s3://{bucket}/out"
    run(tree, output, store=options)
    store = S3Store(output, options)
    key = min(info.key for info in store.list("tfrecord/"))
    data = store.get(key)
    store.put(key, data[:-1] + b"x")
    (summary,) = run(tree, output, store=options)
    assert summary.made_shards == 1
    assert store.get(key) == data


def test_refused_links_count_before_any_work(source: Path, tmp_path: Path) -> None:
    """Failures that the listing shows already stop the job before it converts anything."""
    (next(source.iterdir()) / "link.JPEG").symlink_to("nowhere")
    with pytest.raises(TooManyFailures, match=r"link\.JPEG: broken symlink"):
        run(source, tmp_path / "out", max_failures=0)
    assert not (tmp_path / "out" / "receipts").exists()


@pytest.mark.parametrize("small", [False, True], ids=["broken", "small"])
def test_nothing_written_is_no_result(tree: Path, tmp_path: Path, small: bool) -> None:
    """A job without any written sample fails with the reason."""
    source = tree
    options: dict[str, Any] = {"image": {"min_size": 60_000}}
    message = r"none of .* samples could be written: .*small: \d+"
    if not small:
        source, options = tmp_path / "source", {"max_failures": "100%"}
        message = r"none of 1 samples.*cat/1\.jpg: not an image"
        (source / "cat").mkdir(parents=True)
        (source / "cat" / "1.jpg").write_bytes(b"no image")
    with pytest.raises(JobError, match=message):
        run(source, tmp_path / "out", **options)
    assert not (tmp_path / "out" / "train.manifest.json").exists()


def test_classes_too_small_for_validation_are_refused(tree: Path, tmp_path: Path) -> None:
    """A validation split that would be empty is refused, and nothing is written."""
    (tmp_path / "source" / "a").mkdir(parents=True)
    shutil.copy(next(tree.rglob("*.JPEG")), tmp_path / "source" / "a")
    with pytest.raises(
        ConfigError, match=r"'validation' would have no samples: each class keeps one"
    ):
        run(tmp_path / "source", tmp_path / "out", validation="5%")
    assert contents(tmp_path / "out") == {}


def test_an_output_that_is_a_file(tree: Path, tmp_path: Path) -> None:
    """An output that is a file is refused as a file, by plan too, and is left as it is."""
    (tmp_path / "labels.csv").write_text("a,b")
    job = dataprep.ShardConfig(source=str(tree), output=str(tmp_path / "labels.csv"))
    for call in (dataprep.shard, plan):
        with pytest.raises(ConfigError, match="is a file: give a folder"):
            call(job)
    assert (tmp_path / "labels.csv").read_text() == "a,b"
