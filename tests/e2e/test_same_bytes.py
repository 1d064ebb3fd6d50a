"""Any workers, stores and restarts make the same bytes."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import cv2
import pytest

from dataprep.image import ImagePolicy, convert
from dataprep.stores import StoreOptions
from dataprep.stores.s3 import S3Store
from tests import commandline
from tests.commandline import (
    JOB,
    comparable,
    files,
    make,
    objects,
    upload,
    wait_until,
    without_etags,
)
from tests.e2e.conftest import Gate

pytestmark = pytest.mark.slow

INTERRUPTED = "dataprep: interrupted; run the same command again to resume"


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
            *(f"webdataset/{number}.tar" for number in numbers),
            *(f"index/tfrecord/{number}.idx" for number in numbers),
            *(f"index/recordio/{number}.idx" for number in numbers),
            *(f"index/recordio/{number}.lst" for number in numbers),
            *(f"receipts/{number}.json" for number in numbers),
            *("train.job.json", "train.plan.parquet", "train.samples.parquet"),
            *("labels.json", "train.manifest.json"),
        }

    @pytest.mark.parametrize(
        ("workers", "processes"),
        [(2, False), (3, False), (4, False), (1, True), (2, True), (4, True)],
    )
    def test_workers(
        self,
        tree: Path,
        tmp_path: Path,
        reference: Mapping[str, object],
        workers: int,
        processes: bool,
    ) -> None:
        """Any number of threads or worker processes makes the bytes of one thread."""
        make(tree, tmp_path / "out", dask={"workers": workers, "processes": processes})
        assert comparable(objects(tmp_path / "out")) == reference

    def test_another_seed_makes_other_bytes(
        self, tree: Path, tmp_path: Path, reference: Mapping[str, object]
    ) -> None:
        """Another order of samples changes every shard, so that equal bytes prove something."""
        make(tree, tmp_path / "out", seed=1)
        other = comparable(objects(tmp_path / "out"))
        same = [key for key in other if other[key] == reference.get(key)]
        assert same == ["labels.json"]


class TestWhereverTheyLie:
    def test_on_s3(
        self, tree: Path, bucket: str, endpoint: StoreOptions, reference: Mapping[str, object]
    ) -> None:
        """S3 has the objects of a local output.

        Only receipts differ, because they have its ETags.
        """
        uri = f"s3://{bucket}/deep/er"
        make(tree, uri, store=endpoint, dask={"workers": 4, "processes": False})
        content_by_key = objects(S3Store(uri, endpoint))
        files = comparable(content_by_key)
        assert files.keys() == reference.keys()
        for key in files:
            if key.startswith("receipts/"):
                local = reference[key]
                assert isinstance(local, bytes)
                assert without_etags(content_by_key[key]) == without_etags(local)
            else:
                assert files[key] == reference[key], key

    def test_from_s3(
        self,
        tree: Path,
        bucket: str,
        endpoint: StoreOptions,
        tmp_path: Path,
        reference: Mapping[str, object],
    ) -> None:
        """A source on S3 gives the bytes of local files, also by processes and with S3 output."""
        photos = S3Store(f"s3://{bucket}/photos", endpoint)
        upload(tree, photos)
        make(photos.uri, tmp_path / "out", store=endpoint)
        assert comparable(objects(tmp_path / "out")) == reference
        results = {}
        for name, source in (("threads", str(tree)), ("processes", photos.uri)):
            output = S3Store(f"s3://{bucket}/{name}", endpoint)
            dask = {"workers": 2, "processes": name == "processes"}
            make(source, output.uri, store=endpoint, shard_size="4MB", dask=dask)
            results[name] = comparable(objects(output))
        assert sum(key.startswith("tfrecord/") for key in results["threads"]) == 3
        assert results["processes"] == results["threads"]


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
        """A job that is killed with SIGKILL at any point and run again makes the same bytes."""
        output = tmp_path / "out"
        arguments = ("shard", "--source", tree, *JOB, "--workers", "2")
        commandline.dataprep(
            *arguments,
            *commandline.IN_ONE_PROCESS,
            "--output",
            f"gated://{output}",
            env=gate.kills_at(prefix, count),
            code=-signal.SIGKILL,
        )
        assert not (output / "train.manifest.json").exists()
        resumed = commandline.dataprep(*arguments, "--output", output, "--json", code=0)
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
        with gate.stopping("receipts/", 2, *arguments, "--output", f"gated://{output}") as running:
            assert len(running.workers()) == 2
            running.send(signal.SIGKILL)
            gate.open()
            assert running.finish().code == -signal.SIGKILL
            wait_until(lambda: not running.survivors(), "orphaned workers to end")
        assert not (output / "train.manifest.json").exists()
        commandline.dataprep(*arguments, "--output", output, code=0)
        assert files(output) == reference.keys()
        assert comparable(objects(output)) == reference

    def test_worker_killed(
        self, tree: Path, tmp_path: Path, gate: Gate, reference: Mapping[str, object]
    ) -> None:
        """A job of which a worker process is killed continues by itself to the same bytes."""
        output = tmp_path / "out"
        with gate.stopping(
            "receipts/",
            2,
            *("shard", "--source", tree, *JOB, "--workers", "2", "--json"),
            *("--set", "dask.processes=true", "--output", f"gated://{output}"),
        ) as running:
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
        """SIGTERM and Ctrl-C end a job with 130 and one line, and the same command completes it."""
        output = tmp_path / "out"
        arguments: list[str | Path] = [
            *("shard", "--source", tree, *JOB, "--workers", "2"),
            *("--set", f"dask.processes={str(processes).lower()}"),
        ]
        with gate.stopping("receipts/", 2, *arguments, "--output", f"gated://{output}") as running:
            if number == signal.SIGINT:
                running.send_group(number)
            else:
                running.send(number)
            gate.open()
            finished = running.finish(code=130)
            assert finished.complaints == [INTERRUPTED]
            assert "Traceback" not in finished.err
            assert finished.out == ""
            wait_until(lambda: not running.survivors(), "every process to end")
        assert not (output / "train.manifest.json").exists()
        resumed = commandline.dataprep(*arguments, "--output", output, "--json", code=0)
        assert resumed.one_object["splits"][0]["kept_shards"] >= 1
        assert files(output) == reference.keys()
        assert comparable(objects(output)) == reference

    def test_an_impatient_second_signal(self, tree: Path, tmp_path: Path, gate: Gate) -> None:
        """A second Ctrl-C while the job ends makes it exit at once with 130, without orphans."""
        output = tmp_path / "out"
        with gate.stopping(
            "receipts/",
            2,
            *("shard", "--source", tree, *JOB, "--workers", "2", "--output", f"gated://{output}"),
        ) as running:
            running.send(signal.SIGINT)
            running.send(signal.SIGINT)
            running.send(signal.SIGTERM)
            gate.open()
            finished = running.finish()
            wait_until(lambda: not running.survivors(), "every process to end")
        assert finished.code == 130, finished.err
        assert finished.complaints in ([], [INTERRUPTED])
        assert "Traceback" not in finished.err


_POLICIES = (
    ImagePolicy(size=100),
    ImagePolicy(mode="exact", size=77),
    ImagePolicy(size=90, filter="lanczos", progressive=True),
    ImagePolicy(size=90, filter="area", optimize=True, subsampling="444"),
    ImagePolicy(size=90, filter="bilinear", greyscale="rgb", icc="keep"),
)
_CONVERT_ALL = """
import hashlib, pathlib, sys
from dataprep.image import ImagePolicy, convert
digest = hashlib.sha256()
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.JPEG")):
    for text in sys.argv[2:]:
        policy = ImagePolicy.model_validate_json(text)
        digest.update(convert(path.read_bytes(), policy).data)
print(digest.hexdigest())
"""


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({"OPENCV_CPU_DISABLE": "AVX2,AVX,FMA3"}, id="OpenCV without AVX"),
        pytest.param({"OPENCV_IPP": "disabled"}, id="OpenCV without IPP"),
        pytest.param({"JSIMD_FORCENONE": "1"}, id="libjpeg-turbo without SIMD"),
    ],
)
def test_vector_instructions_change_no_byte(tree: Path, environment: dict[str, str]) -> None:
    """Codecs without vector instructions give the same bytes as codecs with them."""
    if "AVX" in environment.get("OPENCV_CPU_DISABLE", ""):
        assert "AVX2" in cv2.getBuildInformation()
    digest = hashlib.sha256()
    for path in sorted(tree.rglob("*.JPEG")):
        for policy in _POLICIES:
            digest.update(convert(path.read_bytes(), policy).data)
    done = subprocess.run(
        [sys.executable, "-c", _CONVERT_ALL, str(tree), *(p.model_dump_json() for p in _POLICIES)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == digest.hexdigest()
