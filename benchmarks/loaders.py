"""Compare loaders that turn the JPEGs of a data set into normalised float32 batches, on two cores.

Every loader reads the same JPEGs, in the form that it prefers. Each epoch draws new random resized
crops to 224 pixels and new flips. A batch has 64 images. Whole epochs are measured, from the
construction of the loader. The start of the loader is included, and imports are not. Each epoch
must have every sample once. The libraries are in an environment of their own:
``make bench ONLY=loaders``.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import dataprep
from benchmarks.contest import Contender, Contest, Measured
from benchmarks.limited_store import Limits, limited_store, store_share
from benchmarks.loader_data import FILES, SHARDS, Forms, forms
from benchmarks.loader_peers import Epoch, Location
from benchmarks.loading_peers import BATCH, CORES, SIZE
from benchmarks.workplace import Workplace

IMAGES = 4_000
LATENCY_S = 0.05
REPEATS = 3
DISK_EPOCHS = 3
S3_EPOCHS = 2

_LATE_IMPORTS = ("boto3", "pandas", "pyarrow.parquet")
"""Modules that some loaders import when they are constructed."""

_PEERS = "benchmarks.loader_peers"
_TORCH = ("torch",)
_VISION = ("torch", "torchvision")


@dataclass(frozen=True, slots=True)
class Way:
    """One way of using a loader.

    Attributes:
        name: its name. ``{package|Name}`` in it becomes the name and the version of the package.
        build: ``module:function`` of the function that constructs the loader.
        form: the form of the data set that it reads.
        modules: the modules that it imports.
        reads_s3: whether it can read from an S3 server.
    """

    name: str
    build: str
    form: str
    modules: tuple[str, ...]
    reads_s3: bool = False


def contests(workplace: Workplace) -> Iterator[Contest]:
    """Yield a contest that reads from the disk, and a contest that reads from an S3 server."""
    images = min(workplace.images, IMAGES)
    root = str(workplace.root / f"loaders-{images}")
    forms(Path(root), workplace.sharded(images))
    rule = (
        f"A rate is that of whole epochs of {images:,} images, from the construction of the "
        "loader. It includes the start of the loader, but not its imports. Each epoch was checked "
        "to have every sample once. All batches are float32 and normalised. If a loader returns "
        "uint8, `dataprep.normalise` in the main process is included.",
        "The batches of `tf.data` are (N, 224, 224, 3), and those of the others are "
        "(N, 3, 224, 224).",
    )
    yield Contest(
        name="loaders-disk",
        title=f"Loaders on {CORES} cores, from the page cache, {DISK_EPOCHS} epochs",
        unit="img",
        contenders=tuple(_from_disk(root)),
        cores=CORES,
        repeats=REPEATS,
        notes=rule,
    )
    yield Contest(
        name="loaders-s3",
        title=f"Loaders on {CORES} cores, from an S3 server behind {LATENCY_S * 1e3:.0f} ms, "
        f"{S3_EPOCHS} epochs",
        unit="img",
        contenders=tuple(_from_s3(root)),
        cores=CORES,
        repeats=REPEATS,
        notes=(
            *rule,
            f"Every request waits {LATENCY_S * 1e3:.0f} ms. The server runs on the same "
            "processors. The store cpu share is the number of processors that it kept busy. "
            "LitData and MosaicML streaming store fetched data on the disk, and their second epoch "
            "reads from the disk.",
        ),
    )


def _from_disk(root: str) -> Iterator[Contender]:
    for way in _WAYS:
        yield _contender(way, root, DISK_EPOCHS, s3=False)


def _from_s3(root: str) -> Iterator[Contender]:
    for way in _WAYS:
        if way.reads_s3:
            yield _contender(way, root, S3_EPOCHS, s3=True)
    for name, reason in _NOT_FROM_S3.items():
        yield Contender(_with_version(name), "", unable=reason)


def _contender(way: Way, root: str, epochs: int, *, s3: bool) -> Contender:
    arguments = {
        "build": way.build,
        "form": way.form,
        "root": root,
        "epochs": epochs,
        "s3": s3,
        "imports": way.modules,
    }
    programs = ("s5cmd",) if s3 and way.form == "webdataset" else ()
    needs = (*way.modules, *programs)
    return Contender(_with_version(way.name), f"{__name__}:measured", arguments, needs)


_WAYS = (
    Way(
        "dataprep.to_torch, 2 threads", "benchmarks.loaders:threads", SHARDS, _TORCH, reads_s3=True
    ),
    Way(
        "dataprep.to_torch, 2 workers, uint8",
        "benchmarks.loaders:workers",
        SHARDS,
        _TORCH,
        reads_s3=True,
    ),
    Way("{nvidia-dali-cuda120|DALI}, TFRecord", f"{_PEERS}:dali", SHARDS, ("torch", "nvidia.dali")),
    Way(
        "{nvidia-dali-cuda120|DALI}, its README's files",
        f"{_PEERS}:dali_files",
        FILES,
        ("torch", "nvidia.dali"),
    ),
    Way(
        "{litdata|LitData}, uint8",
        f"{_PEERS}:litdata",
        "litdata",
        (*_VISION, "litdata"),
        reads_s3=True,
    ),
    Way(
        "{litdata|LitData}, README's: float32",
        f"{_PEERS}:litdata_float",
        "litdata",
        (*_VISION, "litdata"),
        reads_s3=True,
    ),
    Way(
        "{webdataset|webdataset}, torchvision's decoder, uint8",
        f"{_PEERS}:webdataset",
        "webdataset",
        (*_VISION, "webdataset"),
        reads_s3=True,
    ),
    Way(
        "{webdataset|webdataset}, README's: Pillow",
        f"{_PEERS}:webdataset_pillow",
        "webdataset",
        (*_VISION, "webdataset"),
        reads_s3=True,
    ),
    Way(
        "{mosaicml-streaming|MosaicML streaming}, torchvision's decoder, uint8",
        f"{_PEERS}:mosaicml",
        "mds-bytes",
        (*_VISION, "streaming"),
        reads_s3=True,
    ),
    Way(
        "{mosaicml-streaming|MosaicML streaming}, README's: Pillow",
        f"{_PEERS}:mosaicml_pillow",
        "mds-jpeg",
        (*_VISION, "streaming"),
        reads_s3=True,
    ),
    Way(
        "{spdl|SPDL}, pipeline over files, uint8",
        f"{_PEERS}:spdl",
        FILES,
        ("torch", "spdl.io", "spdl.pipeline"),
    ),
    Way(
        "{spdl|SPDL}, its documentation's DataLoader over files, uint8",
        f"{_PEERS}:spdl_dataloader",
        FILES,
        ("torch", "spdl.io", "spdl.dataloader"),
    ),
    Way("{tensorflow-cpu|tf.data}, TFRecord", f"{_PEERS}:tf_data", SHARDS, ("tensorflow",)),
    Way("{mxnet|MXNet} ImageRecordIter, RecordIO", f"{_PEERS}:mxnet", SHARDS, ("mxnet",)),
    Way(
        "{torch|torch} DataLoader over files, torchvision's decoder, uint8",
        f"{_PEERS}:torch_files",
        FILES,
        _VISION,
    ),
    Way(
        "{torch|torch} DataLoader over files, torchvision's documentation: Pillow",
        f"{_PEERS}:torch_files_pillow",
        FILES,
        _VISION,
    ),
)

_NOT_FROM_S3 = {
    "{nvidia-dali-cuda120|DALI}": "not run: it waits for a request for each record, which takes "
    "minutes for an epoch",
    "{spdl|SPDL}": "it opens files; it has no S3 client",
    "{tensorflow-cpu|tf.data}": "File system scheme 's3' not implemented",
    "{mxnet|MXNet} ImageRecordIter": "Please compile with DMLC_USE_S3=1 to use S3",
    "{torch|torch} DataLoader over files": "torchvision's ImageFolder opens paths only",
}


def measured(
    build: str, form: str, root: str, epochs: int, s3: bool, imports: list[str]
) -> Measured:
    """Construct a loader, and read and check some epochs.

    Args:
        build: ``module:function`` of the function that constructs the loader.
        form: the form of the data set that it reads.
        root: the folder of all forms.
        epochs: the number of epochs.
        s3: whether to read from an S3 server.
        imports: modules to import before the measurement.

    Raises:
        RuntimeError: an epoch does not have every sample once, or a batch is not normalised
            float32.
    """
    for name in (*imports, *_LATE_IMPORTS):
        _import(name)
    module, _, function = build.partition(":")
    construct = getattr(import_module(module), function)
    data_forms = Forms(Path(root))
    data_forms.path(form)  # Writes the form if it does not exist yet.
    expected_labels = data_forms.labels()
    with ExitStack() as stack:
        cache = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=root, prefix="cache-")))
        location = Location(data_forms, cache)
        others: dict[str, float] = {}
        if s3:
            limits = Limits(latency_s=LATENCY_S)
            store = stack.enter_context(limited_store(limits, data_forms.folder(form)))
            location = Location(data_forms, cache, store.url, store.uri)
            others = stack.enter_context(store_share(store))
        started_s = time.perf_counter()
        epoch = construct(location)
        epoch_begin_s = started_s
        durations_s = []
        for number in range(epochs):
            labels = _labels(epoch, number)
            epoch_end_s = time.perf_counter()
            durations_s.append(epoch_end_s - epoch_begin_s)
            epoch_begin_s = epoch_end_s
            if labels != expected_labels:
                raise RuntimeError(_difference(labels, expected_labels, number))
    images = expected_labels.total()
    rates = {}
    for name, duration_s in zip(("first", "second"), durations_s, strict=False):
        rates[f"{name}_epoch_img/s"] = images / duration_s
    return Measured(epochs * images, epoch_end_s - started_s, {**rates, **others})


def threads(location: Location) -> Epoch:
    """``dataprep.to_torch``, with threads of this process that make float32 batches."""
    batches = _to_torch(location, dataprep.Augmentation(size=SIZE))

    def epoch(number: int) -> Iterator[tuple[Any, Any]]:
        batches.set_epoch(number)
        yield from batches

    return epoch


def workers(location: Location) -> Epoch:
    """``dataprep.to_torch`` in workers of a DataLoader, which make uint8 batches.

    The main process normalises them.
    """
    from torch.utils.data import DataLoader

    batches = _to_torch(location, dataprep.Augmentation(size=SIZE, normalise=False))
    loader: Any = DataLoader(batches, batch_size=None, num_workers=CORES, persistent_workers=True)

    def epoch(number: int) -> Iterator[tuple[Any, Any]]:
        for images, labels in loader:
            yield dataprep.normalise(images), labels

    return epoch


def _to_torch(location: Location, augmentation: dataprep.Augmentation) -> Any:
    from dataprep.stores import StoreOptions

    options = StoreOptions(endpoint_url=location.endpoint or None)
    dataset = dataprep.open(location.uri(SHARDS), options=options)
    return dataprep.to_torch(dataset, transform=augmentation, iterable=True, batch_size=BATCH)


def _labels(epoch: Epoch, number: int) -> Counter[int]:
    """Read an epoch, check its first batch, and count its labels."""
    labels: Counter[int] = Counter()
    for images, batch_labels in epoch(number):
        if not labels:
            _check_batch(images)
        label_array = np.asarray(_on_host(batch_labels)).ravel()
        labels.update(label_array.astype(int).tolist())
    return labels


def _check_batch(images: Any) -> None:
    """Check that a batch has normalised float32 images of the right size.

    Raises:
        RuntimeError: it has not.
    """
    shape = tuple(images.shape)[1:]
    has_shape = shape in ((3, SIZE, SIZE), (SIZE, SIZE, 3))
    if "float32" not in str(images.dtype) or not has_shape:
        raise RuntimeError(f"a batch has {images.dtype} images of shape {shape}")
    if float(np.asarray(_on_host(images)).min()) >= 0:
        raise RuntimeError("a batch is not normalised: none of its values is below 0")


def _on_host(values: Any) -> Any:
    """Return values that NumPy can read. Arrays of MXNet must be converted."""
    return values.asnumpy() if hasattr(values, "asnumpy") else values


def _difference(labels: Counter[int], expected: Counter[int], number: int) -> str:
    """Return how the samples of an epoch differ from the samples of the data set."""
    lacking, extra = (expected - labels).total(), (labels - expected).total()
    return (
        f"epoch {number} has {labels.total():,} samples of {expected.total():,}: {lacking:,} are "
        f"missing and {extra:,} come twice"
    )


def _import(name: str) -> None:
    """Import a module, and a framework in the way in which dataprep imports it."""
    from dataprep.reading.frameworks import import_framework

    if name in ("tensorflow", "mxnet", "torch"):
        import_framework(name)
    else:
        import_module(name)


def _with_version(name: str) -> str:
    """Replace ``{package|Name}`` by the name, and by the version if the package is installed."""
    before, brace, rest = name.partition("{")
    if not brace:
        return name
    named, _, after = rest.partition("}")
    package, _, title = named.partition("|")
    try:
        return f"{before}{title} {version(package)}{after}"
    except PackageNotFoundError:
        return f"{before}{title}{after}"
