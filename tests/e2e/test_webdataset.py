"""WebDataset shards are made, verified, read, sharded again, and read by the webdataset library."""

from __future__ import annotations

import gc
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dataprep
from dataprep.errors import ConfigError, CorruptRecord
from dataprep.stores import StoreOptions, open_store
from iobench.clock import SystemClock
from iobench.loaders import LOADERS, LoaderSettings
from iobench.results.trial import Location
from tests.commandline import files, in_process

pytestmark = pytest.mark.slow


def shard(source: str | Path, output: str | Path, **settings: Any) -> None:
    """Make an output of tars with several shards."""
    values = {
        "source": str(source),
        "output": str(output),
        "format": "webdataset",
        "image": {"size": 256},
        "shard_size": "1.2MB",
        "dask": {"workers": 2, "processes": False},
    }
    dataprep.shard(dataprep.ShardConfig.model_validate({**values, **settings}))


@pytest.fixture(scope="module")
def output(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tars and TFRecord of the same images. Read only."""
    output = tmp_path_factory.mktemp("webdataset") / "out"
    shard(tree, output, format=("webdataset", "tfrecord"))
    return output


def images(dataset: dataprep.Dataset) -> list[tuple[bytes, int]]:
    """The encoded images and the labels."""
    return [(bytes(sample.image), sample.label) for sample in dataset]


def test_tars_are_read_as_other_shards_are(output: Path) -> None:
    """Access by number, iteration and ``to_torch`` give the same samples as TFRecord."""
    with dataprep.open(output) as other, dataprep.open(output, format="webdataset") as dataset:
        expected = images(other)
        assert images(dataset) == expected
        for number in (0, 7, -1):
            assert (dataset[number].image, dataset[number].label) == expected[number]
        samples = dataprep.to_torch(dataset, iterable=True, shuffle=False)
        assert [(bytes(image), int(label)) for image, label in samples] == expected


def test_sizes_are_within_bounds(output: Path) -> None:
    """Shards with their final 1,024 zero bytes are within the bounds."""
    with dataprep.open(output, format="webdataset") as dataset:
        shards = dataset.shards()
        assert len(shards) >= 3
        for entry in shards:
            data = (output / entry.key).read_bytes()
            assert data.endswith(bytes(1024))
            assert 1_000_000 <= entry.bytes == len(data) <= 128_000_000


def test_one_request_reads_a_sample(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One request reads exactly the range of the record."""
    with dataprep.open(output, format="webdataset") as dataset:
        location, requests = dataset.place(5), []
        read = dataset.snapshot.get_range

        def noted(*arguments: Any) -> bytes:
            requests.append(arguments)
            return read(*arguments)

        monkeypatch.setattr(dataset.snapshot, "get_range", noted)
        assert dataset[5].number == 5
        assert requests == [location]


def test_the_bytes_repeat(tree: Path, output: Path, tmp_path: Path) -> None:
    """Any number of workers makes the same bytes."""
    shard(tree, tmp_path / "again", dask={"workers": 4, "processes": False})
    for path in (output / "webdataset").iterdir():
        assert (tmp_path / "again" / "webdataset" / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("depth", [(), ("--quick",), ("--deep",)])
def test_verify_finds_no_fault(output: Path, depth: tuple[str, ...]) -> None:
    """A sound output has no fault at any depth."""
    assert in_process("verify", output, *depth).code == 0


@pytest.mark.parametrize(
    ("at", "problem"), [(600, "checksum does not match"), (-1, "bytes follow the records")]
)
def test_damage_is_found(tree: Path, tmp_path: Path, at: int, problem: str) -> None:
    """Readers detect a damaged image by its checksum, and ``verify`` finds a damaged trailer."""
    shard(tree, tmp_path / "out")
    path = min((tmp_path / "out" / "webdataset").iterdir())
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    done = in_process("verify", tmp_path / "out")
    assert done.code == 1
    assert problem in done.out + done.err
    with dataprep.open(tmp_path / "out") as dataset:
        if at > 0:
            with pytest.raises(CorruptRecord, match="CRC-32C"):
                dataset[0]


def inspected(*arguments: str | Path) -> Any:
    """The JSON of ``inspect --json``."""
    done = in_process("inspect", *arguments, "--json")
    return json.loads(done.out)


def test_inspect_shows_tars(output: Path) -> None:
    """``inspect`` shows the content of a shard and a record of the output."""
    path = min((output / "webdataset").iterdir())
    content = inspected(path)
    assert (content["format"], content["fault"]) == ("webdataset", None)
    first = content["records"][0]
    assert all(first[key] for key in ("labels", "synset", "filename"))
    assert first["format"] == "JPEG"
    fields = inspected(output, "--format", "webdataset", "--record", "0")["fields"]
    assert [field["name"] for field in fields] == [
        *("file_name", "height", "image", "key", "label", "synset", "width")
    ]


def test_inspect_notices_a_missing_trailer(output: Path, tmp_path: Path) -> None:
    """A tar that was cut after a record has sound records and a fault."""
    path = tmp_path / "cut.tar"
    path.write_bytes(min((output / "webdataset").iterdir()).read_bytes()[:-1024])
    done = in_process("inspect", path, "--json")
    assert done.code == 1
    assert "without the trailer" in json.loads(done.out)["fault"]


@pytest.mark.parametrize(
    ("folder", "kind"), [("", "records"), ("webdataset", "records"), ("webdataset", "webdataset")]
)
def test_tars_are_sharded_again(output: Path, tmp_path: Path, folder: str, kind: str) -> None:
    """The output is a source by its tables, by a scan of its shards and as any WebDataset."""
    settings = {"records": {"format": "webdataset"}} if kind == "records" else {}
    shard(output / folder, tmp_path / "again", kind=kind, image={"mode": "none"}, **settings)
    with dataprep.open(output) as before, dataprep.open(tmp_path / "again") as after:
        assert sorted(images(after)) == sorted(images(before))
        assert len(after.label_space.labels) == len(before.label_space.labels)


@pytest.mark.s3
def test_on_s3(tree: Path, output: Path, bucket: str, endpoint: StoreOptions) -> None:
    """Tars in a bucket equal those of a disk, and are verified, read and sharded again there."""
    first, again = f"s3://{bucket}/first", f"s3://{bucket}/again"
    shard(tree, first, store=endpoint)
    local, remote = open_store(output), open_store(first, endpoint)
    tars = [info.key for info in local.list("webdataset/")]
    assert [info.key for info in remote.list("webdataset/")] == tars
    for key in tars:
        assert remote.get(key) == local.get(key)
    (verified,) = dataprep.verify(first, depth="deep", options=endpoint)
    assert verified.ok, verified

    with dataprep.open(output) as other, dataprep.open(first, options=endpoint) as dataset:
        expected = images(other)
        assert dataset.format == "webdataset"
        assert images(dataset) == expected
        for iterable in (False, True):
            samples: Any = dataprep.to_torch(dataset, iterable=iterable, shuffle=False)
            read = [samples[i] for i in range(len(samples))] if not iterable else [*samples]
            assert [(bytes(image), int(label)) for image, label in read] == expected

    for source, kind in ((first, "records"), (f"{first}/webdataset", "webdataset")):
        shard(source, f"{again}/{kind}", kind=kind, image={"mode": "none"}, store=endpoint)
        with dataprep.open(f"{again}/{kind}", options=endpoint) as dataset:
            assert sorted(images(dataset)) == sorted(expected)


def test_stage_copies_the_tars_alone(output: Path, tmp_path: Path) -> None:
    """``--format webdataset`` copies only the tars."""
    done = in_process("stage", output, tmp_path / "copy", "--format", "webdataset")
    assert done.code == 0, done.err
    folders = {key.split("/")[0] for key in files(tmp_path / "copy") if "/" in key}
    assert "webdataset" in folders
    assert "tfrecord" not in folders
    assert in_process("verify", tmp_path / "copy").code == 0


def test_without_classes_there_is_no_cls(tree: Path, tmp_path: Path) -> None:
    """An unlabelled output has only images and facts in its tars."""
    shard(tree, tmp_path / "out", kind="flat", unlabelled=True)
    names = set()
    for path in (tmp_path / "out" / "webdataset").iterdir():
        with tarfile.open(path) as opened:
            names |= {name.partition(".")[2] for name in opened.getnames()}
    assert names == {"jpg", "json"}
    with dataprep.open(tmp_path / "out") as dataset:
        assert {label for _, label in images(dataset)} == {-1}


def test_mxnet_needs_its_own_framing(output: Path) -> None:
    """``to_mxnet`` is refused before MXNet is imported."""
    with (
        dataprep.open(output, format="webdataset") as dataset,
        pytest.raises((ConfigError, TypeError), match="recordio"),
    ):
        dataprep.to_mxnet(dataset, batch_size=2)


@pytest.mark.parametrize("name", ["torch-map", "torch-iterable", "raw"])
def test_loaders_of_iobench_read_them(tree: Path, tmp_path: Path, name: str) -> None:
    """If the output has no other format, each label comes as often as it is stored."""
    shard(tree, tmp_path / "out")
    settings = LoaderSettings(batch_size=16, image_size=64)
    loader = LOADERS.load(name)(Location(str(tmp_path / "out"), "shards"), settings, SystemClock())
    labels = sorted(int(label) for batch in loader.epoch(0) for label in batch.labels)
    loader.close()
    with dataprep.open(tmp_path / "out") as dataset:
        assert labels == sorted(dataset.labels.tolist())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_the_library_reads_them(output: Path) -> None:
    """The webdataset library gives the same images and labels, in the same order."""
    wds = pytest.importorskip("webdataset")
    urls = [str(path) for path in sorted((output / "webdataset").iterdir())]
    read = wds.WebDataset(urls, shardshuffle=False).decode("pil").to_tuple("jpg", "cls", "json")
    with dataprep.open(output) as dataset:
        samples = [*read]
        assert len(samples) == len(dataset)
        for (image, label, facts), sample, pixels in zip(
            samples, dataset, dataset.images, strict=True
        ):
            assert label == sample.label
            assert image.size == (facts["width"], facts["height"])
            assert facts["synset"].encode() == sample.synset
            difference = np.abs(np.asarray(image, np.int16) - pixels)
            assert difference.mean() < 2
    del read
    gc.collect()  # the library leaves its last file open
