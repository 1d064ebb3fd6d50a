"""Other programs that turn images into training batches, used as their documentation shows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dataprep
from benchmarks.contest import Measured
from benchmarks.workplace import files_below
from dataprep.reading.augment import AREA, ASPECT, TRIES
from dataprep.reading.normalisation import IMAGENET_MEAN, IMAGENET_STD

SIZE = 224
BATCH = 64
CORES = 2

Epoch = Callable[[int], Iterator[int]]
"""A function from the number of an epoch to the sizes of its batches, as the batches arrive."""

_SHUFFLE_BUFFER = 2_048
"""The number of records in the shuffle buffer of tf.data."""

_READERS = 10
"""The number of shards that tf.data reads at the same time."""

_IMAGES_PER_WARM_UP_IMAGE = 16
"""The number of images in the measurement for each image in the warm-up."""


def steady(epoch: Epoch, images: int) -> Measured:
    """Measure whole epochs until at least ``images`` images have arrived after a warm-up.

    The warm-up has a sixteenth of the images. In this time workers start, and tf.data tunes itself.
    """
    warm_up_batches = max(1, images // _IMAGES_PER_WARM_UP_IMAGE // BATCH)
    counted_images = batches = number = 0
    started_s = time.perf_counter()
    while counted_images < images:
        for size in epoch(number):
            batches += 1
            if batches > warm_up_batches:
                counted_images += size
            elif batches == warm_up_batches:
                started_s = time.perf_counter()
        number += 1
    return Measured(counted_images, time.perf_counter() - started_s)


def tf_data(path: str, normalise: bool, images: int) -> Measured:
    """Measure ``tf_batches``."""
    batches = tf_batches(path, normalise)
    return steady(lambda _: (int(labels.shape[0]) for _, labels in batches), images)


def tf_batches(path: str, normalise: bool) -> Any:
    """Return batches of tf.data as in TensorFlow's ImageNet example, tuned by AUTOTUNE.

    Shards are interleaved, and records are shuffled. Only a random part of each image is decoded.
    It may be flipped, and is resized bilinearly. The order may depend on timing, which is faster.
    Pixels are normalised by rows. The example normalises them by the last axis, which has a length
    of 3 and takes longer.
    """
    from dataprep.reading.frameworks import import_framework

    tf: Any = import_framework("tensorflow")
    paths = [f"{path}/{shard.key}" for shard in dataprep.open(path, format="tfrecord").shards()]
    records = tf.data.Dataset.from_tensor_slices(paths).shuffle(len(paths))
    records = records.interleave(
        tf.data.TFRecordDataset, cycle_length=_READERS, num_parallel_calls=tf.data.AUTOTUNE
    )
    samples = records.shuffle(_SHUFFLE_BUFFER).map(
        _tf_preparation(tf, normalise), num_parallel_calls=tf.data.AUTOTUNE
    )
    batches = samples.batch(BATCH).prefetch(tf.data.AUTOTUNE)
    options = tf.data.Options()
    options.deterministic = False
    return batches.with_options(options)


def _tf_preparation(tf: Any, normalise: bool) -> Any:
    scale = tf.constant([1 / (255 * std) for std in IMAGENET_STD] * SIZE, tf.float32)
    pairs = zip(IMAGENET_MEAN, IMAGENET_STD, strict=True)
    shift = tf.constant([-mean / std for mean, std in pairs] * SIZE, tf.float32)
    features = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
    }

    def prepare(record: Any) -> tuple[Any, Any]:
        features_of_record = tf.io.parse_single_example(record, features)
        encoded = features_of_record["image/encoded"]
        begin, extent, _ = tf.image.sample_distorted_bounding_box(
            tf.image.extract_jpeg_shape(encoded),
            bounding_boxes=tf.zeros([1, 0, 4]),
            min_object_covered=0.0,
            aspect_ratio_range=ASPECT,
            area_range=AREA,
            max_attempts=TRIES,
            use_image_if_no_bounding_boxes=True,
        )
        window = tf.concat([begin[:2], extent[:2]], 0)
        image = tf.image.decode_and_crop_jpeg(encoded, window, channels=3)
        image = tf.image.random_flip_left_right(image)
        image = tf.image.resize(image, (SIZE, SIZE), method="bilinear")
        if normalise:
            rows = tf.reshape(image, (SIZE, SIZE * 3)) * scale + shift
            image = tf.reshape(rows, (SIZE, SIZE, 3))
        return image, features_of_record["image/class/label"]

    return prepare


def folder(path: str, normalise: bool, images: int) -> Measured:
    """Measure torch's DataLoader over class folders, with the transforms of torchvision by Pillow.

    These are ImageFolder, RandomResizedCrop and RandomHorizontalFlip, and then ToTensor and
    Normalize, or PILToTensor. There are two persistent workers. Other options have their defaults.
    """
    from torch.utils.data import DataLoader

    files: Any = Folder(path, normalise)
    loader: Any = DataLoader(
        files,
        batch_size=BATCH,
        shuffle=True,
        num_workers=CORES,
        persistent_workers=True,
    )
    return steady(lambda _: (len(labels) for _, labels in loader), images)


class Folder:
    """A data set of class folders: images as tensors (3, 224, 224), with the class's number."""

    def __init__(self, folder: str, normalise: bool) -> None:
        self._files = files_below(Path(folder))
        names = sorted({path.parent.name for path in self._files})
        self._labels = {name: label for label, name in enumerate(names)}
        self._normalise = normalise

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        import numpy as np
        import torch
        from PIL import Image

        path = self._files[index]
        with Image.open(path) as opened:
            image = opened.convert("RGB")
        left, top, width, height = torchvision_crop(*image.size)
        image = image.crop((left, top, left + width, top + height))
        image = image.resize((SIZE, SIZE), Image.Resampling.BILINEAR)
        if torch.rand(1) < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        tensor = torch.from_numpy(np.array(image, copy=True)).permute(2, 0, 1).contiguous()
        if self._normalise:
            mean = torch.tensor(IMAGENET_MEAN)[:, None, None]
            std = torch.tensor(IMAGENET_STD)[:, None, None]
            tensor = tensor.to(torch.float32).div(255).sub_(mean).div_(std)
        return tensor, self._labels[path.parent.name]


