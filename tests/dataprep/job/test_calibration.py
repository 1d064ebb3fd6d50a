"""The size of records is estimated from the conversion of a few samples."""

from __future__ import annotations

import io
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from dataprep.config.shard_config import ShardConfig
from dataprep.errors import SourceError
from dataprep.job.calibration import Calibration, calibrate
from dataprep.job.in_process import InProcess
from dataprep.job.request import Request, open_request
from dataprep.job.sample_labels import rows_of_samples
from tests.parquet_files import parquet_of


def request_of(source: Path, output: Path, kind: str = "imagefolder") -> Request:
    """The request of a job."""
    config = ShardConfig(source=str(source), output=str(output), kind=kind)
    return open_request(config, lambda line: None)


def calibration_of(request: Request) -> Calibration:
    """The calibration with conversions in this process."""
    config, listing = request.config, request.listing
    engine = InProcess(config.dask, lambda progress: None)
    convert = partial(engine.convert_samples, request.source, config.image, config.sample_limit)
    return calibrate(listing, rows_of_samples(listing), config, convert)


def test_a_failed_sample_counts_with_0_bytes(images: Path, tmp_path: Path) -> None:
    """A failed sample has no record, and does not change the predictions for other sizes."""
    source = tmp_path / "photos"
    shutil.copytree(images, source)
    before = calibration_of(request_of(source, tmp_path / "out")).points
    damaged = min(source.rglob("*.JPEG"))
    damaged.write_bytes(bytes(damaged.stat().st_size))
    after = calibration_of(request_of(source, tmp_path / "out")).points
    assert [source_bytes for source_bytes, _ in after] == [point[0] for point in before]
    assert sum(record for _, record in after) < sum(record for _, record in before)


def test_a_file_that_changes_while_the_job_is_planned(images: Path, tmp_path: Path) -> None:
    """A changed file is an error of the source.

    Nothing is stored yet, so that --overwrite is not advised.
    """
    source = tmp_path / "photos"
    shutil.copytree(images, source)
    request = request_of(source, tmp_path / "out")
    for path in source.rglob("*.JPEG"):
        path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(SourceError, match=r"changed while the job was planned .*: run the same"):
        calibration_of(request)


def test_a_row_group_predicts_its_records_by_their_mean(tmp_path: Path) -> None:
    """All images of a row group have the same listed size, so their mean predicts each of them."""
    photos = [noise_photo(number % 2 * 300 + 40) for number in range(60)]
    columns = {"image": pa.array(photos), "label": [number % 3 for number in range(60)]}
    (tmp_path / "a.parquet").write_bytes(parquet_of(columns, group=60))
    request = request_of(tmp_path / "a.parquet", tmp_path / "out", kind="parquet")
    predicted = calibration_of(request).predict(request.listing.sizes)
    expected_bytes = sum(len(photo) for photo in photos) + 60 * 400
    assert predicted.sum() == pytest.approx(expected_bytes, rel=0.1)


def noise_photo(side: int) -> bytes:
    """A square JPEG of noise with this side, in pixels."""
    pixels = np.random.default_rng(side).integers(0, 256, (side, side, 3), np.uint8)
    sink = io.BytesIO()
    Image.fromarray(pixels).save(sink, "JPEG")
    return sink.getvalue()
