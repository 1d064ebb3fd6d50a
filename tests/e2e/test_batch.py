"""The commands of a job on AWS Batch make a complete output, run as local processes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from dataprep.job.aws_batch import submit
from dataprep.stores import StoreOptions, open_store
from iobench.servers.moto_server import MotoServer
from tests import commandline
from tests.commandline import Running, comparable, objects, wait_until
from tests.simulated_batch import DEFINITION, QUEUE, batch_queue

pytestmark = [pytest.mark.process, pytest.mark.s3]
simulated = contextmanager(batch_queue)


@pytest.mark.parametrize("where", ["disk", "s3"])
def test_children_make_the_bytes_of_one_run(
    where: str,
    tmp_path: Path,
    tree: Path,
    bucket: str,
    s3_server: MotoServer,
) -> None:
    """Children with numbers in the environment, one of them killed, make the bytes of one run."""
    options = StoreOptions(endpoint_url=s3_server.url)
    values = {
        "source": str(tree),
        "output": f"s3://{bucket}/out",
        "format": ["tfrecord", "recordio"],
        "shard_size": "1.2MB",
        "dask": {"workers": 1, "processes": False},
        "store": {"endpoint_url": s3_server.url},
    }
    config = tmp_path / "job.yaml"
    config.write_text(yaml.safe_dump(values))
    location = str(config)
    environment: dict[str, str] = {}
    if where == "s3":
        environment["AWS_ENDPOINT_URL"] = s3_server.url
        open_store(f"s3://{bucket}/jobs", options).put("job.yaml", config.read_bytes())
        location = f"s3://{bucket}/jobs/job.yaml"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        with simulated_job(patch, location) as commands:
            shard, finalize = commands
    written = open_store(f"s3://{bucket}/out", options)
    environment["AWS_BATCH_JOB_ARRAY_SIZE"] = "3"
    with Running(*shard[1:], env={**environment, "AWS_BATCH_JOB_ARRAY_INDEX": "0"}) as child:
        wait_until(lambda: [*written.list("receipts/")], "the first receipt")
        child.send_group(signal.SIGKILL)
    for number in ("1", "0", "2"):
        numbered = {"AWS_BATCH_JOB_ARRAY_INDEX": number}
        done = commandline.dataprep(*shard[1:], env={**environment, **numbered})
        assert done.code == 0, done.err
    done = commandline.dataprep(*finalize[1:], env=environment)
    assert done.code == 0, done.err
    alone = [argument.replace("/out", "/alone") for argument in shard[1:-2]]
    if where == "s3":
        alone += ["--output", f"s3://{bucket}/alone"]
    assert commandline.dataprep(*alone, env=environment).code == 0
    results = {}
    for output in ("out", "alone"):
        results[output] = comparable(objects(open_store(f"s3://{bucket}/{output}", options)))
    assert results["out"] == results["alone"]


@contextmanager
def simulated_job(patch: pytest.MonkeyPatch, config: str) -> Iterator[list[list[str]]]:
    """The commands of a job that was submitted to the simulated AWS Batch."""
    with simulated(patch) as client:
        jobs = submit(config, queue=QUEUE, definition=DEFINITION, children=3)
        described: list[Any] = [client.describe_jobs(jobs=[job])["jobs"][0] for job in jobs]
        yield [job["container"]["command"] for job in described]
