"""``dali`` and ``dali-gpu``: NVIDIA's DALI reads TFRecord shards by their index files."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from dataprep.formats import Layout
from dataprep.output import keys
from dataprep.reading.augment import (
    AREA,
    ASPECT,
    EIGENVALUES,
    EIGENVECTORS,
    EVALUATION_SHARE,
    TRIES,
    Augmentation,
)
from dataprep.reading.dataset import Dataset
from dataprep.reading.normalisation import IMAGENET_MEAN, IMAGENET_STD
from dataprep.stores.local import LocalStore
from iobench.clock import Clock
from iobench.data.data_summary import open_shards
from iobench.errors import TrialFailed, Unavailable
from iobench.loaders.capabilities import Capabilities
from iobench.loaders.frameworks import FrameworkLoader, need_cuda
from iobench.loaders.protocol import Batch, FirstBatch
from iobench.loaders.settings import LoaderSettings, augmentation_of
from iobench.results.trial import Location

_READER = "samples"
_NO_FEATURE = "label of no image"
"""The name of a feature that no record has, for data sets without labels."""

_BUFFER_SAMPLES = 1024
"""Samples in the shuffle buffer: DALI's own default."""


class DaliLoader(FrameworkLoader):
    """DALI's threads make torch tensors, ``prefetch`` batches ahead.

    There are ``workers`` threads. DALI draws crops and resizes images in its own way.
    """

    name = "dali"
    reads = "tfrecord"
    decodes_on: ClassVar[Literal["cpu", "mixed"]] = "cpu"
    capabilities: ClassVar = Capabilities(
        record_format="tfrecord", image_types=frozenset({"uint8", "float32"})
    )

    def __init__(self, location: Location | None, settings: LoaderSettings, clock: Clock) -> None:
        super().__init__(location, settings, clock)
        if not settings.decode:
            raise Unavailable("DALI always decodes: take the loader 'raw' instead")
        if self.location.is_remote:
            raise Unavailable(f"{self.name} reads shards and indexes at a path: give data @disk")
        try:
            importlib.import_module("nvidia.dali.fn")
            self._dali = importlib.import_module("nvidia.dali")
        except ImportError as error:
            raise Unavailable(
                f"DALI cannot be imported ({error}): pip install nvidia-dali-cuda120, or the "
                "package for your version of CUDA"
            ) from None
        if self.decodes_on == "mixed":
            need_cuda("dali-gpu decodes on a GPU; the loader dali needs none")
        if not settings.workers:
            self.notes.append(
                "DALI always decodes in threads of its own: 0 workers mean one thread"
            )
        if settings.shuffle:
            self.notes.append(
                f"DALI shuffles in a buffer of {_BUFFER_SAMPLES:,} samples; the first epoch sets "
                "the order of shards"
            )
        self._batches: Any = None
        self._dataset: Dataset | None = None
        self._next_epoch: int | None = None
        """The epoch that the open pipeline yields next; None if a new pipeline is needed."""

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield batches of (N, 3, S, S) images, float32 or uint8, with int64 labels."""
        if number != self._next_epoch:
            self.close()
            self._batches = self._open(number)
        self._next_epoch = None  # It stays unknown if this epoch is not read to its end.
        try:
            for (batch,) in self._batches:
                if self._dataset is not None:
                    # DALI has read the shards of this batch. Raise an error if they have changed.
                    self._dataset.snapshot.check()
                labels = batch["labels"].flatten()
                yield Batch(batch["images"], labels, len(labels))
        except RuntimeError as error:
            raise TrialFailed(f"DALI: {' '.join(str(error).split())}") from None
        self._batches.reset()
        self._next_epoch = number + 1

    def close(self) -> None:
        """Drop the pipeline; its threads end with it."""
        self._batches = self._next_epoch = None

    def _open(self, number: int) -> Any:
        """Build the pipeline, and return an iterator of its batches from epoch ``number`` on."""
        begun_s = self.clock.now_s()
        if self._dataset is None:
            self._dataset = open_shards(self.location, "tfrecord")
        dataset = self._dataset
        listed_s = self.clock.now_s()
        options = dataset.manifest.record_options("tfrecord")
        settings = self.settings
        generator = np.random.default_rng((settings.seed, number))
        pipeline = self._dali.Pipeline(
            batch_size=settings.batch_size,
            num_threads=max(1, settings.workers),
            device_id=None if self.decodes_on == "cpu" else 0,
            prefetch_queue_depth=settings.prefetch,
            seed=int(generator.integers(2**31)),
        )
        with pipeline:
            encoded, labels = self._read(dataset, options.layout, generator)
            pipeline.set_outputs(self._images(encoded), labels - options.label_offset)
        plugin = importlib.import_module("nvidia.dali.plugin.pytorch")
        batches = plugin.DALIGenericIterator(
            [pipeline],
            ["images", "labels"],
            reader_name=_READER,
            last_batch_policy=plugin.LastBatchPolicy.PARTIAL,
            prepare_first_batch=False,
        )
        if self.first_batch_parts is None:
            # DALI does not report how long the pipeline reads and how long it decodes.
            self.first_batch_parts = FirstBatch(
                listing_s=listed_s - begun_s, worker_start_s=self.clock.now_s() - listed_s
            )
        return batches

    def _read(
        self, dataset: Dataset, layout: Layout, generator: np.random.Generator
    ) -> tuple[Any, Any]:
        """Return the pipeline's encoded images and labels, in the order of an epoch."""
        tfrecord = importlib.import_module("nvidia.dali.tfrecord")
        # Records of images without a label have no such feature; DALI then gives the default, -1.
        image = layout.feature("encoded")
        label = layout.feature("label") or _NO_FEATURE
        feature_types = {
            image: tfrecord.FixedLenFeature((), tfrecord.string, ""),
            label: tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
        }
        shard_keys = [shard.key for shard in dataset.manifest.formats["tfrecord"].shards]
        shuffle = self.settings.shuffle
        if shuffle:
            order = generator.permutation(len(shard_keys))
            shard_keys = [shard_keys[number] for number in order]
        # A data set may have only some shards of a split, so index files are found by shard keys.
        index_keys = [keys.index_of(key, ".idx") for key in shard_keys]
        folder = LocalStore(self.location.uri)  # It refuses keys that lead out of the folder.
        features = self._dali.fn.readers.tfrecord(
            path=[str(folder.path(key)) for key in shard_keys],
            index_path=[str(folder.path(key)) for key in index_keys],
            features=feature_types,
            random_shuffle=shuffle,
            initial_fill=_BUFFER_SAMPLES if shuffle else 1,
            # DALI fills the last batch, and its iterator removes the added samples. Otherwise some
            # samples would remain for the next epoch.
            pad_last_batch=True,
            name=_READER,
        )
        return features[image], features[label]

    def _images(self, encoded: Any) -> Any:
        """Return images (3, S, S), augmented as the settings say."""
        fn, types = self._dali.fn, self._dali.types
        augmentation = augmentation_of(self.settings)
        side = augmentation.size
        decoding = {"device": self.decodes_on, "output_type": types.RGB}
        mirror: Any = 0
        if augmentation.random:
            images = fn.decoders.image_random_crop(
                encoded,
                random_area=list(AREA),
                random_aspect_ratio=list(ASPECT),
                num_attempts=TRIES,
                **decoding,
            )
            images = self._recoloured(fn.resize(images, size=[side, side]), augmentation)
            mirror = fn.random.coin_flip(probability=0.5)
        else:
            images = fn.decoders.image(encoded, **decoding)
            images = fn.resize(images, resize_shorter=round(side / EVALUATION_SHARE))
        finish = partial(
            fn.crop_mirror_normalize,
            images,
            crop=(side, side),
            mirror=mirror,
            output_layout="CHW",
        )
        if not augmentation.normalise:
            return finish(dtype=types.UINT8)
        # DALI takes the mean and the deviation of values from 0 to 255.
        mean = [255 * value for value in IMAGENET_MEAN]
        deviation = [255 * value for value in IMAGENET_STD]
        return finish(dtype=types.FLOAT, mean=mean, std=deviation)

    def _recoloured(self, images: Any, augmentation: Augmentation) -> Any:
        """Change the colours of images: jitter and noise, each if its strength is not 0."""
        fn = self._dali.fn
        if augmentation.jitter:
            limits = [1 - augmentation.jitter, 1 + augmentation.jitter]
            images = fn.color_twist(
                images,
                brightness=fn.random.uniform(range=limits),
                contrast=fn.random.uniform(range=limits),
                saturation=fn.random.uniform(range=limits),
            )
        if augmentation.noise:
            axes = (255 * EIGENVECTORS * EIGENVALUES).astype(np.float32)
            strengths = fn.random.normal(stddev=augmentation.noise, shape=[3])
            shift = fn.reductions.sum(self._dali.types.Constant(axes) * strengths, axes=1)
            images = self._dali.math.clamp(images + shift, 0, 255)
        return images


class DaliGpuLoader(DaliLoader):
    """The loader ``dali``, with JPEGs decoded and images resized by the first GPU."""

    name = "dali-gpu"
    decodes_on = "mixed"
