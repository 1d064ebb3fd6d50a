"""``webdataset``: the webdataset library over tars, as its documentation shows."""

from __future__ import annotations

import importlib
import io
import math
import random
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from PIL import Image, ImageEnhance

from dataprep.adapters.augment import (
    AREA,
    ASPECT,
    EIGENVALUES,
    EIGENVECTORS,
    EVALUATION_SHARE,
    TRIES,
)
from dataprep.adapters.normalisation import SCALE, SHIFT
from dataprep.stores.local import LocalStore
from iobench.clock import Clock
from iobench.errors import Unavailable
from iobench.loaders.protocol import Batch, FirstBatch, LoaderSettings, PlacedLoader, need_cuda
from iobench.stored import open_shards
from iobench.trial import Place

SHUFFLE_BUFFER = 1000
"""Samples in the shuffle buffer of each worker unless the settings say otherwise."""

_JITTER, _NOISE = 0.4, 0.1
_IMAGES = ("jpg", "png", "webp")


class WebDatasetLoader(PlacedLoader):
    """``WebDataset``, Pillow and transforms like torchvision's in the workers of a DataLoader.

    Shards come in random order, and samples from a buffer; workers start anew in each epoch.
    """

    name = "webdataset"
    reads = "webdataset"

    def __init__(self, place: Place | None, settings: LoaderSettings, clock: Clock) -> None:
        super().__init__(place, settings, clock)
        if not settings.decode:
            raise Unavailable("webdataset is measured with decoding: take the loader 'raw' instead")
        if self.place.is_remote:
            raise Unavailable("webdataset reads tars at a path: give data @disk")
        if settings.pin_memory:
            need_cuda("pinned memory is for a CUDA device")
        try:
            self._library = importlib.import_module("webdataset")
        except ImportError:
            raise Unavailable(
                "the webdataset library is not installed: pip install webdataset"
            ) from None
        self._batches: Any = None

    def epoch(self, number: int) -> Iterator[Batch]:
        """Batches of (N, 3, S, S) images with int64 labels."""
        from torch.utils.data import DataLoader

        settings, begun_s = self.settings, self.clock.now_s()
        dataset = open_shards(self.place, self.reads)
        folder = LocalStore(self.place.uri)
        paths = [str(folder.path(shard.key)) for shard in dataset.shards()]
        offset = dataset.manifest.formats["webdataset"].label_offset
        listed_s = self.clock.now_s()
        workers: dict[str, Any] = {}
        if settings.workers:
            workers = {"prefetch_factor": settings.prefetch, "multiprocessing_context": "fork"}
        loader = DataLoader(
            self._samples(paths, number, _Preparation(settings, number, offset)),
            batch_size=settings.batch_size,
            num_workers=settings.workers,
            pin_memory=settings.pin_memory,
            **workers,
        )
        with warnings.catch_warnings():
            # Python from 3.12 on warns of forking beside threads, which torch does by design.
            warnings.filterwarnings("ignore", "This process .* is multi-threaded")
            batches = self._batches = iter(loader)
        if self.parts is None:
            self.parts = FirstBatch(
                listing_s=listed_s - begun_s, worker_start_s=self.clock.now_s() - listed_s
            )
        for images, labels in batches:
            yield Batch(images, labels, len(labels))

    def _samples(self, paths: list[str], number: int, prepare: _Preparation) -> Any:
        """The pipeline of the library: images and labels of one epoch."""
        library, settings = self._library, self.settings
        seed = settings.seed
        if settings.shuffle:
            paths = random.Random(f"{seed}/{number}").sample(paths, len(paths))
        # A worker may have no shard at all, which the library takes for an error.
        samples = library.WebDataset(paths, shardshuffle=False, empty_check=False)
        if settings.shuffle:
            buffer = settings.shuffle_buffer or SHUFFLE_BUFFER
            # It adds 1 to the number of the epoch before it shuffles.
            shuffle = library.detshuffle(buffer, seed=seed, epoch=number - 1)
            samples = samples.compose(shuffle)
        return samples.map(prepare)

    def close(self) -> None:
        """End the workers and wait until they are gone."""
        if hasattr(self._batches, "_shutdown_workers"):
            self._batches._shutdown_workers()
        self._batches = None


class _Preparation:
    """Makes an image and a label of the members of a sample."""

    def __init__(self, settings: LoaderSettings, epoch: int, label_offset: int) -> None:
        self._settings, self._epoch, self._label_offset = settings, epoch, label_offset

    def __call__(self, sample: Mapping[str, Any]) -> tuple[Any, int]:
        """Image as an array (3, S, S) and label."""
        settings = self._settings
        data = next(sample[name] for name in _IMAGES if name in sample)
        label = int(sample["cls"]) - self._label_offset if "cls" in sample else -1
        draw = random.Random(f"{settings.seed}/{self._epoch}/{sample['__key__']}")
        with Image.open(io.BytesIO(data)) as opened:
            image = opened.convert("RGB")
        box = _random_box(image.size, draw) if settings.augment else _centre(image.size)
        side = settings.image_size
        image = image.resize((side, side), Image.Resampling.BILINEAR, box)
        if settings.augment and draw.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        if settings.augment and settings.colour_jitter:
            for enhancement in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
                image = enhancement(image).enhance(1 + draw.uniform(-_JITTER, _JITTER))
        pixels = np.asarray(image)
        if settings.augment and settings.pca_noise:
            noise = [draw.gauss(0, _NOISE) for _ in EIGENVALUES]
            shifted = pixels + 255 * EIGENVECTORS @ (noise * EIGENVALUES)
            pixels = np.clip(np.rint(shifted), 0, 255).astype(np.uint8)
        pixels = pixels.transpose(2, 0, 1)
        if settings.normalise:
            return pixels * SCALE[:, None, None] + SHIFT[:, None, None], label
        return np.ascontiguousarray(pixels), label


_Box = tuple[float, float, float, float]


def _random_box(size: tuple[int, int], draw: random.Random) -> _Box:
    """The crop of torchvision's ``RandomResizedCrop``."""
    width, height = size
    for _ in range(TRIES):
        area = width * height * draw.uniform(*AREA)
        aspect = math.exp(draw.uniform(math.log(ASPECT[0]), math.log(ASPECT[1])))
        wide, high = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < wide <= width and 0 < high <= height:
            left, top = draw.randint(0, width - wide), draw.randint(0, height - high)
            return left, top, left + wide, top + high
    return _centre(size)


def _centre(size: tuple[int, int]) -> _Box:
    """The square in the centre that is left of an image scaled to 256 and cropped to 224."""
    side = min(size) * EVALUATION_SHARE
    left, top = (size[0] - side) / 2, (size[1] - side) / 2
    return left, top, left + side, top + side
