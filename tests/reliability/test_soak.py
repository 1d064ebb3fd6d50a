"""The short form of a soak: four jobs in one process leave no descriptor and no thread behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from iobench.s3_server import MotoServer
from tests.reliability.growth import Reading
from tests.reliability.soak import many, rows, sharded

JOBS = 4


@pytest.mark.parametrize("where", ["folder", "s3"])
def test_jobs_leave_nothing_behind(
    tmp_path: Path, s3_server: MotoServer, bucket: str, where: str
) -> None:
    """What the driver holds after the second job, when all is imported, is what it goes on with."""
    output = str(tmp_path / "out") if where == "folder" else f"s3://{bucket}/out"
    source = many(tmp_path / "source", 60)
    seen, jobs = sharded(source, output, tmp_path, s3_server, jobs=JOBS)
    assert [job["images"] for job in jobs] == [60] * JOBS
    # One may be on its way out; one a job that stays would be two by now.
    assert jobs[-1]["descriptors"] <= jobs[1]["descriptors"] + 1
    assert jobs[-1]["threads"] <= jobs[1]["threads"] + 1
    assert max(reading.processes for reading in seen) > 1


def test_rows_tell_what_grew() -> None:
    """Memory by its slope, the others and the rate by the first and the last quarter."""
    seen = [Reading(60.0 * at, 100 + at, 50, 9, 4 + at // 30, 3) for at in range(61)]
    memory, others, rate = rows("120 images", "a folder", 120, seen, [100, 90, 80, 70])
    assert "driver 113 MB in the first quarter, 154 MB in the last, +60.0 MB/h, in" in memory.seen
    assert "in the second half +60.0;" in memory.seen
    assert "largest worker 50 and 50 MB, +0.0 MB/h" in memory.seen
    assert others.seen == "9, 4, 3 in the first quarter; 9, 5, 3 in the last"
    assert rate.seen.startswith("100 images/s in the first quarter of the jobs, 70 in the last")
