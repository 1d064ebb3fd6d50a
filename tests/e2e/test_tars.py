"""Archives through the whole job: the bytes of class folders, whatever they were packed as."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import dataprep
from dataprep.sample import draw_ilsvrc
from dataprep.stores import StoreOptions
from dataprep.stores.s3 import S3Store
from iobench.s3_server import MotoServer
from tests import commandline
from tests.commandline import FORMATS, JOB, files, objects
from tests.tars import nested, pack, tar_of, zipped

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def photos(tree: Path) -> dict[str, bytes]:
    """The drawn tree in memory."""
    return {name: (tree / name).read_bytes() for name in sorted(files(tree))}


def make(source: str | Path, output: Path, **changes: Any) -> dict[str, bytes]:
    """What a job makes of an archive, but for what says where it came from."""
    options: dict[str, Any] = {
        "kind": "ilsvrc",
        "format": FORMATS,
        "shard_size": "1.2MB",
        "dask": {"workers": 2, "processes": False},
        **changes,
    }
    dataprep.shard(dataprep.ShardConfig(source=str(source), output=str(output), **options))
    return made(objects(output))


def made(found: Mapping[str, object]) -> dict[str, Any]:
    """Shards, their indexes, labels and the table of samples."""
    kept = ("tfrecord/", "recordio/", "index/", "labels.json", "train.samples.parquet")
    return {key: data for key, data in found.items() if key.startswith(kept)}


@pytest.mark.parametrize("shape", ["tars", "gzipped", "tree", "tree by GNU tar"])
def test_the_bytes_of_class_folders(
    shape: str,
    photos: dict[str, bytes],
    tree: Path,
    tmp_path: Path,
    reference: Mapping[str, object],
) -> None:
    """However the same images are packed, shards, indexes and tables are those of folders."""
    backwards = dict(reversed(photos.items()))
    data = {
        "tars": lambda: nested(backwards),
        "gzipped": lambda: zipped(nested(photos)),
        "tree": lambda: tar_of(backwards),
        "tree by GNU tar": lambda: pack("gnu", tree, tmp_path / "gnu.tar"),
    }[shape]()
    (tmp_path / "archive").write_bytes(data)
    assert make(tmp_path / "archive", tmp_path / "out") == made(reference)


@pytest.mark.parametrize("packed", [False, True])
def test_worker_processes_from_s3(
    packed: bool,
    photos: dict[str, bytes],
    tmp_path: Path,
    bucket: str,
    s3_server: MotoServer,
    reference: Mapping[str, object],
) -> None:
    """Worker processes that read an archive on S3 by ranges give the bytes of local folders."""
    endpoint = StoreOptions(endpoint_url=s3_server.url)
    data = nested(photos)
    S3Store(f"s3://{bucket}", endpoint).put("data/train", zipped(data) if packed else data)
    found = make(
        f"s3://{bucket}/data/train",
        tmp_path / "out",
        store=endpoint,
        dask={"workers": 2, "processes": True},
    )
    assert found == made(reference)


def test_ilsvrc_as_downloaded(tmp_path: Path) -> None:
    """Both archives with the devkit go into one output of one label space, and verify."""
    draw_ilsvrc(tmp_path / "data", images=40, classes=5, seed=1)
    out = tmp_path / "out"
    common = ("--kind", "ilsvrc", "--output", out, *JOB)
    kit = tmp_path / "data" / "ILSVRC2012_devkit_t12.tar.gz"
    trained = commandline.dataprep(
        "shard", "--source", tmp_path / "data" / "ILSVRC2012_img_train.tar", *common
    )
    assert trained.code == 0, trained.err
    validated = commandline.dataprep(
        *("shard", "--source", tmp_path / "data" / "ILSVRC2012_img_val.tar", *common),
        *("--split", "validation", "--set", f"labels.ground_truth={kit}"),
    )
    assert validated.code == 0, validated.err
    verified = commandline.dataprep("verify", out, "--deep")
    assert verified.code == 0, verified.err
    with dataprep.open(out, split="validation") as data:
        assert len(data) == 5
        assert sorted(data[i].label for i in range(5)) == [0, 1, 2, 3, 4]


def test_resumed_after_the_archive_changed(photos: dict[str, bytes], tmp_path: Path) -> None:
    """An archive that was packed anew in another order is another source, and refused."""
    path = tmp_path / "archive"
    path.write_bytes(nested(photos))
    make(path, tmp_path / "out")
    path.write_bytes(nested(dict(reversed(photos.items()))))
    with pytest.raises(dataprep.errors.OutputConflict):
        make(path, tmp_path / "out")


def test_what_a_person_hears(photos: dict[str, bytes], tmp_path: Path) -> None:
    """A compressed archive's cost is told before it is paid; damage is one line, and code 2."""
    some = dict(list(photos.items())[:30])
    path = tmp_path / "archive"
    path.write_bytes(zipped(nested(some)))
    arguments = ("shard", "--source", path, "--kind", "ilsvrc", "--output", tmp_path / "out")
    first = commandline.dataprep(*arguments)
    assert first.code == 0, first.err
    assert "decompressed once" in first.err
    assert "decompressed once" not in commandline.dataprep(*arguments).err
    path.write_bytes(nested(some)[:300_000])
    cut = commandline.dataprep(*arguments)
    assert cut.code == 2
    (complaint,) = cut.complaints
    assert f"{path}: ends at byte 300,000" in complaint
    assert "Traceback" not in cut.err
