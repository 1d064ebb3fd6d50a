"""What is made first: named once, in order, and no larger than is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ByteSize

from iobench.data.making import Maker
from iobench.data.settings import DataSettings
from iobench.forecast import Facts, Photographs
from iobench.forecast.bounds import UNKNOWN, Bounds, exactly
from iobench.forecast.making import decoded, image_bytes, photographs, steps, to_be_made
from iobench.stored import stored
from iobench.trial import Place
from tests.iobench.forecast.made import AMAZON, data

NAMES = ["files@s3", "shards@disk", "shards-4MB@disk", "photos@disk"]
FORMS = ["pixels@disk", "originals-4MB@s3"]


def facts_of(settings: DataSettings, *names: str) -> Facts:
    """Nothing is there yet."""
    photos = photographs(settings)
    needed = ("photos@disk", "shards@disk", "files@disk", *names)
    found = {name: to_be_made(name, settings, photos) for name in needed}
    return Facts(found, {"bucket": AMAZON}, photos, 2)


def test_each_is_made_once_in_its_turn() -> None:
    """Photographs, shards of them, files of these, copies."""
    settings = DataSettings()
    made = [step.words for step in steps(NAMES, settings, facts_of(settings, *NAMES))]
    assert made == [
        "1,000 images drawn",
        "shards@disk: images sharded",
        "files@disk: the images of shards written as files",
        "files@s3: copied to the object store",
        "shards-4MB@disk: images sharded",
    ]


def test_other_forms_are_made_of_what_they_are_made_of() -> None:
    """Pixels of the shards; originals of the photographs, and copied where they are asked for."""
    settings = DataSettings()
    facts = facts_of(settings, "pixels@disk", "originals-4MB@disk", *FORMS)
    assert [step.words for step in steps(FORMS, settings, facts)] == [
        "1,000 images drawn",
        "shards@disk: images sharded",
        "pixels@disk: the images of shards written as pixels",
        "originals-4MB@disk: images sharded, not resized",
        "originals-4MB@s3: copied to the object store",
    ]


def test_pixels_of_given_shards_are_made_of_these() -> None:
    """No photograph is needed."""
    settings = DataSettings(shards="out")
    facts = Facts({"shards@disk": data(), "pixels@disk": decoded(data())})
    (step,) = steps(["pixels@disk"], settings, facts)
    assert step.words == "pixels@disk: the images of shards written as pixels"
    assert step.predicted.disk_written.low > 100e6


def test_what_is_there_is_not_made() -> None:
    """Nor what it was made of."""
    settings = DataSettings(source="photos")
    there = data(100)
    facts = Facts({"shards@disk": there, "photos@disk": there})
    assert list(steps(["shards@disk"], settings, facts)) == []


def test_shards_on_a_store_are_copied_here() -> None:
    """As large as their manifest says."""
    settings = DataSettings(shards="s3://bucket/x")
    found = data()
    facts = Facts({"shards@disk": replace(found, made=False)})
    (step,) = steps(["shards@disk"], settings, facts)
    assert step.words == "s3://bucket/x copied to shards@disk"
    assert step.predicted.disk_written == exactly(100e6)


def test_copies_cost_a_put_an_object() -> None:
    """An image each, for files: that is what makes them dear."""
    settings = DataSettings(images=100_000)
    facts = facts_of(settings, "files@s3")
    last = list(steps(["files@s3"], settings, facts))[-1]
    assert last.predicted.requests[1] is not None
    assert last.predicted.requests[1].puts == 100_000


def test_without_photographs_nothing_is_known() -> None:
    """A source that could not be listed."""
    assert to_be_made("shards@disk", DataSettings(source="x"), None).bytes == UNKNOWN
    listed = Photographs(exactly(10), exactly(1e6), listed=True)
    assert to_be_made("files@disk", DataSettings(source="x"), listed).samples == Bounds(0, 10)


@pytest.mark.parametrize(("size", "quality"), [(256, 95), (64, 80)])
def test_estimates_hold_what_is_made(tmp_path: Path, size: int, quality: int) -> None:
    """Of drawn images: photographs, shards and files, in bytes, samples and objects."""
    settings = DataSettings(
        images=40,
        classes=2,
        size=size,
        quality=quality,
        folder=str(tmp_path),
        shard_size=ByteSize(10**6),
    )
    maker = Maker(settings, lambda: Place("", "empty"), lambda line: None)
    photos = photographs(settings)
    for name, reads in (
        ("photos@disk", "files"),
        ("shards@disk", "tfrecord"),
        ("shards-96px@disk", "tfrecord"),
        ("originals@disk", "tfrecord"),
        ("pixels@disk", "tfrecord"),
    ):
        predicted = to_be_made(name, settings, photos)
        found = stored(maker.place(name), reads)
        assert found.bytes in predicted.bytes
        assert found.samples in predicted.samples
        assert found.objects in predicted.objects
        files = [path for path in Path(maker.place(name).uri).rglob("*") if path.is_file()]
        assert sum(path.stat().st_size for path in files) in predicted.all_bytes
        assert len(files) in predicted.all_objects


def test_better_quality_is_larger() -> None:
    """And more pixels are."""
    assert image_bytes(256, 80) < image_bytes(256, 95) < image_bytes(256, 100)
    assert image_bytes(256, 95) == pytest.approx(43_690 + 600, rel=0.01)
