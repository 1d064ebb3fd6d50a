"""What the settings of a loader request, and what a loader reports as missing."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

import dataprep
from dataprep.errors import CorruptImage, ManifestMissing
from dataprep.image.rgb import decode_rgb
from dataprep.reading.augment import Augmentation, sample_rng
from iobench.clock import SystemClock
from iobench.data.data_summary import open_shards
from iobench.data.pixels import packed
from iobench.errors import Unavailable
from iobench.loaders import LOADERS, LoaderSettings
from iobench.loaders.settings import augmentation_of
from iobench.results.trial import Location


def test_defaults() -> None:
    """The default is the usual augmentation without colour jitter."""
    assert augmentation_of(LoaderSettings()) == Augmentation()


def test_all_of_it() -> None:
    """Colour jitter and noise have the usual strengths of the field."""
    settings = LoaderSettings(
        image_size=96, colour_jitter=True, pca_noise=True, normalise=False, augment=False
    )
    assert augmentation_of(settings, "HWC") == Augmentation(
        size=96, random=False, jitter=0.4, noise=0.1, normalise=False, layout="HWC"
    )


@pytest.mark.parametrize("augment", [True, False], ids=["augmented", "centred"])
def test_stored_pixels_become_what_their_image_becomes(augment: bool) -> None:
    """Stored pixels get the same crops and colours as the encoded image."""
    noise = np.random.default_rng(3).integers(0, 256, (60, 90, 3)).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(cv2.blur(noise, (9, 9))).save(file, "JPEG")
    settings = LoaderSettings(image_size=48, augment=augment, colour_jitter=True)
    encoded, decoded = augmentation_of(settings), augmentation_of(settings, decoded=True)
    image = packed(decode_rgb(file.getvalue()))
    for index in range(20):
        draws = [sample_rng(1, 2, index) for _ in range(2)]
        results = encoded(file.getvalue(), draws[0]), decoded(image, draws[1])
        assert np.array_equal(*results)
        assert draws[0].random() == draws[1].random()


def test_an_encoded_image_is_no_pixels() -> None:
    """An encoded image is refused instead of read as pixels."""
    augmentation = augmentation_of(LoaderSettings(), decoded=True)
    with pytest.raises(CorruptImage):
        augmentation(b"\xff\xd8\xff\xe0" * 20, sample_rng(0, 0, 0))


@pytest.mark.parametrize(
    ("loader", "framework", "title"),
    [
        ("torch-map", "torch", "PyTorch"),
        ("torch-iterable", "torch", "PyTorch"),
        ("tf-data", "tensorflow", "TensorFlow"),
    ],
    ids=lambda value: value,
)
def test_missing_framework(
    monkeypatch: pytest.MonkeyPatch, loader: str, framework: str, title: str
) -> None:
    """The message names the extra that installs the framework."""
    monkeypatch.setitem(sys.modules, framework, None)
    message = rf"^{title} is not installed: pip install 'dataprep-iobench\[{framework}\]'$"
    with pytest.raises(Unavailable, match=message):
        LOADERS.load(loader)(Location("/data", "shards"), LoaderSettings(), SystemClock())


def test_pinned_memory_needs_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pinned memory without a CUDA device is refused."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    settings = LoaderSettings(pin_memory=True)
    with pytest.raises(Unavailable, match="pinned memory is for a CUDA device"):
        LOADERS.load("torch-map")(Location("/data", "shards"), settings, SystemClock())


def test_missing_format(tree: Path, tmp_path: Path) -> None:
    """The message names the formats of the data set and how to get the missing one."""
    output = tmp_path / "out"
    config = {"source": str(tree), "output": str(output), "format": ("recordio",)}
    dataprep.shard(dataprep.ShardConfig.model_validate(config))
    location = Location(str(output), "shards")
    assert len(open_shards(location, "recordio")) == 120
    with pytest.raises(Unavailable, match="it has recordio: shard it with --format tfrecord"):
        open_shards(location, "tfrecord")


def test_nothing_there(tmp_path: Path) -> None:
    """An empty folder is not a data set."""
    with pytest.raises(ManifestMissing):
        open_shards(Location(str(tmp_path), "shards"), "tfrecord")
