"""A drawn sample can have the layout in which ILSVRC2012 is downloaded."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import pytest

from dataprep.drawn import draw_ilsvrc, draw_tree
from dataprep.drawn.ilsvrc import DEVKIT, TRAIN, VALIDATION
from dataprep.errors import ConfigError
from dataprep.labels.class_files import GROUND_TRUTH, META, ground_truth, read_rows, unpack_devkit


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """30 images of 5 classes, with defects. Read only."""
    dest = tmp_path_factory.mktemp("drawn") / "ilsvrc"
    assert draw_ilsvrc(dest, images=30, classes=5, seed=3, defects=True).root == dest
    return dest


def test_the_training_tar_has_the_drawn_tree(drawn: Path, tmp_path: Path) -> None:
    """The training tar, unpacked twice, is the tree of the other layout, with its links."""
    tree = draw_tree(tmp_path / "tree", images=30, classes=5, seed=3, defects=True).root
    with tarfile.open(drawn / TRAIN) as outer:
        inner = [outer.getmember(name) for name in outer.getnames()]
        assert [info.name for info in inner] == sorted(f"{p.name}.tar" for p in tree.iterdir())
        for info in inner:
            with tarfile.open(fileobj=outer.extractfile(info)) as tar:
                folder = tree / info.name.removesuffix(".tar")
                assert set(tar.getnames()) == {path.name for path in folder.iterdir()}
                for member in tar:
                    path = folder / member.name
                    assert member.issym() == path.is_symlink()
                    if member.isfile():
                        file = tar.extractfile(member)
                        assert file is not None
                        assert file.read() == path.read_bytes()


def test_nothing_else_is_there(drawn: Path) -> None:
    """The folder has only two tars and the devkit, as in the download."""
    assert {path.name for path in drawn.iterdir()} == {TRAIN, VALIDATION, DEVKIT}


def test_the_validation_tar_is_flat_and_in_no_order(drawn: Path) -> None:
    """Validation images are numbered from 1 without gaps, and are stored in another order."""
    with tarfile.open(drawn / VALIDATION) as tar:
        names = tar.getnames()
        assert all(re.fullmatch(r"ILSVRC2012_val_\d{8}\.JPEG", name) for name in names)
        assert sorted(names) == [f"ILSVRC2012_val_{i + 1:08}.JPEG" for i in range(5)]
        first = tar.extractfile(names[0])
        assert first is not None
        assert first.read(2) == b"\xff\xd8"
    assert names != sorted(names)


def test_the_devkit_has_their_classes(drawn: Path) -> None:
    """The ground truth has all classes, by IDs that are not in alphabetical order."""
    kit = (drawn / DEVKIT).read_bytes()
    meta = read_rows(unpack_devkit(kit, META, "devkit"), "meta.mat")
    rows = read_rows(unpack_devkit(kit, GROUND_TRUTH, "devkit"), "truth")
    truth = ground_truth(rows, "truth", meta).values()
    with tarfile.open(drawn / TRAIN) as outer:
        synsets = sorted(name.removesuffix(".tar") for name in outer.getnames())
    assert sorted(truth) == synsets
    by_id = [synset for _, (_, synset, _) in sorted(meta, key=lambda row: row.cells[0])]
    assert sorted(by_id) == synsets
    assert by_id != synsets


def test_the_same_seed_makes_the_same_bytes(drawn: Path, tmp_path: Path) -> None:
    """Archives contain neither the time of their creation nor an owner."""
    draw_ilsvrc(tmp_path / "again", images=30, classes=5, seed=3, defects=True)
    for name in (TRAIN, VALIDATION, DEVKIT):
        assert (tmp_path / "again" / name).read_bytes() == (drawn / name).read_bytes()
    with tarfile.open(drawn / TRAIN) as tar:
        assert {(info.mtime, info.uid, info.uname) for info in tar} == {(0, 0, "")}
    assert b"Created on" not in unpack_devkit((drawn / DEVKIT).read_bytes(), META, "devkit")
    draw_ilsvrc(tmp_path / "other", images=30, classes=5, seed=4)
    assert (tmp_path / "other" / VALIDATION).read_bytes() != (drawn / VALIDATION).read_bytes()


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    """Nothing is drawn over files that exist."""
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="not an empty folder"):
        draw_ilsvrc(tmp_path, images=5, classes=5)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
