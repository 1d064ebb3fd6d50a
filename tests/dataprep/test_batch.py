"""``dataprep batch`` against a simulated AWS Batch; see also tests/e2e/test_batch.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from dataprep import batch
from dataprep.errors import ConfigError, JobError
from tests.simulated_batch import DEFINITION, QUEUE, batch_queue

queue = pytest.fixture(batch_queue)


def config_file(folder: Path, **values: Any) -> str:
    """A YAML file with these keys."""
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(values))
    return str(path)


def submitted(config: str, children: int = 3) -> tuple[str, str]:
    """The ids of both jobs."""
    return batch.submit(config, queue=QUEUE, definition=DEFINITION, children=children)


def commands(client: Any, *jobs: str) -> list[list[str]]:
    """The command of each job's container."""
    described = client.describe_jobs(jobs=list(jobs))["jobs"]
    found = {job["jobId"]: job["container"]["command"] for job in described}
    return [found[job] for job in jobs]


def test_what_is_submitted(queue: Any, tmp_path: Path) -> None:
    """An array whose children run their part, and a job that waits for it and finalizes."""
    image = {"size": 256}
    output = "s3://bucket/out"
    path = config_file(tmp_path, source="s3://b/in", output=output, image=image, max_failures=3)
    array, finalizing = submitted(path)
    shard, finalize = commands(queue, array, finalizing)
    assert shard[:2] == ["dataprep", "shard"]
    assert shard[-2:] == ["--part", "auto"]
    assert 'image={"mode": "short", "size": 256}' in shard
    assert finalize == [
        *("dataprep", "finalize", output),
        *("--parts", "3", "--max-failures", "3"),
    ]
    (described,) = queue.describe_jobs(jobs=[finalizing])["jobs"]
    assert [one["jobId"] for one in described["dependsOn"]] == [array]


@pytest.mark.parametrize(
    ("children", "changed", "message"),
    [
        (1, {}, "an array job has 2 to 10,000"),
        (3, {"output": "out"}, "the children run on other machines"),
        (3, {"image": {"sizes": 1}}, "unknown key image.sizes"),
        (3, {"kind": "listing", "source": "s3://b/" + 9000 * "x"}, "copy it to S3"),
    ],
)
def test_nothing_is_submitted(
    queue: Any, tmp_path: Path, children: int, changed: dict[str, Any], message: str
) -> None:
    """Where the request is wrong."""
    path = config_file(tmp_path, **{"source": "s3://b/in", "output": "s3://b/out", **changed})
    with pytest.raises(ConfigError, match=message):
        submitted(path, children)
    assert queue.list_jobs(jobQueue=QUEUE)["jobSummaryList"] == []


def test_what_aws_refuses(queue: Any, tmp_path: Path) -> None:
    """Its words, and which job there is none of."""
    path = config_file(tmp_path, source="s3://b/in", output="s3://b/out")
    with pytest.raises(JobError, match="nothing"):
        batch.submit(path, queue=QUEUE, definition="nothing", children=2)
    with pytest.raises(ConfigError, match="no-such-job: AWS Batch has no such job"):
        batch.status("no-such-job")


def test_status_of_what_is_done(queue: Any, tmp_path: Path) -> None:
    """Both jobs have succeeded: exit code 0."""
    path = config_file(tmp_path, source="s3://b/in", output="s3://b/out")
    for job in submitted(path):
        found = batch.wait(job, lambda seen: None)
        assert (found.state, found.exit_code, found.failed) == ("SUCCEEDED", 0, ())


def test_status_of_what_failed(queue: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each failed child with its reason and the name of its log stream; asked of either job."""
    monkeypatch.setenv("MOTO_SIMPLE_BATCH_FAIL_AFTER", "0")
    array, finalizing = submitted(
        config_file(tmp_path, source="s3://b/in", output="s3://b/out"), children=2
    )
    for job in (array, finalizing):
        found = batch.status(job)
        assert (found.job, found.state, found.exit_code) == (array, "FAILED", 1)
        assert [one.child for one in found.failed] == [0, 1]
        assert all(one.log_stream != "none" for one in found.failed)
        assert f"child 1: {found.failed[1].reason}; log stream" in str(found)
