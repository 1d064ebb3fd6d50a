"""``dali`` and ``dali-gpu``: NVIDIA's DALI reads TFRecord shards by their index files."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import numpy as np

from dataprep import keys
from dataprep.adapters.augment import (
    AREA,
    ASPECT,
    EIGENVALUES,
    EIGENVECTORS,
    EVALUATION_SHARE,
    TRIES,
)
from dataprep.adapters.normalisation import IMAGENET_MEAN, IMAGENET_STD
from dataprep.dataset import Dataset
from dataprep.formats import Layout
from dataprep.stores.local import LocalStore
from iobench.clock import Clock
from iobench.errors import TrialFailed, Unavailable
from iobench.loaders.protocol import (
    Batch,
    FirstBatch,
    LoaderSettings,
    PlacedLoader,
    augmentation_of,
    need_cuda,
)
from iobench.stored import open_shards
from iobench.trial import Place

_READER = "samples"
_NO_FEATURE = "label of no image"
_BUFFER = 1024  # DALI's own default


class DaliLoader(PlacedLoader):
    """``workers`` threads make torch tensors, ``prefetch`` batches ahead.

    DALI's operators make the pixels: crops are drawn and images resized in DALI's own way.
    """

    name = "dali"
    reads = "tfrecord"
    decodes_on: ClassVar[Literal["cpu", "mixed"]] = "cpu"

    def __init__(self, place: Place | None, settings: LoaderSettings, clock: Clock) -> None:
        super().__init__(place, settings, clock)
        if not settings.decode:
            raise Unavailable("DALI always decodes: take the loader 'raw' instead")
        if self.place.is_remote:
            raise Unavailable(f"{self.name} reads shards and indexes at a path: give data @disk")
        try:
            importlib.import_module("nvidia.dali.fn")
            self._dali = importlib.import_module("nvidia.dali")
        except ImportError as error:
            raise Unavailable(
                f"DALI cannot be imported ({error}): pip install nvidia-dali-cuda120, or the one "
                "of your CUDA"
            ) from None
        if self.decodes_on == "mixed":
            need_cuda("dali-gpu decodes on one; dali needs none")
        if not settings.workers:
            self.notes.append(
                "DALI always decodes in threads of its own: 0 workers mean one thread"
            )
        if settings.shuffle:
            self.notes.append(
                f"DALI shuffles in a buffer of {_BUFFER:,} samples; the first epoch sets the order "
                "of shards"
            )
        self._batches: Any = None
        self._dataset: Dataset | None = None
        self._following: int | None = None

    def epoch(self, number: int) -> Iterator[Batch]:
        """Batches of (N, 3, S, S) images, float32 or uint8, with int64 labels."""
        if number != self._following:
            self.close()
            self._batches = self._open(number)
        self._following = None  # unless this epoch is read to its end
        try:
            for (batch,) in self._batches:
                if self._dataset is not None:
                    self._dataset.snapshot.check()  # after DALI has read them
                labels = batch["labels"].flatten()
                yield Batch(batch["images"], labels, len(labels))
        except RuntimeError as error:
            raise TrialFailed(f"DALI: {' '.join(str(error).split())}") from None
        self._batches.reset()
        self._following = number + 1

    def close(self) -> None:
        """Drop the pipeline; its threads end with it."""
        self._batches = self._following = None

    def _open(self, number: int) -> Any:
        begun_s = self.clock.now_s()
        self._dataset = dataset = self._dataset or open_shards(self.place, "tfrecord")
        listed_s = self.clock.now_s()
        options = dataset.manifest.record_options("tfrecord")
        settings, dali = self.settings, self._dali
        drawn = np.random.default_rng((settings.seed, number))
        pipeline = dali.Pipeline(
            batch_size=settings.batch_size,
            num_threads=max(1, settings.workers),
            device_id=None if self.decodes_on == "cpu" else 0,
            prefetch_queue_depth=settings.prefetch,
            seed=int(drawn.integers(2**31)),
        )
        with pipeline:
            encoded, labels = self._read(dataset, options.layout, drawn)
            pipeline.set_outputs(self._images(encoded), labels - options.label_offset)
        plugin = importlib.import_module("nvidia.dali.plugin.pytorch")
        batches = plugin.DALIGenericIterator(
            [pipeline],
            ["images", "labels"],
            reader_name=_READER,
            last_batch_policy=plugin.LastBatchPolicy.PARTIAL,
            prepare_first_batch=False,
        )
        # DALI does not say how long the pipeline reads and how long it decodes.
        self.parts = self.parts or FirstBatch(listed_s - begun_s, self.clock.now_s() - listed_s)
        return batches

    def _read(
        self, dataset: Dataset, layout: Layout, drawn: np.random.Generator
    ) -> tuple[Any, Any]:
        """Encoded images and labels, in the order of an epoch."""
        tfrecord = importlib.import_module("nvidia.dali.tfrecord")
        # Records of unlabelled images have no label; DALI then gives its default, -1.
        image, label = layout.feature("encoded"), layout.feature("label") or _NO_FEATURE
        shards = dataset.manifest.formats["tfrecord"].shards
        shuffle = self.settings.shuffle
        folder = LocalStore(self.place.uri)  # refuses keys that lead out of it
        numbers = drawn.permutation(len(shards)) if shuffle else range(len(shards))
        found = self._dali.fn.readers.tfrecord(
            path=[str(folder.path(shards[number].key)) for number in numbers],
            # By the keys of the shards: these may be some of the shards of the split.
            index_path=[
                str(folder.path(keys.index_of(shards[number].key, ".idx"))) for number in numbers
            ],
            features={
                image: tfrecord.FixedLenFeature((), tfrecord.string, ""),
                label: tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
            },
            random_shuffle=shuffle,
            initial_fill=_BUFFER if shuffle else 1,
            # The last batch is filled and cut again, so that no sample is left for the next epoch.
            pad_last_batch=True,
            name=_READER,
        )
        return found[image], found[label]

    def _images(self, encoded: Any) -> Any:
        """Images (3, S, S), augmented as the settings say."""
        fn, types = self._dali.fn, self._dali.types
        asked = augmentation_of(self.settings)
        side = asked.size
        how = {"device": self.decodes_on, "output_type": types.RGB}
        flip: Any = 0
        if asked.random:
            images = fn.decoders.image_random_crop(
                encoded,
                random_area=list(AREA),
                random_aspect_ratio=list(ASPECT),
                num_attempts=TRIES,
                **how,
            )
            images = fn.resize(images, size=[side, side])
            if asked.jitter:
                factors = {
                    name: fn.random.uniform(range=[1 - asked.jitter, 1 + asked.jitter])
                    for name in ("brightness", "contrast", "saturation")
                }
                images = fn.color_twist(images, **factors)
            if asked.noise:
                components = types.Constant((255 * EIGENVECTORS * EIGENVALUES).astype(np.float32))
                drawn = fn.random.normal(stddev=asked.noise, shape=[3])
                shift = fn.reductions.sum(components * drawn, axes=1)
                images = self._dali.math.clamp(images + shift, 0, 255)
            flip = fn.random.coin_flip(probability=0.5)
        else:
            images = fn.decoders.image(encoded, **how)
            images = fn.resize(images, resize_shorter=round(side / EVALUATION_SHARE))
        scale: dict[str, Any] = {"dtype": types.UINT8}
        if asked.normalise:
            mean, std = ([255 * x for x in each] for each in (IMAGENET_MEAN, IMAGENET_STD))
            scale = {"dtype": types.FLOAT, "mean": mean, "std": std}
        return fn.crop_mirror_normalize(
            images, crop=(side, side), mirror=flip, output_layout="CHW", **scale
        )


class DaliGpuLoader(DaliLoader):
    """The same, with JPEGs decoded and images resized by the first GPU."""

    name = "dali-gpu"
    decodes_on = "mixed"
