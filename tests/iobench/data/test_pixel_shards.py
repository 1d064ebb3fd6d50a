"""Shards of decoded images differ from shards of JPEGs in the form of the images only."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dataprep.config.shard_config import ShardConfig
from dataprep.image.policy import ImagePolicy
from dataprep.image.rgb import decode_rgb
from dataprep.job.run import shard
from dataprep.output import keys
from dataprep.reading.dataset import open_dataset
from iobench.clock import SystemClock
from iobench.data.data_summary import summarize_data
from iobench.data.pixel_shards import write_pixel_shards
from iobench.data.pixels import unpacked
from iobench.errors import Unavailable
from iobench.loaders import LOADERS, Batch, LoaderSettings
from iobench.results.trial import Location


@pytest.fixture(scope="module")
def locations(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Location, Location]:
    """Shards of 120 JPEGs, one further source file of which is broken, and the same as pixels."""
    folder = tmp_path_factory.mktemp("pixels")
    source = folder / "source"
    shutil.copytree(tree, source)
    broken = source / "n99999999"
    broken.mkdir()
    (broken / "broken.jpg").write_bytes(b"\xff\xd8\xff")
    config = {
        "source": str(source),
        "output": str(folder / "shards"),
        "format": ("tfrecord", "recordio"),
        "image": ImagePolicy(size=256),
        "shard_size": "1.2MB",
        "max_failures": 1,
    }
    shard(ShardConfig.model_validate(config))
    compressed = Location(str(folder / "shards"), "shards")
    write_pixel_shards(compressed, folder / "pixels")
    return compressed, Location(str(folder / "pixels"), "shards", decoded=True)


def batches(loader: str, location: Location, **values: object) -> Iterator[Batch]:
    """Yield the batches of one epoch of a loader."""
    settings = LoaderSettings.model_validate({"batch_size": 32, "image_size": 144, **values})
    loader_object = LOADERS.load(loader)(location, settings, SystemClock())
    try:
        yield from loader_object.epoch(0)
    finally:
        loader_object.close()


def test_the_same_samples_in_the_same_shards(locations: tuple[Location, Location]) -> None:
    """Pixel shards have the same order and labels, and the pixels that a decoder gives.

    The table has the new offsets. A sample takes three bytes for each pixel, and up to 1 kB more.
    """
    before, after = (open_dataset(location.uri, format="tfrecord") for location in locations)
    assert [len(part) for part in before.shards()] == [len(part) for part in after.shards()]
    assert len(before.shards()) > 1
    pixels_bytes = 0
    for jpeg, pixels in zip(before, after, strict=True):
        assert (jpeg.label, jpeg.filename) == (pixels.label, pixels.filename)
        image = decode_rgb(jpeg.image)
        assert np.array_equal(image, unpacked(pixels.image))
        pixels_bytes += image.nbytes
    summary = summarize_data(locations[1], "tfrecord")
    assert summary.samples == len(after) == 120
    assert pixels_bytes < summary.bytes < pixels_bytes + 120 * 1000
    assert list(after.manifest.formats) == ["tfrecord"]
    assert after[77].filename == before[77].filename
    assert list(after.samples["source"]) == list(before.samples["source"])
    assert not any(str(name).startswith("recordio_") for name in after.samples)
    raw = [unpacked(image) for batch in batches("raw", locations[1]) for image in batch.images]
    assert len(raw) == 120


@pytest.mark.parametrize("loader", ["torch-map", "torch-iterable"])
@pytest.mark.parametrize("augment", [True, False], ids=["augmented", "centred"])
def test_a_loader_gives_the_same_pixels(
    locations: tuple[Location, Location], loader: str, augment: bool
) -> None:
    """Both forms give the same samples in the same order."""
    torch = pytest.importorskip("torch")
    settings = {"augment": augment, "colour_jitter": augment}
    compressed, decoded = (batches(loader, location, **settings) for location in locations)
    for jpegs, pixels in zip(compressed, decoded, strict=True):
        assert torch.equal(jpegs.images, pixels.images)
        assert torch.equal(jpegs.labels, pixels.labels)


def test_the_manifest_is_written_last(locations: tuple[Location, Location], tmp_path: Path) -> None:
    """Shards are not a data set until all of them are written."""
    written: list[str] = []
    real = Path.write_bytes

    def noted(self: Path, data: bytes) -> int:
        written.append(self.name)
        return real(self, data)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Path, "write_bytes", noted)
        write_pixel_shards(locations[0], tmp_path / "again")
    assert written[-1] == keys.manifest("train")


def test_shards_of_another_format_cannot_be_had_as_pixels(tree: Path, tmp_path: Path) -> None:
    """The message names the option that makes the missing format."""
    config = {"source": str(tree), "output": str(tmp_path / "out"), "format": "recordio"}
    shard(ShardConfig.model_validate({**config, "image": ImagePolicy(size=64)}))
    with pytest.raises(Unavailable, match="--format tfrecord"):
        write_pixel_shards(Location(str(tmp_path / "out"), "shards"), tmp_path / "pixels")
