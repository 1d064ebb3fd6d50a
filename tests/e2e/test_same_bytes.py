"""The same bytes, whoever makes them, wherever they lie, and however often they are killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import dataprep
from dataprep.stores import StoreOptions
from dataprep.stores.s3 import S3Store
from iobench.s3_server import MotoServer
from tests import commandline
from tests.commandline import (
    FORMATS,
    JOB,
    Running,
    comparable,
    files,
    objects,
    wait_until,
    without_etags,
)

if TYPE_CHECKING:
    from tests.e2e.conftest import Gate

pytestmark = pytest.mark.slow

INTERRUPTED = "dataprep: interrupted; run the same command again to resume"


def make(source: str | Path, output: str | Path, **changes: Any) -> None:
    """Run the reference job within this process."""
    options: dict[str, Any] = {
        "format": FORMATS,
        "shard_size": "1.2MB",
        "dask": {"workers": 2, "processes": False},
        **changes,
    }
    dataprep.shard(dataprep.ShardConfig(source=str(source), output=str(output), **options))


def upload(tree: Path, store: S3Store) -> None:
    """Copy ``tree`` to a store."""
    for name in sorted(files(tree)):
        store.put(name, (tree / name).read_bytes())


@pytest.fixture
def endpoint(s3_server: MotoServer) -> StoreOptions:
    """How the test's own S3 server is reached."""
    return StoreOptions(endpoint_url=s3_server.url)


class TestWhoeverMakesThem:
    def test_the_reference_has_what_the_design_lists(self, reference: Mapping[str, object]) -> None:
        """A complete output has shards, indexes, receipts and six tables, and nothing else."""
        shards = [key for key in reference if key.startswith("tfrecord/")]
        count = len(shards)
        assert count >= 6
        numbers = [f"train-{i:05}-of-{count:05}" for i in range(count)]
        assert reference.keys() == {
            *(f"tfrecord/{number}" for number in numbers),
            *(f"recordio/{number}.rec" for number in numbers),
            *(f"index/tfrecord/{number}.idx" for number in numbers),
            *(f"index/recordio/{number}.idx" for number in numbers),
            *(f"index/recordio/{number}.lst" for number in numbers),
            *(f"receipts/{number}.json" for number in numbers),
            *("train.job.json", "train.plan.parquet", "train.samples.parquet"),
            *("labels.json", "train.manifest.json"),
        }

    @pytest.mark.parametrize("workers", [2, 4])
    def test_threads(
        self, tree: Path, tmp_path: Path, reference: Mapping[str, object], workers: int
    ) -> None:
        """Any number of threads makes the bytes that one makes."""
        make(tree, tmp_path / "out", dask={"workers": workers, "processes": False})
        assert comparable(objects(tmp_path / "out")) == reference

    @pytest.mark.parametrize("workers", [1, 2, 4])
    def test_processes(
        self, tree: Path, tmp_path: Path, reference: Mapping[str, object], workers: int
    ) -> None:
        """Any number of worker processes makes the bytes that one thread makes."""
        make(tree, tmp_path / "out", dask={"workers": workers, "processes": True})
        assert comparable(objects(tmp_path / "out")) == reference

    def test_another_seed_makes_other_bytes(
        self, tree: Path, tmp_path: Path, reference: Mapping[str, object]
    ) -> None:
        """Equality means something: another order of samples shows in every shard."""
        make(tree, tmp_path / "out", seed=1)
        other = comparable(objects(tmp_path / "out"))
        same = [key for key in other if other[key] == reference.get(key)]
        assert same == ["labels.json"]


