"""Other ways from images to training batches, each as its own documentation has it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dataprep
from benchmarks.contest import Measured
from benchmarks.workplace import photographs
from dataprep.reading.augment import AREA, ASPECT, TRIES
from dataprep.reading.normalisation import IMAGENET_MEAN, IMAGENET_STD

SIZE = 224
BATCH = 64
CORES = 2

Epoch = Callable[[int], Iterator[int]]
"""The number of an epoch to the sizes of its batches, each when it is there."""

_SHUFFLED = 2_048
_READERS = 10


def steady(epoch: Epoch, images: int) -> Measured:
    """At least so many images in whole epochs, after a sixteenth as many that are not counted.

    tf.data tunes itself meanwhile, and workers start.
    """
    warm_up = max(1, images // 16 // BATCH)  # batches
    seen = batches = number = 0
    started_s = time.perf_counter()
    while seen < images:
        for size in epoch(number):
            batches += 1
            if batches > warm_up:
                seen += size
            elif batches == warm_up:
                started_s = time.perf_counter()
        number += 1
    return Measured(seen, time.perf_counter() - started_s)


def tf_data(path: str, normalise: bool, images: int) -> Measured:
    """Batches of ``tf_batches``."""
    batches = tf_batches(path, normalise)
    return steady(lambda _: (int(labels.shape[0]) for _, labels in batches), images)


def tf_batches(path: str, normalise: bool) -> Any:
    """tf.data as TensorFlow's ImageNet example has it, everything left to AUTOTUNE.

    Shards interleaved, records shuffled; a distorted bounding box, only that part decoded,
    flipped, resized bilinearly. Order may depend on timing, which is faster. Pixels are
    normalised a row at a time: as the example does it, by the last axis of 3, takes longer.
    """
    from dataprep.reading.frameworks import import_framework

    tf: Any = import_framework("tensorflow")
    paths = [f"{path}/{shard.key}" for shard in dataprep.open(path, format="tfrecord").shards()]
    records = tf.data.Dataset.from_tensor_slices(paths).shuffle(len(paths))
    records = records.interleave(
        tf.data.TFRecordDataset, cycle_length=_READERS, num_parallel_calls=tf.data.AUTOTUNE
    )
    samples = records.shuffle(_SHUFFLED).map(
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
    """torch's DataLoader over class folders, with what torchvision's transforms do, by Pillow.

    ImageFolder, RandomResizedCrop, RandomHorizontalFlip, then ToTensor and Normalize, or
    PILToTensor; two workers that stay, everything else by default.
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
    """Images of class folders as tensors (3, 224, 224), with the number of their class."""

    def __init__(self, folder: str, normalise: bool) -> None:
        self._files = photographs(Path(folder))
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
            mean, std = (torch.tensor(of)[:, None, None] for of in (IMAGENET_MEAN, IMAGENET_STD))
            tensor = tensor.to(torch.float32).div(255).sub_(mean).div_(std)
        return tensor, self._labels[path.parent.name]


def torchvision_crop(width: int, height: int) -> tuple[int, int, int, int]:
    """Left, top, width and height, drawn by torch as RandomResizedCrop draws them."""
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
    """Batches of ``mxnet_epochs``."""
    epoch = mxnet_epochs(path, normalise)
    return steady(lambda number: (int(labels.shape[0]) for _, labels in epoch(number)), images)


def mxnet_epochs(path: str, normalise: bool) -> Callable[[int], Iterator[tuple[Any, Any]]]:
    """ImageRecordIter over the RecordIO shards, through ``to_mxnet``: its decoder, its crops."""
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
