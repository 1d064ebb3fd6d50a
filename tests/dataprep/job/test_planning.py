"""Plan a job: the same source gives the same plans and job files, and nothing is written."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path

import pytest

from dataprep.config.shard_config import ShardConfig
from dataprep.errors import ConfigError
from dataprep.job.in_process import InProcess
from dataprep.job.planning import JobPlan, plan_job
from dataprep.job.request import open_request
from dataprep.job.split_plan import SplitPlan
from dataprep.labels import LabelSpace


def plan_of(source: Path, output: Path, notes: list[str], **keys: object) -> JobPlan:
    """The plan of a source of class folders. Messages are appended to ``notes``."""
    config = ShardConfig.model_validate({"source": source, "output": output, **keys})
    request = open_request(config, notes.append)
    engine = InProcess(config.dask, lambda progress: None)
    convert = partial(engine.convert_samples, request.source, config.image, config.sample_limit)
    return plan_job(request, request.own_labels(), notes.append, convert)


def test_the_same_job_is_planned_again(images: Path, tmp_path: Path) -> None:
    """Lost files of a job can be made again from its source. Planning writes nothing."""
    output = tmp_path / "out"
    notes: list[str] = []
    first = plan_of(images, output, notes, seed=3)
    second = plan_of(images, output, notes, seed=3)
    assert first.jobs == second.jobs
    assert first.labels_json == second.labels_json
    assert first.encoded_plans == second.encoded_plans
    assert not output.exists()
    assert ": class folders, " in notes[0]


def test_job_files_contain_the_digests_of_labels_and_plans(images: Path, tmp_path: Path) -> None:
    """Each split has a job file."""
    job_plan = plan_of(images, tmp_path / "out", [], validation="20%")
    assert set(job_plan.jobs) == set(job_plan.encoded_plans) == {"train", "validation"}
    for split, job in job_plan.jobs.items():
        encoded_plan = job_plan.encoded_plans[split]
        assert job.plan_sha256 == hashlib.sha256(encoded_plan).hexdigest()
        assert job.labels_sha256 == hashlib.sha256(job_plan.labels_json).hexdigest()
        decoded_plan = SplitPlan.from_parquet(encoded_plan)
        assert list(decoded_plan.names) == list(job_plan.plans[split].names)
        assert decoded_plan.shard_count == job.shards
    assert LabelSpace.from_json(job_plan.labels_json).labels


@pytest.mark.parametrize(
    ("source", "output"),
    [("{home}/photos", "~/photos/out"), ("~/photos", "{home}/photos/out"), ("~", "~/out")],
)
def test_an_output_inside_the_source_is_refused_with_a_tilde(
    images: Path, monkeypatch: pytest.MonkeyPatch, source: str, output: str
) -> None:
    """A tilde in the source or the output means the home folder, as it does for the stores."""
    home = images.parent
    monkeypatch.setenv("HOME", str(home))
    with pytest.raises(ConfigError, match="is inside the source"):
        plan_of(Path(source.format(home=home)), Path(output.format(home=home)), [])
