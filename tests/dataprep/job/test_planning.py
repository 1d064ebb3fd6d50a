"""Tests of dataprep.job.planning."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path

from dataprep.config import ShardConfig
from dataprep.job.in_process import InProcess
from dataprep.job.planning import Convert, Planned, Request, planned, requested
from dataprep.labels import LabelSpace
from dataprep.plan import SplitPlan


def converting(request: Request) -> Convert:
    """Conversion in this process."""
    engine, config = InProcess(request.config.dask, lambda progress: None), request.config
    return partial(engine.outcomes, request.source, config.image, config.sample_limit)


def made(source: Path, output: Path, notes: list[str], **keys: object) -> Planned:
    """The plans of class folders; what is remarked goes into ``notes``."""
    config = ShardConfig.model_validate({"source": source, "output": output, **keys})
    request = requested(config, notes.append)
    return planned(request, request.own_labels(), notes.append, converting(request))


def test_planned_again_it_is_the_same_and_nothing_is_written(images: Path, tmp_path: Path) -> None:
    """What was lost of a job can be made again from its source."""
    output, notes = tmp_path / "out", list[str]()
    first, second = (made(images, output, notes, seed=3) for _ in range(2))
    assert (first.jobs, first.labels, first.encoded) == (
        second.jobs,
        second.labels,
        second.encoded,
    )
    assert not output.exists()
    assert " files, " in notes[0]


def test_job_files_know_what_they_were_written_with(images: Path, tmp_path: Path) -> None:
    """A job file a split, with the digests of the labels and of its plan."""
    found = made(images, tmp_path / "out", [], validation="20%")
    assert set(found.jobs) == set(found.encoded) == {"train", "validation"}
    for split, job in found.jobs.items():
        assert job.plan_sha256 == hashlib.sha256(found.encoded[split]).hexdigest()
        assert job.labels_sha256 == hashlib.sha256(found.labels).hexdigest()
        stored = SplitPlan.from_parquet(found.encoded[split])
        assert list(stored.names) == list(found.plans[split].names)
        assert stored.shard_count == job.shards
    assert LabelSpace.from_json(found.labels).labels
