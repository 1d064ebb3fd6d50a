"""Exit code 2 means that nothing was written. A command that has changed something ends with 1."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from dataprep.drawn import draw_tree
from dataprep.drawn.drawing import draw_photo
from dataprep.errors import CorruptArchive, PermissionRefused
from dataprep.formats.protocol import Buffer
from dataprep.output import keys
from dataprep.sources.imagefolder import ImageFolder
from dataprep.stores.local import LocalStore
from tests.commandline import IN_ONE_PROCESS, in_process


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few drawn photos. Read only."""
    return draw_tree(tmp_path_factory.mktemp("photos") / "photos", images=24, classes=2).root


@pytest.fixture
def output(photos: Path, tmp_path: Path) -> Path:
    """An output of two splits with one shard each, which tests change."""
    shards(photos, tmp_path / "out")
    return tmp_path / "out"


def shards(photos: Path, output: Path, *more: str, code: int | None = 0) -> None:
    """Shard the photos with the command, with a validation split."""
    job = ["--source", str(photos), "--output", str(output), "--validation", "20%"]
    in_process("shard", *job, "--size", "64", *IN_ONE_PROCESS, *more, code=code)


def tree(folder: Path) -> dict[str, str]:
    """Digests of the files below a folder, except locks."""
    digests = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "lock" not in path.name:
            name = os.fspath(path.relative_to(folder))
            digests[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return digests


def damage(output: Path, name: str) -> None:
    """Change a byte in the middle of a file."""
    path = output / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize(
    "name",
    [
        "tfrecord/train-00000-of-00001",
        "index/tfrecord/train-00000-of-00001.idx",
        "receipts/train-00000-of-00001.json",
        "train.plan.parquet",
    ],
)
def test_stage_of_a_damaged_output(output: Path, tmp_path: Path, name: str) -> None:
    """The copy runs until it reaches the damage, so that it ends with 1."""
    damage(output, name)
    done = in_process("stage", output, tmp_path / "copy", code=1)
    assert done.complaints
    assert tree(tmp_path / "copy")


def test_stage_refuses_all_splits_before_it_copies_one(output: Path, tmp_path: Path) -> None:
    """A split that cannot be read is refused before the split beside it is copied."""
    (output / "validation.manifest.json").write_text("{}")
    in_process("stage", output, tmp_path / "copy", code=2)
    assert not (tmp_path / "copy").exists() or tree(tmp_path / "copy") == {}


def test_finalize_of_two_splits_of_which_one_is_damaged(output: Path) -> None:
    """If one manifest is written and the other split is refused, the command ends with 1."""
    (output / "train.manifest.json").unlink()
    (output / "validation.manifest.json").unlink()
    damage(output, "validation.plan.parquet")
    in_process("finalize", output, code=1)
    assert (output / "train.manifest.json").exists()


@pytest.fixture
def without_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse to write the labels, which are the first object of a job."""
    create = LocalStore.create

    def refusing(store: LocalStore, key: str, data: Buffer) -> bool:
        if key == keys.LABELS:
            raise PermissionRefused("no right to write")
        return create(store, key, data)

    monkeypatch.setattr(LocalStore, "create", refusing)


def test_overwrite_that_cannot_write(photos: Path, output: Path, without_rights: None) -> None:
    """The command has removed the old output before the first write is refused, and ends with 1."""
    shards(photos, output, "--overwrite", code=1)
    assert not (output / "train.manifest.json").exists()


@pytest.mark.usefixtures("without_rights")
def test_a_first_write_that_is_refused(photos: Path, tmp_path: Path) -> None:
    """If the first write is refused, nothing was written, and the exit code is 2."""
    shards(photos, tmp_path / "out", code=2)
    assert tree(tmp_path / "out") == {}


@pytest.mark.parametrize("again", [False, True])
def test_a_source_that_breaks_during_the_job(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    """A damaged archive that is found during the job ends it with 1, also after a resume."""
    output = tmp_path / "out"
    read = ImageFolder.read

    def breaking(source: Any, *arguments: Any) -> Any:
        if (output / "train.job.json").exists():
            raise CorruptArchive("the archive is damaged: fetch it again")
        return read(source, *arguments)

    monkeypatch.setattr(ImageFolder, "read", breaking)
    shards(photos, output, code=1)
    if again:
        shards(photos, output, code=1)
    assert (output / "train.job.json").exists()


def test_init_that_stops_half_way(tmp_path: Path) -> None:
    """The command ends with 1 if it has copied examples before it finds a dangling link."""
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/shard").symlink_to("/proc/missing/folder")
    in_process("init", tmp_path, code=1)
    assert tree(tmp_path)


@pytest.mark.parametrize("after", [0, 3])
def test_sample_that_stops_half_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """The command ends with 1 if it has made a folder before it finds a read-only disk."""
    drawn = 0

    def failing(*arguments: Any) -> bytes:
        nonlocal drawn
        drawn += 1
        if drawn > after:
            raise OSError(errno.EROFS, "Read-only file system")
        return draw_photo(*arguments)

    monkeypatch.setattr("dataprep.drawn.tree.draw_photo", failing)
    in_process("sample", tmp_path / "photos", "--images", "6", "--classes", "2", code=1)
    assert len(tree(tmp_path / "photos")) == after


def test_sample_that_is_refused(tmp_path: Path) -> None:
    """A refused request has written nothing, and ends with 2."""
    in_process("sample", tmp_path / "photos", "--images", "1", "--classes", "2", code=2)
    assert not (tmp_path / "photos").exists()


def test_retry_failed_that_is_refused_after_something_was_removed(
    photos: Path, tmp_path: Path
) -> None:
    """The command ends with 1 if it has removed a manifest before it finds an unreadable one."""
    source, output = tmp_path / "photos", tmp_path / "out"
    shutil.copytree(photos, source)
    broken = min(source.rglob("*.JPEG"))
    broken.write_bytes(broken.read_bytes()[:200])
    shards(source, output, "--max-failures", "1")
    splits = ["train", "validation"]
    retried = next(
        split for split in splits if b'"failed"' in (output / receipt_of(split)).read_bytes()
    )
    splits.remove(retried)
    newer = output / f"{splits[0]}.manifest.json"
    newer.write_text(json.dumps({**json.loads(newer.read_text()), "schema": 99}))
    before = tree(output)
    shards(source, output, "--retry-failed", "--max-failures", "1", code=1)
    assert before.keys() - tree(output).keys() == {f"{retried}.manifest.json", receipt_of(retried)}


def receipt_of(split: str) -> str:
    """The receipt of the only shard of a split."""
    return f"receipts/{split}-00000-of-00001.json"
