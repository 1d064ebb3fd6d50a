"""Measure the rate of ``dataprep shard`` for several numbers of worker processes.

``python -m benchmarks.shard_scaling PHOTOS`` runs a job for each number of workers. The jobs resize
to a short side of 224 pixels and write both formats. A job with more workers gets more photographs,
so that all jobs take about the same time: ``--images-per-worker`` for each worker, and at most
``--most-images``. Photographs are repeated under new names. The rate is that of the shard phase,
from the job file to the last receipt (``benchmarks.sharding``). The time of the whole command is
saved as well.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.sharding import job
from benchmarks.workplace import Workplace

SIZE = 224
FORMATS = ("tfrecord", "recordio")
SHARD_SIZE = "16MiB"
"""The size is small enough for several shards per worker."""


@dataclass(frozen=True, slots=True)
class JobTimes:
    """The times of a job.

    Attributes:
        workers: the number of worker processes.
        images: the number of photographs.
        phase_s: the time of its shard phase.
        command_s: the time of the whole command.
    """

    workers: int
    images: int
    phase_s: float
    command_s: float

    @property
    def images_per_s(self) -> float:
        """Photographs per second of the shard phase."""
        return self.images / self.phase_s


def timed_job(workplace: Workplace, workers: int, images: int) -> JobTimes:
    """Run a job over ``images`` photographs, and measure its times."""
    photos = workplace.repeated(images)
    durations = job(str(photos), list(FORMATS), workers, SHARD_SIZE, size=SIZE)
    return JobTimes(workers, images, durations.phase_s, durations.command_s)


def counts(text: str) -> list[int]:
    """Return the numbers in a list such as ``1,4,8``."""
    return [int(number) for number in text.split(",")]


def main() -> None:
    """Run the jobs. The file with the results is written again after each job."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shard_scaling")
    parser.add_argument("photos", type=Path, help="class folders of photographs")
    parser.add_argument("--workers", type=counts, default=[1, 4, 8, 16], metavar="N,N")
    parser.add_argument("--images-per-worker", type=int, default=3_000)
    parser.add_argument("--most-images", type=int, default=30_000)
    parser.add_argument("--to", type=Path, help="a JSON file for the times of all jobs")
    options = parser.parse_args()
    jobs: list[JobTimes] = []
    with tempfile.TemporaryDirectory(prefix="shard-scaling-") as folder:
        workplace = Workplace(Path(folder), options.photos, options.most_images)
        for workers in options.workers:
            images = min(workers * options.images_per_worker, options.most_images)
            jobs.append(timed_job(workplace, workers, images))
            print(f"{workers} workers: {jobs[-1].images_per_s:,.0f} img/s", file=sys.stderr)
            if options.to:
                content = {
                    "size": SIZE,
                    "formats": FORMATS,
                    "jobs": [asdict(job_times) for job_times in jobs],
                }
                options.to.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
