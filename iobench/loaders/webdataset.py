"""``webdataset``: the webdataset library over tar files, as its documentation shows."""

from __future__ import annotations

import importlib
import io
import math
import random
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageEnhance

from dataprep.reading.augment import (
    AREA,
    ASPECT,
    EIGENVALUES,
    EIGENVECTORS,
    EVALUATION_SHARE,
    TRIES,
)
from dataprep.reading.normalisation import SCALE, SHIFT
from dataprep.stores.local import LocalStore
from iobench.clock import Clock
from iobench.data.data_summary import open_shards
from iobench.errors import Unavailable
from iobench.loaders.capabilities import Capabilities
from iobench.loaders.frameworks import FrameworkLoader, need_cuda
from iobench.loaders.protocol import Batch, FirstBatch
from iobench.loaders.settings import COLOUR_JITTER, PCA_NOISE, ImageSettings, LoaderSettings
from iobench.loaders.torch_loader import WorkerOptions, shut_down_workers, start_epoch
from iobench.results.trial import Location

SHUFFLE_BUFFER = 1000
"""Samples in the shuffle buffer of each worker if ``shuffle_buffer`` is 0."""

_IMAGE_NAMES = ("jpg", "png", "webp")
"""The names that the image of a sample can have in a tar file."""


class WebDatasetLoader(FrameworkLoader):
    """``WebDataset`` in the workers of a DataLoader, with Pillow and transforms like torchvision's.

    With ``shuffle``, shards come in random order, and samples are drawn from a buffer. New workers
    start in each epoch.
    """

    name = "webdataset"
    reads = "webdataset"
    capabilities: ClassVar = Capabilities(
        record_format="webdataset", image_types=frozenset({"uint8", "float32"})
    )

    def __init__(self, location: Location | None, settings: LoaderSettings, clock: Clock) -> None:
        super().__init__(location, settings, clock)
        if not settings.decode:
            raise Unavailable("webdataset is measured with decoding: take the loader 'raw' instead")
        if self.location.is_remote:
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
        """Yield batches of (N, 3, S, S) images with int64 labels."""
        from torch.utils.data import DataLoader

        settings, begun_s = self.settings, self.clock.now_s()
        dataset = open_shards(self.location, self.reads)
        folder = LocalStore(self.location.uri)
        paths = [str(folder.path(shard.key)) for shard in dataset.shards()]
        label_offset = dataset.manifest.formats["webdataset"].label_offset
        listed_s = self.clock.now_s()
        worker_options: WorkerOptions = {}
        if settings.workers:
            worker_options = {
                "prefetch_factor": settings.prefetch,
                "multiprocessing_context": "fork",
            }
        loader = DataLoader(
            self._samples(paths, number, _Preparation(settings, number, label_offset)),
            batch_size=settings.batch_size,
            num_workers=settings.workers,
            pin_memory=settings.pin_memory,
            **worker_options,
        )
        self._batches = start_epoch(loader)
        if self.first_batch_parts is None:
            self.first_batch_parts = FirstBatch(
                listing_s=listed_s - begun_s, worker_start_s=self.clock.now_s() - listed_s
            )
        for images, labels in self._batches:
            yield Batch(images, labels, len(labels))

    def _samples(self, paths: list[str], number: int, prepare: _Preparation) -> Any:
        """Return the pipeline of the library, which gives images and labels of one epoch."""
        settings = self.settings
        seed = settings.seed
        if settings.shuffle:
            paths = random.Random(f"{seed}/{number}").sample(paths, len(paths))
        # The library treats a worker without shards as an error, unless empty_check is False.
        samples = self._library.WebDataset(paths, shardshuffle=False, empty_check=False)
        if settings.shuffle:
            buffer_samples = settings.shuffle_buffer or SHUFFLE_BUFFER
            # The library adds 1 to the number of the epoch before it shuffles.
            shuffle = self._library.detshuffle(buffer_samples, seed=seed, epoch=number - 1)
            samples = samples.compose(shuffle)
        return samples.map(prepare)

    def close(self) -> None:
        """End the workers and wait until they have ended."""
        shut_down_workers(self._batches)
        self._batches = None


class _Preparation:
    """Makes an image and a label from the members of a tar file that belong to one sample."""

    def __init__(self, settings: LoaderSettings, epoch: int, label_offset: int) -> None:
        self._settings, self._epoch, self._label_offset = settings, epoch, label_offset

    def __call__(self, sample: Mapping[str, Any]) -> tuple[Any, int]:
        """Return the image as an array (3, S, S), and its label."""
        settings = self._settings
        name = next(name for name in _IMAGE_NAMES if name in sample)
        label = -1
        if "cls" in sample:
            label = int(sample["cls"]) - self._label_offset
        generator = random.Random(f"{settings.seed}/{self._epoch}/{sample['__key__']}")
        with Image.open(io.BytesIO(sample[name])) as encoded:
            image = encoded.convert("RGB")
        if settings.augment:
            pixels = _augmented(image, settings, generator)
        else:
            pixels = np.asarray(_cropped(image, _centre(image.size), settings.image_size))
        pixels = pixels.transpose(2, 0, 1)
        if settings.normalise:
            return pixels * SCALE[:, None, None] + SHIFT[:, None, None], label
        return np.ascontiguousarray(pixels), label


_Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right and bottom of a part of an image, in pixels."""


def _augmented(
    image: Image.Image, settings: ImageSettings, generator: random.Random
) -> NDArray[np.uint8]:
    """Crop, flip and recolour an image at random; the result is uint8 (S, S, 3)."""
    box = _random_box(image.size, generator)
    image = _cropped(image, box, settings.image_size)
    if generator.random() < 0.5:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    if settings.colour_jitter:
        for enhancement in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
            factor = 1 + generator.uniform(-COLOUR_JITTER, COLOUR_JITTER)
            image = enhancement(image).enhance(factor)
    pixels = np.asarray(image)
    if settings.pca_noise:
        strengths = [generator.gauss(0, PCA_NOISE) for _ in EIGENVALUES]
        shifted = pixels + 255 * EIGENVECTORS @ (strengths * EIGENVALUES)
        pixels = np.clip(np.rint(shifted), 0, 255).astype(np.uint8)
    return pixels


def _cropped(image: Image.Image, box: _Box, side: int) -> Image.Image:
    """Cut a part of an image and resize it to a square."""
    return image.resize((side, side), Image.Resampling.BILINEAR, box)


def _random_box(size: tuple[int, int], generator: random.Random) -> _Box:
    """Return a crop as torchvision's ``RandomResizedCrop`` draws it."""
    width, height = size
    for _ in range(TRIES):
        area = width * height * generator.uniform(*AREA)
        aspect = math.exp(generator.uniform(math.log(ASPECT[0]), math.log(ASPECT[1])))
        box_width, box_height = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < box_width <= width and 0 < box_height <= height:
            left = generator.randint(0, width - box_width)
            top = generator.randint(0, height - box_height)
            return left, top, left + box_width, top + box_height
    return _centre(size)


def _centre(size: tuple[int, int]) -> _Box:
    """Return the centre square that remains if an image is scaled to 256 and cropped to 224."""
    side = min(size) * EVALUATION_SHARE
    left, top = (size[0] - side) / 2, (size[1] - side) / 2
    return left, top, left + side, top + side
