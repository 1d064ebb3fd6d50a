"""What is said of a source before its job begins."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dataprep.config import ShardConfig
from dataprep.job.planning import preflight_warnings, requested
from dataprep.labels import LabelSpace


def said(source: Path, more: LabelSpace | None = None, **keys: object) -> list[str]:
    """What is said of class folders as they lie there."""
    config = ShardConfig.model_validate({"source": source, "output": f"{source}-out", **keys})
    request = requested(config, lambda line: None)
    return list(preflight_warnings(request, more or request.own_labels()))


@pytest.fixture
def photos(images: Path, tmp_path: Path) -> Path:
    """Two classes that are no synsets, of one image each."""
    first, second = sorted(images.rglob("*.JPEG"))[:2]
    for name, path in (("cat", first), ("dog", second)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        shutil.copy(path, tmp_path / "photos" / name / "1.JPEG")
    return tmp_path / "photos"


def test_nothing_of_what_is_plain(photos: Path) -> None:
    """Two classes of images are nothing to talk about."""
    assert said(photos) == []


def test_images_in_no_class(photos: Path) -> None:
    """They are counted, and one is named."""
    shutil.copy(photos / "cat" / "1.JPEG", photos / "stray.jpg")
    assert said(photos) == ["1 image is in no class folder and skipped, such as 'stray.jpg'"]


def test_a_class_of_broken_links(photos: Path) -> None:
    """A class that loses all of its files loses its label, which is said."""
    (photos / "bird").mkdir()
    (photos / "bird" / "1.jpg").symlink_to("nowhere")
    (line,) = said(photos)
    assert line == "no file of 1 class can be read, such as 'bird'"


def test_classes_of_other_splits(photos: Path) -> None:
    """What labels.json has and this source lacks."""
    space = LabelSpace.of(["cat", "dog", "emu"])
    assert said(photos, space) == ["no sample here of 1 class, such as 'emu'"]


def test_a_shard_size_that_is_moved(photos: Path) -> None:
    """And why it is."""
    (line,) = said(photos, shard_size="1MB")
    assert line.startswith("shard size 1 MB becomes 1.18 MB, ")