def torchvision_crop(width: int, height: int) -> tuple[int, int, int, int]:
    """Draw a crop as torchvision's RandomResizedCrop does. Returns left, top, width and height."""
    import torch

    low, high = (math.log(ratio) for ratio in ASPECT)
    for _ in range(TRIES):
        pixels = width * height * torch.empty(1).uniform_(*AREA).item()
        ratio = math.exp(torch.empty(1).uniform_(low, high).item())
        across, down = round(math.sqrt(pixels * ratio)), round(math.sqrt(pixels / ratio))
        if 0 < across <= width and 0 < down <= height:
            top = int(torch.randint(0, height - down + 1, (1,)).item())
            left = int(torch.randint(0, width - across + 1, (1,)).item())
            return left, top, across, down
    ratio = min(max(width / height, ASPECT[0]), ASPECT[1])
    across, down = min(width, round(height * ratio)), min(height, round(width / ratio))
    return (width - across) // 2, (height - down) // 2, across, down


def mxnet(path: str, normalise: bool, images: int) -> Measured:
    """Measure ``mxnet_epochs``."""
    epoch = mxnet_epochs(path, normalise)
    return steady(lambda number: (int(labels.shape[0]) for _, labels in epoch(number)), images)


def mxnet_epochs(path: str, normalise: bool) -> Callable[[int], Iterator[tuple[Any, Any]]]:
    """Return epochs of MXNet's ImageRecordIter over RecordIO shards, with its decoder and crops."""
    batches = dataprep.to_mxnet(
        dataprep.open(path, format="recordio"),
        batch_size=BATCH,
        augmentation=dataprep.Augmentation(size=SIZE, normalise=normalise),
        threads=CORES,
    )

    def epoch(number: int) -> Iterator[tuple[Any, Any]]:
        batches.set_epoch(number)
        for batch in batches:
            batch.data[0].wait_to_read()
            yield batch.data[0], batch.label[0]

    return epoch
