"""Each contest's contenders do the whole work, on a few drawn images."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

import dataprep
from benchmarks import codec, command, object_store, packing, probes, records
from benchmarks.__main__ import POINTS
from benchmarks.contest import Measured
from benchmarks.workplace import Workplace, files_below
from dataprep.drawn import draw_tree
from dataprep.reading.frameworks import import_framework
from iobench.servers.moto_server import MotoServer

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a store's credentials, so that those of a limited store are gone after the test."""
    for name, value in MotoServer.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """Return a workplace with sixty drawn images."""
    photos = draw_tree(tmp_path_factory.mktemp("photos") / "drawn", images=60, classes=3).root
    return Workplace(tmp_path_factory.mktemp("bench"), photos, 60)


def test_every_contender_can_be_called(workplace: Workplace) -> None:
    """A contender is a function that takes its arguments, or says why it cannot do the work."""
    modules = [import_module(f"benchmarks.{point}") for point in POINTS]
    every = [contest for module in modules for contest in module.contests(workplace)]
    assert len({contest.name for contest in every}) == len(every) > 15
    for contender in [candidate for contest in every for candidate in contest.contenders]:
        if contender.unable:
            continue
        module_name, _, name = contender.run.partition(":")
        function = getattr(import_module(module_name), name)
        signature(function).bind(**contender.arguments)


@pytest.mark.parametrize("way", codec.WAYS)
def test_codec(way: str, workplace: Workplace) -> None:
    """All photographs are converted."""
    assert codec.timed(str(workplace.photos), way).amount == 60


def test_the_command(workplace: Workplace) -> None:
    """All photographs are written."""
    assert command.ours(str(workplace.repeated()), str(workplace.root)).amount == 60


@pytest.mark.parametrize("name", ["write_tfrecord", "write_recordio"])
def test_records_written(name: str, workplace: Workplace) -> None:
    """The payload of every pass counts."""
    measured = getattr(records, name)(str(workplace.sharded(60)))
    assert measured.amount > 0


@pytest.mark.parametrize("name", ["read_tfrecord", "read_recordio"])
def test_records_read(name: str, workplace: Workplace) -> None:
    """A reader that misses a record is an error."""
    assert getattr(records, name)(str(workplace.sharded(60))).amount > 0
    with pytest.raises(RuntimeError, match="not every record"):
        records._reading([b"one"], dataprep.TFRecordWriter, lambda path: 2)


def require(framework: str) -> None:
    """Skip where a framework is not installed; NumPy gets the names that MXNet misses."""
    if find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    import_framework(framework)


@pytest.mark.frameworks
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("peer", "framework"),
    [
        ("tf_write", "tensorflow"),
        ("tf_read", "tensorflow"),
        ("mxnet_write", "mxnet"),
        ("mxnet_read", "mxnet"),
    ],
)
def test_record_peers(peer: str, framework: str, workplace: Workplace) -> None:
    """They read and write the same payload as ours."""
    require(framework)
    ours = {"tf": records.write_tfrecord, "mx": records.write_recordio}[peer[:2]]
    shards = str(workplace.sharded(60))
    assert getattr(records, peer)(shards).amount == ours(shards).amount


@pytest.mark.parametrize("normalise", [False, True], ids=["pixels", "normalised"])
@pytest.mark.parametrize(
    "run",
    [
        "loading:ours",
        "loading_peers:folder",
        pytest.param("loading_peers:tf_data", marks=pytest.mark.frameworks),
        pytest.param("loading_peers:mxnet", marks=pytest.mark.frameworks),
    ],
)
@pytest.mark.filterwarnings("default")
def test_loading(run: str, normalise: bool, workplace: Workplace) -> None:
    """At least so many images are counted, in whole batches."""
    module, _, name = run.partition(":")
    for framework in {"tf_data": ["tensorflow"], "mxnet": ["mxnet"]}.get(name, ["torch"]):
        require(framework)
    where = workplace.photos if name == "folder" else workplace.sharded(60)
    load: Any = getattr(import_module(f"benchmarks.{module}"), name)
    assert load(str(where), normalise, 100).amount >= 100


@pytest.mark.parametrize("check", ["header", "decode"])
def test_packing(check: str, workplace: Workplace) -> None:
    """Shards and the copy have every file; nothing is left over."""
    files = packing.packed(workplace, 9)
    size = sum(path.stat().st_size for path in files_below(files)) / 1e6
    for measured in (
        packing.shard(str(files), str(workplace.root), check),
        packing.copy(str(files), str(workplace.root)),
    ):
        assert measured.amount == pytest.approx(size)
        assert measured.others[packing.STEADY] > 0
    assert not list(workplace.root.glob("shards-*"))


def test_sharding_to_s3(workplace: Workplace) -> None:
    """Both sides make the same images; alone, the slower of encoding and uploading counts."""
    arguments = (str(workplace.root), str(workplace.repeated()), 10**6, 1.0)
    ours, alone = object_store.to_store(*arguments), object_store.slower_alone(*arguments)
    assert ours.amount == alone.amount == 60
    parts = alone.others["encoding_alone_s"], alone.others["uploading_alone_s"]
    assert alone.seconds == max(parts) > min(parts) > 0
    assert "store_cpu_share" in ours.others


def test_reading_from_s3(workplace: Workplace) -> None:
    """Every shard is read."""
    folder = workplace.sharded(60)
    size = sum(path.stat().st_size for path in (folder / "tfrecord").iterdir())
    assert object_store.read(str(folder)).amount == size / 1e6


def test_disk_probe(tmp_path: Path) -> None:
    """A trial reads a small file."""
    params = {
        "target": "here",
        "operation": "read",
        "pattern": "sequential",
        "block_bytes": 2**17,
        "parallelism": 1,
        "cache": "warm",
        "file_bytes": 2**22,
        "seconds": 0.2,
    }
    measured: Measured = probes.on_disk(str(tmp_path), params)
    assert measured.amount > 0
