"""Tests of the tree on disk."""

from __future__ import annotations

import dataclasses
import errno
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dataprep.errors import ConfigError, PermissionRefused, StoreError, StoreFull
from dataprep.sample import SampleTree, draw_tree
from dataprep.sample.tree import synset_ids

pytestmark = pytest.mark.slow


def _contents(root: Path) -> dict[str, bytes | str]:
    return {
        str(path.relative_to(root)): str(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        for path in root.glob("*/*")
    }


def test_one_seed_gives_one_tree(tmp_path: Path) -> None:
    """The same seed gives the same names and bytes, defects included."""
    for name in ("first", "second"):
        draw_tree(tmp_path / name, images=12, classes=3, seed=7, defects=True)
    assert _contents(tmp_path / "first") == _contents(tmp_path / "second")


def test_another_seed_gives_other_images(tmp_path: Path) -> None:
    """No image of one seed is found under another."""
    for seed in (1, 2):
        draw_tree(tmp_path / str(seed), images=12, classes=3, seed=seed)
    first, second = (set(_contents(tmp_path / str(seed)).values()) for seed in (1, 2))
    assert len(first) == len(second) == 12
    assert not first & second


def test_defects_leave_the_images_alone(tmp_path: Path) -> None:
    """The sound images are the same with and without defects."""
    draw_tree(tmp_path / "plain", images=6, classes=2)
    draw_tree(tmp_path / "mixed", images=6, classes=2, defects=True)
    assert _contents(tmp_path / "plain").items() <= _contents(tmp_path / "mixed").items()


def test_summary_counts_what_is_there(tree: SampleTree, sound: list[Path]) -> None:
    """The summary has the number of sound images, their bytes and the classes."""
    assert tree.images == len(sound) == 300
    assert tree.bytes == sum(path.stat().st_size for path in sound)
    assert tree.classes == len(list(tree.root.iterdir())) == 10


def test_layout_is_an_image_folder(sound: list[Path]) -> None:
    """Each image lies in the folder of its synset and is called after it, evenly spread."""
    for path in sound:
        synset, number = path.stem.split("_")
        assert path.parent.name == synset
        assert number.isdigit()
        assert path.suffix == ".JPEG"
    assert set(Counter(path.parent for path in sound).values()) == {30}


def test_bytes_a_pixel_are_as_in_imagenet(sound: list[Path]) -> None:
    """Bytes a pixel have about ImageNet's mean of 0.58 and vary as in photographs."""
    ratios, sizes = [], []
    for path in sound:
        with Image.open(path) as opened:
            ratios.append(path.stat().st_size / (opened.width * opened.height))
        sizes.append(path.stat().st_size)
    assert np.mean(ratios) == pytest.approx(0.58, abs=0.06)
    assert 0.33 < np.std(ratios) / np.mean(ratios) < 0.47
    assert np.mean(sizes) == pytest.approx(109_600, rel=0.15)


def test_progress_counts_to_the_end(tmp_path: Path) -> None:
    """The callback hears of each image once, counted from 1."""
    heard: list[int] = []
    draw_tree(tmp_path, images=5, classes=2, on_image=heard.append)
    assert heard == [1, 2, 3, 4, 5]


def test_summary_is_frozen(tree: SampleTree) -> None:
    """Neither the summary nor its defects can be changed."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        tree.images = 0  # type: ignore[misc]
    with pytest.raises(TypeError, match="assignment"):
        tree.defects["x"] = next(iter(tree.defects.values()))  # type: ignore[index]


def test_synsets_look_like_wordnets() -> None:
    """Synset ids are n and eight digits, each once, in rising order."""
    ids = synset_ids(1000)
    assert ids[:2] == ["n01440764", "n01443537"]
    assert ids == sorted(set(ids))
    assert all(len(name) == 9 and name[0] == "n" and name[1:].isdigit() for name in ids)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"images": 0}, "images is 0; ask for 1 or more"),
        ({"classes": 0}, "classes is 0; ask for 1"),
        ({"images": 3, "classes": 4}, "3 images cannot fill 4 classes; ask for more images"),
        ({"images": 200_000, "classes": 200_000}, "ask for 1 to 100000"),
        ({"seed": -1}, "seed is -1; take 0 or more"),
    ],
)
def test_impossible_requests_are_refused(
    tmp_path: Path, options: dict[str, int], words: str
) -> None:
    """A request that cannot be is refused with what to ask instead, and nothing is written."""
    with pytest.raises(ConfigError, match=words):
        draw_tree(tmp_path / "new", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "new").exists()


def test_a_used_destination_is_refused(tmp_path: Path) -> None:
    """A folder that holds something is refused and left as it is, a file too."""
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match="is not empty; name a new or empty folder"):
        draw_tree(tmp_path, images=2, classes=1)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(ConfigError, match="is a file; name a new or empty folder"):
        draw_tree(tmp_path / "mine.txt", images=2, classes=1)


def test_a_destination_below_a_file_is_refused(tmp_path: Path) -> None:
    """A destination that cannot be made is a StoreError that says what to do."""
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="name another folder"):
        draw_tree(tmp_path / "file" / "below", images=2, classes=1)


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (errno.ENOSPC, StoreFull, "no space left for .*; free some"),
        (errno.EACCES, PermissionRefused, "no right to write in .*; name another folder"),
        (errno.EIO, StoreError, "cannot write in .*; name another folder"),
    ],
)
def test_failed_writes_are_translated(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    kind: type[StoreError],
    words: str,
) -> None:
    """What the file system refuses becomes the error of the tree that says what to do."""

    def refuse(path: Path, data: bytes) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, "write_bytes", refuse)
    for defects in (False, True):
        with pytest.raises(kind, match=words) as refused:
            draw_tree(tmp_path / str(defects), images=1, classes=1, defects=defects)
        assert refused.value.exit_code == (2 if code == errno.EACCES else 1)


def test_errors_of_the_callback_pass(tmp_path: Path) -> None:
    """An error that the callback raises reaches the caller as it is."""

    def hang_up(done: int) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        draw_tree(tmp_path, images=2, classes=1, on_image=hang_up)


def test_names_that_the_file_system_refuses_are_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A defect whose name the file system does not take is left out, with the reason."""
    write = Path.write_bytes

    def picky(path: Path, data: bytes) -> int:
        if b"\xff" in os.fsencode(path):
            raise OSError(errno.EILSEQ, "Illegal byte sequence")
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", picky)
    tree = draw_tree(tmp_path, images=1, classes=1, defects=True)
    assert list(tree.left_out) == ["n01440764/n01440764_bytes-\udcff\udcfe.JPEG"]
    assert "Illegal byte sequence" in next(iter(tree.left_out.values()))
    assert not tree.left_out.keys() & tree.defects.keys()
