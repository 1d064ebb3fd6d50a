"""Jobs that are killed at random moments are completed with the same bytes and no leftovers."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from dataprep.stores import StoreOptions
from dataprep.stores.s3 import S3Store
from iobench.servers.moto_server import MotoServer
from tests import commandline
from tests.commandline import JOB, Running, comparable, objects, without_etags

pytestmark = [pytest.mark.process, pytest.mark.slow]

SEED = int(os.environ.get("DATAPREP_SEED", "20"))
ROUND_S = 6.0
"""About the time of a job, so that kills happen at its start, in its middle and at its end."""


def without_receipt_etags(contents: Mapping[str, bytes]) -> dict[str, object]:
    """The objects that must be equal in a folder and on S3."""
    return {
        key: without_etags(contents[key]) if key.startswith("receipts/") else value
        for key, value in comparable(contents).items()
    }


@pytest.fixture(scope="module")
def straight(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The output of one worker that is not killed."""
    output = tmp_path_factory.mktemp("straight") / "out"
    done = commandline.dataprep("shard", "--source", tree, "--output", output, *JOB)
    assert done.code == 0, done.err
    return without_receipt_etags(objects(output))


def killed(arguments: list[str | Path], kills: int, chance: Random, *, driver: bool) -> None:
    """Run a command several times and kill it at random moments, then run it to its end.

    With ``driver``, the whole group or only the driver is killed. Otherwise workers are killed and
    the driver is interrupted, which releases its lock at once.
    """
    for _ in range(kills):
        with Running(*arguments) as running:
            time.sleep(chance.uniform(0, ROUND_S))
            workers = running.workers()
            with suppress(ProcessLookupError):  # the job may have ended
                if workers:
                    os.kill(chance.choice(workers), signal.SIGKILL)
                    time.sleep(chance.uniform(0, 1))
                if driver and chance.random() < 0.5:
                    running.send_group(signal.SIGKILL)
                else:
                    running.send(signal.SIGKILL if driver else signal.SIGINT)
            ended = running.finish()
            # A worker that dies while it starts ends the job, which can be resumed.
            codes = (0, 130, -signal.SIGKILL)
            assert ended.code in codes or "processes did not start" in ended.err, ended.err
    done = commandline.dataprep(*arguments)
    assert done.code == 0, done.err


@pytest.mark.smoke
def test_a_job_into_a_folder(tree: Path, tmp_path: Path, straight: Mapping[str, object]) -> None:
    """A job into a folder is killed five times: a worker, the driver or both."""
    output = tmp_path / "out"
    job: list[str | Path] = ["shard", "--source", tree, "--output", output, *JOB, "--workers", "2"]
    killed(job, 5, Random(SEED), driver=True)
    assert without_receipt_etags(objects(output)) == straight
    assert not list(output.glob(".partial*"))


@pytest.mark.s3
def test_a_job_to_s3(
    tree: Path, s3_server: MotoServer, bucket: str, straight: Mapping[str, object]
) -> None:
    """A job to S3 is interrupted several times, and its workers are killed."""
    output = f"s3://{bucket}/out"
    arguments = ["--output", output, "--endpoint-url", s3_server.url]
    killed(["shard", "--source", tree, *arguments, *JOB], 3, Random(SEED + 1), driver=False)
    store = S3Store(output, StoreOptions(endpoint_url=s3_server.url))
    contents = {key: data for key, data in objects(store).items() if not key.startswith("leases/")}
    assert without_receipt_etags(contents) == straight


def test_a_job_in_three_parts(tree: Path, tmp_path: Path, straight: Mapping[str, object]) -> None:
    """Each part is killed once, then ``finalize`` completes the output."""
    output, chance = tmp_path / "out", Random(SEED + 2)
    for number in range(3):
        part = ["--part", f"{number}/3"]
        killed(["shard", "--source", tree, "--output", output, *JOB, *part], 1, chance, driver=True)
    done = commandline.dataprep("finalize", output, "--parts", "3")
    assert done.code == 0, done.err
    assert without_receipt_etags(objects(output)) == straight


@pytest.mark.parametrize("workers", [1, 3])
def test_any_number_of_workers(
    tree: Path, tmp_path: Path, straight: Mapping[str, object], workers: int
) -> None:
    """Any number of workers makes the same bytes."""
    output = tmp_path / "out"
    number = ("--workers", str(workers))
    done = commandline.dataprep("shard", "--source", tree, "--output", output, *JOB, *number)
    assert done.code == 0, done.err
    assert without_receipt_etags(objects(output)) == straight


def test_a_driver_that_runs_job_after_job(tmp_path: Path, tree: Path) -> None:
    """The descriptors, threads and children of a driver do not grow with the number of jobs."""
    import psutil

    import dataprep

    me, usage_after_job = psutil.Process(), []
    for number in range(4):
        options = {"workers": 1, "processes": True, "dashboard": "127.0.0.1:0"}
        config = dataprep.ShardConfig.model_validate(
            {"source": tree, "output": tmp_path / str(number), "dask": options}
        )
        dataprep.shard(config)
        usage_after_job.append((me.num_fds(), me.num_threads(), len(me.children(recursive=True))))
    assert max(usage_after_job[2:]) <= usage_after_job[1], usage_after_job
