"""How large records become is learnt from a few conversions."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest

from dataprep.config import ShardConfig
from dataprep.errors import SourceError
from dataprep.job.in_process import InProcess
from dataprep.job.planning import Request, calibrate, requested
from dataprep.plan import sample_rows


def points(request: Request) -> tuple[tuple[int, int], ...]:
    """Of a calibration in this process."""
    config = request.config
    engine = InProcess(config.dask, lambda progress: None)
    convert = partial(engine.outcomes, request.source, config.image, config.sample_limit)
    listing = request.listing
    return calibrate(listing, sample_rows(listing), request.config, convert).points


def request_of(source: Path, output: Path) -> Request:
    """A job of class folders."""
    return requested(ShardConfig(source=str(source), output=str(output)), lambda line: None)


def test_a_failed_sample_counts_as_one_without_bytes(images: Path, tmp_path: Path) -> None:
    """It has no record; the others predict as before."""
    source = tmp_path / "photos"
    shutil.copytree(images, source)
    before = points(request_of(source, tmp_path / "out"))
    victim = min(source.rglob("*.JPEG"))
    victim.write_bytes(bytes(victim.stat().st_size))
    after = points(request_of(source, tmp_path / "out"))
    assert [point[0] for point in after] == [point[0] for point in before]
    assert sum(point[1] for point in after) < sum(point[1] for point in before)


def test_a_file_that_changes_meanwhile_is_the_sources_fault(images: Path, tmp_path: Path) -> None:
    """Nothing is stored yet: there is nothing to overwrite."""
    source = tmp_path / "photos"
    shutil.copytree(images, source)
    request = request_of(source, tmp_path / "out")
    for path in source.rglob("*.JPEG"):
        path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(SourceError, match=r"changed while the job was planned .*: run the same"):
        points(request)