class TestWhereverTheyLie:
    @pytest.fixture
    def on_s3(self, bucket: str, endpoint: StoreOptions, tree: Path) -> str:
        """The drawn tree on S3."""
        upload(tree, S3Store(f"s3://{bucket}/photos", endpoint))
        return f"s3://{bucket}/photos"

    def test_on_s3(
        self, tree: Path, bucket: str, endpoint: StoreOptions, reference: Mapping[str, object]
    ) -> None:
        """S3 holds the objects of a local output; receipts add its ETags, which are theirs."""
        uri = f"s3://{bucket}/deep/er"
        make(tree, uri, store=endpoint, dask={"workers": 4, "processes": False})
        stored = objects(S3Store(uri, endpoint))
        found = comparable(stored)
        assert found.keys() == reference.keys()
        for key in found:
            if key.startswith("receipts/"):
                local = reference[key]
                assert isinstance(local, bytes)
                assert without_etags(stored[key]) == without_etags(local)
            else:
                assert found[key] == reference[key], key

    def test_from_s3(
        self,
        on_s3: str,
        endpoint: StoreOptions,
        tmp_path: Path,
        reference: Mapping[str, object],
    ) -> None:
        """A source listed and read from S3 gives the bytes of the same files on disk."""
        make(on_s3, tmp_path / "out", store=endpoint)
        assert comparable(objects(tmp_path / "out")) == reference

    def test_processes_from_s3_to_s3(
        self, on_s3: str, bucket: str, endpoint: StoreOptions, tree: Path
    ) -> None:
        """Worker processes that read and write S3 give what threads give there, to the byte."""
        make(tree, f"s3://{bucket}/threads", store=endpoint, shard_size="4MB")
        dask = {"workers": 2, "processes": True}
        make(on_s3, f"s3://{bucket}/processes", store=endpoint, shard_size="4MB", dask=dask)
        by_threads = objects(S3Store(f"s3://{bucket}/threads", endpoint))
        by_processes = objects(S3Store(f"s3://{bucket}/processes", endpoint))
        assert sum(key.startswith("tfrecord/") for key in by_threads) == 3
        assert comparable(by_processes) == comparable(by_threads)


class TestKilled:
    @pytest.mark.parametrize(
        ("prefix", "count"),
        [
            ("train.job.json", 1),
            ("receipts/", 1),
            ("recordio/", 2),
            ("receipts/", 5),
            ("train.samples", 1),
            ("train.manifest", 1),
        ],
        ids=[
            "before the job file",
            "before the first receipt",
            "between two formats",
            "in the middle",
            "before the table",
            "before the manifest",
        ],
    )
    def test_driver_killed_and_resumed(
        self,
        tree: Path,
        tmp_path: Path,
        gate: Gate,
        reference: Mapping[str, object],
        prefix: str,
        count: int,
    ) -> None:
        """Killed with SIGKILL anywhere and run again, a job gives the bytes of a straight run."""
        output = tmp_path / "out"
        arguments = ("shard", "--source", tree, *JOB, "--workers", "2")
        killed = commandline.dataprep(
            *arguments,
            *commandline.IN_ONE_PROCESS,
            "--output",
            f"gated://{output}",
            env=gate.kills_at(prefix, count),
        )
        assert killed.code == -signal.SIGKILL
        assert not (output / "train.manifest.json").exists()
        resumed = commandline.dataprep(*arguments, "--output", output, "--json")
        assert resumed.code == 0, resumed.err
        kept = resumed.one_object["splits"][0]["kept_shards"]
        shards = sum(key.startswith("receipts/") for key in reference)
        assert {
            "train.job.json": kept == 0,
            "receipts/": kept == count - 1,
            "recordio/": kept <= 2,
        }.get(prefix, kept == shards)
        assert files(output) == reference.keys()
        assert comparable(objects(output)) == reference

    def test_driver_of_processes_killed_and_resumed(
        self, tree: Path, tmp_path: Path, gate: Gate, reference: Mapping[str, object]
    ) -> None:
        """Workers whose driver was killed end by themselves, and the next run completes the job."""
        output = tmp_path / "out"
        arguments: list[str | Path] = [
            *("shard", "--source", tree, *JOB, "--workers", "2"),
            *("--set", "dask.processes=true"),
        ]
        env = gate.waits_at("receipts/", 2)
        with Running(*arguments, "--output", f"gated://{output}", env=env) as running:
            wait_until(lambda: gate.reached, "the second receipt of a worker")
            assert len(running.workers()) == 2
            running.send(signal.SIGKILL)
            gate.open()
            assert running.finish().code == -signal.SIGKILL
            wait_until(lambda: not running.survivors(), "orphaned workers to end")
        assert not (output / "train.manifest.json").exists()
        resumed = commandline.dataprep(*arguments, "--output", output)
        assert resumed.code == 0, resumed.err
        assert files(output) == reference.keys()
        assert comparable(objects(output)) == reference

    def test_driver_killed_while_it_writes_to_s3(
        self, tree: Path, bucket: str, endpoint: StoreOptions, gate: Gate
    ) -> None:
        """What was killed half-way to S3 resumes there, to the bytes of a straight run."""
        arguments = ("shard", "--source", tree, *JOB, "--endpoint-url", endpoint.endpoint_url or "")
        killed = commandline.dataprep(
            *arguments,
            *commandline.IN_ONE_PROCESS,
            "--output",
            f"gateds3://{bucket}/killed",
            env=gate.kills_at("receipts/", 4),
        )
        assert killed.code == -signal.SIGKILL
        resumed = commandline.dataprep(*arguments, "--output", f"s3://{bucket}/killed", "--json")
        assert resumed.code == 0, resumed.err
        assert resumed.one_object["splits"][0]["kept_shards"] == 3
        make(tree, f"s3://{bucket}/straight", store=endpoint)
        found = comparable(objects(S3Store(f"s3://{bucket}/killed", endpoint)))
        assert found == comparable(objects(S3Store(f"s3://{bucket}/straight", endpoint)))

    def test_worker_killed(
        self, tree: Path, tmp_path: Path, gate: Gate, reference: Mapping[str, object]
    ) -> None:
        """A job one of whose worker processes is killed goes on by itself to the same bytes."""
        output = tmp_path / "out"
        env = gate.waits_at("receipts/", 2)
        with Running(
            *("shard", "--source", tree, *JOB, "--workers", "2", "--json"),
            *("--set", "dask.processes=true", "--output", f"gated://{output}"),
            env=env,
        ) as running:
            wait_until(lambda: gate.reached, "the second receipt of a worker")
            workers = running.workers()
            assert len(workers) == 2
            for worker in workers:
                os.kill(worker, signal.SIGKILL)
            gate.open()
            finished = running.finish()
        assert finished.code == 0, finished.err
        assert "Traceback" not in finished.err
        assert files(output) == reference.keys()
        assert comparable(objects(output)) == reference


