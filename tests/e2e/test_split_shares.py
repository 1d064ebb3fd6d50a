"""A job reports problems of its validation split, and photos that were not turned."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import dataprep
from tests.commandline import in_process

HERE = ("--set", "dask.processes=false")


@pytest.fixture
def rare(tree: Path, tmp_path: Path) -> Path:
    """Two classes of ten images, and one of a single image."""
    photos = sorted(tree.rglob("*.JPEG"))
    for number, path in enumerate(photos[:21]):
        folder = tmp_path / "photos" / ("cat", "dog", "rare")[number // 10]
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / f"{number}.JPEG")  # a synset in the name would be its class
    return tmp_path / "photos"


@pytest.mark.parametrize("share", ["50%", "90%"])
def test_a_class_with_one_image_keeps_it_for_training(
    rare: Path, tmp_path: Path, share: str
) -> None:
    """The summary names the class that validation lacks, and the share that was reached."""
    job = ("--source", rare, "--output", tmp_path / "out", "--validation", share, *HERE)
    done = in_process("shard", *job, code=0)
    labels = dataprep.open(tmp_path / "out").label_space.index
    assert labels["rare"] in dataprep.open(tmp_path / "out").labels
    held_out = {"50%": 10, "90%": 18}[share]
    assert (
        f"{100 * held_out / 21:.3g}% of the 21 photos instead of the requested {share}" in done.out
    )
    assert "1 class without a photo in this split: 'rare'" in done.out


def test_json_and_finalize_say_the_same(rare: Path, tmp_path: Path) -> None:
    """``--json`` has these facts, for a run and for parts that are finalized."""
    job = ("--source", rare, "--validation", "50%", *HERE)
    all_splits = in_process("shard", *job, "--output", tmp_path / "whole", "--json", code=0)
    in_process("shard", *job, "--output", tmp_path / "parts", "--part", "0/1", code=0)
    parts = in_process("finalize", tmp_path / "parts", "--json", code=0)
    for done in (all_splits, parts):
        train, validation = done.one_object["splits"]
        assert (train["missing_classes"], train["validation"]) == ([], None)
        assert validation["missing_classes"] == ["rare"]
        assert validation["validation"] == {"asked": "50%", "samples": 10, "of": 21}


def test_plan_warns_of_missing_classes(rare: Path, tmp_path: Path) -> None:
    """``plan`` warns before anything is written."""
    job = ("--source", rare, "--output", tmp_path / "out", "--validation", "50%")
    done = in_process("plan", *job, code=0)
    assert "warning: validation: 1 class without a photo, such as 'rare'" in done.out


def test_a_class_whose_photos_all_fail_is_named(rare: Path, tmp_path: Path) -> None:
    """A class whose photos all fail is reported as missing, although it has a label."""
    (path,) = (rare / "rare").iterdir()
    path.write_bytes(b"no image")
    arguments = ("--source", rare, "--output", tmp_path / "out", "--max-failures", "1", *HERE)
    done = in_process("shard", *arguments, code=0)
    assert "1 class without a photo in this split: 'rare'" in done.out


@pytest.mark.parametrize("changes", [(), ("--size", "64")], ids=["stored", "encoded"])
def test_photos_that_were_not_turned_name_the_key(
    tmp_path: Path, tree: Path, changes: tuple[str, ...]
) -> None:
    """If the EXIF orientation was removed, the summary names the setting that turns the pixels."""
    from PIL import Image

    (tmp_path / "photos" / "cat").mkdir(parents=True)
    exif: Any = Image.Exif()
    exif[0x0112] = 6
    with Image.open(next(tree.rglob("*.JPEG"))) as image:
        image.convert("RGB").save(tmp_path / "photos" / "cat" / "1.jpg", exif=exif)
    job = ("--source", str(tmp_path / "photos"), *changes, *HERE)
    ignored = in_process("shard", *job, "--output", tmp_path / "ignored", code=0)
    assert "1 photo stored without the EXIF orientation, pixels not turned" in ignored.out
    assert "--set image.orientation=apply turns them" in ignored.out
    turned = ("--output", tmp_path / "turned", "--set", "image.orientation=apply")
    assert "image.orientation" not in in_process("shard", *job, *turned, code=0).out
