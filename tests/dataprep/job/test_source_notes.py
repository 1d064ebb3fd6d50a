"""Before a job begins, dataprep warns of what is unusual about its source."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dataprep.config.shard_config import ShardConfig
from dataprep.job.request import open_request
from dataprep.job.source_notes import preflight_warnings
from dataprep.labels import LabelSpace


def warnings_of(source: Path, label_space: LabelSpace | None = None, **keys: object) -> list[str]:
    """The warnings about a source of class folders. By default the labels are its own."""
    config = ShardConfig.model_validate({"source": source, "output": f"{source}-out", **keys})
    request = open_request(config, lambda line: None)
    return list(preflight_warnings(request, label_space or request.own_labels()))


@pytest.fixture
def photos(images: Path, tmp_path: Path) -> Path:
    """Two classes that are no synsets, with one image each."""
    first, second = sorted(images.rglob("*.JPEG"))[:2]
    for name, path in (("cat", first), ("dog", second)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        shutil.copy(path, tmp_path / "photos" / name / "1.JPEG")
    return tmp_path / "photos"


def test_plain_class_folders_cause_no_warning(photos: Path) -> None:
    """Two classes of images are as expected."""
    assert warnings_of(photos) == []


def test_images_in_no_class_folder_are_counted(photos: Path) -> None:
    """The warning names one of them."""
    shutil.copy(photos / "cat" / "1.JPEG", photos / "stray.jpg")
    assert warnings_of(photos) == ["1 image is in no class folder and skipped, such as 'stray.jpg'"]


def test_a_class_of_broken_links_is_named(photos: Path) -> None:
    """A class whose files cannot be read has no label."""
    (photos / "bird").mkdir()
    (photos / "bird" / "1.jpg").symlink_to("nowhere")
    assert warnings_of(photos) == ["no file of 1 class can be read, such as 'bird'"]


def test_classes_without_a_sample_are_named(photos: Path) -> None:
    """Classes in labels.json may be missing in this source."""
    label_space = LabelSpace.of(["cat", "dog", "emu"])
    (warning,) = warnings_of(photos, label_space)
    assert warning == "the source has no sample of 1 class, such as 'emu'"


def test_a_shard_size_outside_the_limits_is_corrected(photos: Path) -> None:
    """The warning gives the reason."""
    (warning,) = warnings_of(photos, shard_size="1MB")
    assert warning.startswith("shard size 1 MB becomes 1.18 MB, ")