class TestInterrupted:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    @pytest.mark.parametrize("processes", [False, True], ids=["threads", "processes"])
    def test_one_line_no_orphans_and_resumable(
        self,
        tree: Path,
        tmp_path: Path,
        gate: Gate,
        reference: Mapping[str, object],
        number: signal.Signals,
        processes: bool,
    ) -> None:
        """SIGTERM and Ctrl-C end a job with 130 and one line; the same command completes it."""
        output = tmp_path / "out"
        arguments: list[str | Path] = [
            *("shard", "--source", tree, *JOB, "--workers", "2"),
            *("--set", f"dask.processes={str(processes).lower()}"),
        ]
        env = gate.waits_at("receipts/", 2)
        with Running(*arguments, "--output", f"gated://{output}", env=env) as running:
            wait_until(lambda: gate.reached, "the second receipt")
            if number == signal.SIGINT:
                running.send_group(number)
            else:
                running.send(number)
            gate.open()
            finished = running.finish()
            assert finished.code == 130, finished.err
            assert finished.complaints == [INTERRUPTED]
            assert "Traceback" not in finished.err
            assert finished.out == ""
            wait_until(lambda: not running.survivors(), "every process to end")
        assert not (output / "train.manifest.json").exists()
        resumed = commandline.dataprep(*arguments, "--output", output, "--json")
        assert resumed.code == 0, resumed.err
        assert resumed.one_object["splits"][0]["kept_shards"] >= 1
        assert files(output) == reference.keys()
        assert comparable(objects(output)) == reference

    def test_an_impatient_second_signal(self, tree: Path, tmp_path: Path, gate: Gate) -> None:
        """Ctrl-C pressed again while the job ends: it ends at once with 130, without orphans."""
        output = tmp_path / "out"
        env = gate.waits_at("receipts/", 2)
        with Running(
            *("shard", "--source", tree, *JOB, "--workers", "2", "--output", f"gated://{output}"),
            env=env,
        ) as running:
            wait_until(lambda: gate.reached, "the second receipt")
            running.send(signal.SIGINT)
            running.send(signal.SIGINT)
            running.send(signal.SIGTERM)
            gate.open()
            finished = running.finish()
            wait_until(lambda: not running.survivors(), "every process to end")
        assert finished.code == 130, finished.err
        assert finished.complaints in ([], [INTERRUPTED])
        assert "Traceback" not in finished.err
