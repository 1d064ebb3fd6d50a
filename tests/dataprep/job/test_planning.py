"""Plans of a job, how large records become, and what is said before it begins."""

from __future__ import annotations

import hashlib
import io
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from dataprep.config import ShardConfig
from dataprep.errors import SourceError
from dataprep.job.in_process import InProcess
from dataprep.job.planning import JobPlan, plan_job
from dataprep.job.record_sizes import Convert, calibrate
from dataprep.job.request import Request, open_request
from dataprep.job.source_notes import preflight_warnings
from dataprep.labels import LabelSpace
from dataprep.split_plan import SplitPlan, sample_rows
from tests.parquet_files import parquet_of


def converting(request: Request) -> Convert:
    """Conversion in this process."""
    engine, config = InProcess(request.config.dask, lambda progress: None), request.config
    return partial(engine.convert_samples, request.source, config.image, config.sample_limit)


def made(source: Path, output: Path, notes: list[str], **keys: object) -> JobPlan:
    """The plans of class folders; what is remarked goes into ``notes``."""
    config = ShardConfig.model_validate({"source": source, "output": output, **keys})
    request = open_request(config, notes.append)
    return plan_job(request, request.own_labels(), notes.append, converting(request))


def test_planned_again_it_is_the_same_and_nothing_is_written(images: Path, tmp_path: Path) -> None:
    """What was lost of a job can be made again from its source."""
    output, notes = tmp_path / "out", list[str]()
    first, second = (made(images, output, notes, seed=3) for _ in range(2))
    assert (first.jobs, first.labels_json, first.encoded_plans) == (
        second.jobs,
        second.labels_json,
        second.encoded_plans,
    )
    assert not output.exists()
    assert ": class folders, " in notes[0]


def test_job_files_know_what_they_were_written_with(images: Path, tmp_path: Path) -> None:
    """A job file a split, with the digests of the labels and of its plan."""
    found = made(images, tmp_path / "out", [], validation="20%")
    assert set(found.jobs) == set(found.encoded_plans) == {"train", "validation"}
    for split, job in found.jobs.items():
        assert job.plan_sha256 == hashlib.sha256(found.encoded_plans[split]).hexdigest()
        assert job.labels_sha256 == hashlib.sha256(found.labels_json).hexdigest()
        stored = SplitPlan.from_parquet(found.encoded_plans[split])
        assert list(stored.names) == list(found.plans[split].names)
        assert stored.shard_count == job.shards
    assert LabelSpace.from_json(found.labels_json).labels


def points(request: Request) -> tuple[tuple[int, int], ...]:
    """Of a calibration in this process."""
    config = request.config
    engine = InProcess(config.dask, lambda progress: None)
    convert = partial(engine.convert_samples, request.source, config.image, config.sample_limit)
    listing = request.listing
    return calibrate(listing, sample_rows(listing), request.config, convert).points


def request_of(source: Path, output: Path) -> Request:
    """A job of class folders."""
    return open_request(ShardConfig(source=str(source), output=str(output)), lambda line: None)


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


def said(source: Path, more: LabelSpace | None = None, **keys: object) -> list[str]:
    """What is said of class folders as they lie there."""
    config = ShardConfig.model_validate({"source": source, "output": f"{source}-out", **keys})
    request = open_request(config, lambda line: None)
    return list(preflight_warnings(request, more or request.own_labels()))


@pytest.fixture
def photos(images: Path, tmp_path: Path) -> Path:
    """Two classes that are no synsets, of one image each."""
    first, second = sorted(images.rglob("*.JPEG"))[:2]
    for name, path in (("cat", first), ("dog", second)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        shutil.copy(path, tmp_path / "photos" / name / "1.JPEG")
    return tmp_path / "photos"


def test_nothing_of_what_is_plain(photos: Path) -> None:
    """Two classes of images are nothing to talk about."""
    assert said(photos) == []


def test_images_in_no_class(photos: Path) -> None:
    """They are counted, and one is named."""
    shutil.copy(photos / "cat" / "1.JPEG", photos / "stray.jpg")
    assert said(photos) == ["1 image is in no class folder and skipped, such as 'stray.jpg'"]


def test_a_class_of_broken_links(photos: Path) -> None:
    """A class that loses all of its files loses its label, which is said."""
    (photos / "bird").mkdir()
    (photos / "bird" / "1.jpg").symlink_to("nowhere")
    (line,) = said(photos)
    assert line == "no file of 1 class can be read, such as 'bird'"


def test_classes_of_other_splits(photos: Path) -> None:
    """What labels.json has and this source lacks."""
    space = LabelSpace.of(["cat", "dog", "emu"])
    assert said(photos, space) == ["no sample here of 1 class, such as 'emu'"]


def test_a_shard_size_that_is_moved(photos: Path) -> None:
    """And why it is."""
    (line,) = said(photos, shard_size="1MB")
    assert line.startswith("shard size 1 MB becomes 1.18 MB, ")


def test_a_row_group_predicts_its_records_by_their_mean(tmp_path: Path) -> None:
    """Images of one row group have one size before they are read: its mean predicts them all."""
    photos = [drawn(number % 2 * 300 + 40) for number in range(60)]
    columns = {"image": pa.array(photos), "label": [number % 3 for number in range(60)]}
    (tmp_path / "a.parquet").write_bytes(parquet_of(columns, group=60))
    plans = made(tmp_path / "a.parquet", tmp_path / "out", [], kind="parquet").plans
    in_records = sum(map(len, photos)) + 60 * 400
    assert plans["train"].predicted.sum() == pytest.approx(in_records, rel=0.1)


def drawn(side: int) -> bytes:
    """A photo of noise with this side."""
    pixels = np.random.default_rng(side).integers(0, 256, (side, side, 3), np.uint8)
    sink = io.BytesIO()
    Image.fromarray(pixels).save(sink, "JPEG")
    return sink.getvalue()
