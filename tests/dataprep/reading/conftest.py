"""A small data set in all formats, on disk and on S3, and the frameworks that read it."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

import pytest

import dataprep
from dataprep.reading.frameworks import import_framework
from dataprep.stores import Store, StoreOptions, open_store
from iobench.servers.moto_server import MotoServer
from tests.commandline import FORMATS


@pytest.fixture(scope="session")
def output(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """120 images in all formats, several shards each; labels in records from 1. Read only."""
    folder = tmp_path_factory.mktemp("adapters") / "out"
    config = dataprep.ShardConfig.model_validate(
        {
            "source": str(tree),
            "output": str(folder),
            "format": FORMATS,
            "image": {"mode": "exact", "size": 320, "upscale": True, "quality": 97},
            "shard_size": "1.2MB",
            "label_offset": dict.fromkeys(FORMATS, 1),
        }
    )
    dataprep.shard(config)
    return folder


@pytest.fixture(params=FORMATS)
def dataset(output: Path, request: pytest.FixtureRequest) -> dataprep.Dataset:
    """The data set, opened in each format."""
    opened = dataprep.open(output, format=request.param)
    assert len(opened.shards()) >= 3
    return opened


@pytest.fixture
def on_s3(output: Path, bucket: str, s3_server: MotoServer) -> Callable[[str], dataprep.Dataset]:
    """A function that opens a copy on S3 in one format."""
    options = StoreOptions(endpoint_url=s3_server.url)
    remote, local = open_store(f"s3://{bucket}/out", options), open_store(output)
    for entry in local.list():
        remote.put(entry.key, local.get(entry.key))
    return lambda format: dataprep.open(remote.uri, format=format, options=options)


def in_memory(objects: Mapping[str, bytes]) -> Store:
    """A store of these objects without files, as if they were on another machine."""
    memory = open_store(f"memory://{secrets.token_hex(4)}")
    for key, data in objects.items():
        memory.put(key, data)
    return memory


def stored_samples(dataset: dataprep.Dataset) -> list[tuple[bytes, int]]:
    """The image and the label of each sample."""
    return [(bytes(sample.image), sample.label) for sample in dataset]


def images_of(dataset: dataprep.Dataset) -> list[bytes]:
    """The image of each sample."""
    return [image for image, _ in stored_samples(dataset)]


class Numbers(dict[bytes, int]):
    """The number of each image. Messages of failed tests do not show the images."""

    def __repr__(self) -> str:
        return f"the numbers of {len(self)} images"


@pytest.fixture(scope="module")
def numbers(dataset: dataprep.Dataset) -> dict[bytes, int]:
    """The number of each image, for modules whose ``dataset`` has one format."""
    return Numbers((image, number) for number, image in enumerate(images_of(dataset)))


def _imported(name: str) -> ModuleType:
    """A framework, imported without its warnings. Without it the test is skipped."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_framework(name)
    except ImportError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def tf() -> ModuleType:
    """TensorFlow, if it is installed."""
    return _imported("tensorflow")


@pytest.fixture(scope="session")
def mx() -> ModuleType:
    """MXNet, if it is installed."""
    return _imported("mxnet")
