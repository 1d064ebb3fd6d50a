"""Measure ``dataprep shard`` against a bare loop, with few shards, and with many workers.

    python benchmarks/sharding.py phase PHOTOS [--im2rec PYTHON] [--rounds 5]
    python benchmarks/sharding.py few PHOTOS [--rounds 5]
    python benchmarks/sharding.py simulated PHOTOS
    python benchmarks/sharding.py cluster PHOTOS

``PHOTOS`` contains class folders of JPEG files. The published figures are for 12,000 files, which
are 12 renamed copies of 1,000 ImageNet photos.

``phase`` runs ``bare_loop.py`` and a job in turns (2 workers, 256 pixels, quality 95, both
formats). The shard phase is the time from the job file to the last receipt. When the job file is
written, all shards are planned and the workers have started. ``--im2rec`` is the Python of an
environment with MXNet. With this option, ``im2rec.py`` of MXNet and a job that writes only RecordIO
also take their turns.

``few`` makes one shard of 1,600 photos with 1 worker and with 2 workers.

``simulated`` makes 33 shards on 64 workers, which are threads of this process and sleep for 50 ms
instead of converting a photo. ``cluster`` makes 2,000 shards on 200 workers, which sleep for 10 s
for each shard. The sleeps vary by 5 %. ``busy`` is the share of their time that the workers spend
in conversion. ``asleep`` is the same share without the time in which they wait for the interpreter,
which they share only in this simulation.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
WORKERS = 2


@contextmanager
def output() -> Iterator[str]:
    """Make a folder for one run. It is removed at the end, and the disk is synced."""
    folder = tempfile.mkdtemp(prefix="sharding-", dir=os.environ.get("TMPDIR"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
        os.sync()


def bare_loop(photos: str, workers: int = WORKERS) -> float:
    """Run ``bare_loop.py``, and return its seconds."""
    with output() as folder:
        program = [sys.executable, str(HERE / "bare_loop.py"), photos]
        done = subprocess.run(
            [*program, "--workers", str(workers), "--output", folder],
            check=True,
            capture_output=True,
        )
    return float(json.loads(done.stdout)["seconds"])


@dataclass(frozen=True, slots=True)
class JobDurations:
    """The durations of a job.

    Attributes:
        command_s: the time of the whole command.
        phase_s: the time of its shard phase, from the times of its files.
    """

    command_s: float
    phase_s: float


def job(
    photos: str,
    formats: list[str],
    workers: int = WORKERS,
    shard_size: str = "64MiB",
    size: int = 256,
) -> JobDurations:
    """Run ``dataprep shard``.

    Args:
        photos: class folders.
        formats: the record formats.
        workers: the number of worker processes.
        shard_size: the size of the shards.
        size: the short side of the images, in pixels.
    """
    with output() as folder:
        finished_output = Path(folder, "out")
        program = [sys.executable, "-m", "dataprep", "shard"]
        options = [f"--source={photos}", f"--output={finished_output}", f"--size={size}"]
        options += [f"--workers={workers}", f"--shard-size={shard_size}"]
        options += [f"--format={name}" for name in formats]
        started_s = time.perf_counter()
        subprocess.run([*program, *options], check=True, capture_output=True)
        command_s = time.perf_counter() - started_s
        phase_begin_s = (finished_output / "train.job.json").stat().st_mtime
        receipts = (finished_output / "receipts").iterdir()
        phase_end_s = max(path.stat().st_mtime for path in receipts)
        return JobDurations(command_s, phase_end_s - phase_begin_s)


_IM2REC = """
import runpy, sys
from pathlib import Path
from dataprep.reading.mxnet_compat import import_mxnet  # gives NumPy the names that MXNet misses

tool = Path(import_mxnet().__file__).parent / "tools" / "im2rec.py"
sys.argv[0] = str(tool)
runpy.run_path(str(tool), run_name="__main__")
"""


def im2rec(photos: str, python: str) -> float:
    """Run the script of MXNet: first its list, and then packing with ``WORKERS`` processes.

    Args:
        photos: class folders.
        python: the Python of an environment with MXNet.

    Returns:
        The seconds of both steps.
    """
    with output() as folder:
        started_s = time.perf_counter()
        for options in (
            ["--list", "--recursive"],
            ["--resize", "256", "--quality", "95", "--num-thread", str(WORKERS)],
        ):
            command = [python, "-c", _IM2REC, f"{folder}/train", photos, *options]
            subprocess.run(command, check=True, capture_output=True)
        return time.perf_counter() - started_s


def phase(photos: str, rounds: int, python: str | None) -> None:
    """Compare a job with the bare loop and, if ``python`` is given, with im2rec.py.

    Args:
        photos: class folders.
        rounds: the number of rounds.
        python: the Python of an environment with MXNet; None to leave out im2rec.py.
    """
    bare_s: list[float] = []
    jobs: list[JobDurations] = []
    recordio_s: list[float] = []
    im2rec_s: list[float] = []
    for number in range(rounds):
        bare_s.append(bare_loop(photos))
        print(number, "bare loop", bare_s[-1], file=sys.stderr)
        jobs.append(job(photos, ["tfrecord", "recordio"]))
        print(number, "both formats", jobs[-1], file=sys.stderr)
        if python:
            recordio_job = job(photos, ["recordio"])
            print(number, "recordio", recordio_job, file=sys.stderr)
            recordio_s.append(recordio_job.command_s)
            im2rec_s.append(im2rec(photos, python))
            print(number, "im2rec.py", im2rec_s[-1], file=sys.stderr)
    command_s = [durations.command_s for durations in jobs]
    phase_s = [durations.phase_s for durations in jobs]
    figures = {
        "bare loop, s": statistics.median(bare_s),
        "shard phase beside the bare loop": ratio(bare_s, phase_s),
        "whole command, s": statistics.median(command_s),
        "target of the whole command, s": statistics.median(bare_s) / 0.95 + 2.5,
    }
    if python:
        figures["im2rec.py, s"] = statistics.median(im2rec_s)
        figures["whole command beside im2rec.py"] = ratio(im2rec_s, command_s)
        figures["RecordIO alone beside im2rec.py"] = ratio(im2rec_s, recordio_s)
    print(json.dumps(figures, indent=1))


def few(photos: str, rounds: int) -> None:
    """Compare 2 workers with 1 worker for a shard of 1,600 photos, without the start of the job."""
    with output() as source:
        for path in sorted(Path(photos).rglob("*.JPEG"))[:1600]:
            target = Path(source, path.parent.name, path.name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        ratios = []
        for _ in range(rounds):
            one_s = job(source, ["tfrecord", "recordio"], 1, shard_size="100MB").phase_s
            two_s = job(source, ["tfrecord", "recordio"], 2, shard_size="100MB").phase_s
            print(one_s, two_s, file=sys.stderr)
            ratios.append(one_s / two_s)
    print(json.dumps({"2 workers beside 1": statistics.median(ratios)}))


_PERIODS = ("admin.tick.interval", "admin.system-monitor.interval")
"""Periods of tasks that every Dask worker repeats. With the usual periods, the tasks of 64 workers
would keep two cores busy."""


def simulated(
    photos: str, workers: int, shards: int, images: int, sleep_s: float, size: int | None = None
) -> None:
    """Run a job whose workers are threads of this process and sleep instead of converting photos.

    Args:
        photos: class folders. One of the photos is used.
        workers: the number of workers.
        shards: the number of shards.
        images: the number of images.
        sleep_s: the mean sleep for each image, in seconds.
        size: the short side of the converted images, in pixels; None to convert no image.
    """
    import dask
    from distributed import LocalCluster

    import dataprep
    from dataprep.job import conversion
    from dataprep.job.report import Display

    data = next(Path(photos).rglob("*.JPEG")).read_bytes()
    converted = dataprep.convert(data, dataprep.ImagePolicy(size=size))
    spans: list[tuple[float, float]] = []
    """Begin and end of each conversion after the calibration of the job."""

    def slow(*_: object, **__: object) -> dataprep.Converted:
        started_s = time.perf_counter()
        # With equal sleeps, all workers would store their shards at the same time.
        time.sleep(sleep_s * (0.95 + len(spans) % 11 / 100))
        spans.append((started_s, time.perf_counter()))
        return converted

    with output() as folder:
        _write_links(Path(folder, "photos", "n0"), data[: len(data) // 20], images)
        dask.config.set({"distributed.worker.profile.enabled": False})
        dask.config.set({f"distributed.{name}": "2s" for name in _PERIODS})
        cluster = LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=False,
            dashboard_address=None,
            memory_limit=0,  # The workers share the memory of this process.
        )
        record_bytes = len(converted.data) + 300
        with cluster:
            conversion.convert = slow  # type: ignore[attr-defined]
            config = {
                "source": str(Path(folder, "photos")),
                "output": f"{folder}/out",
                "format": ["tfrecord"],
                "image": {"size": size},
                "shard_size": images * record_bytes * 101 // (100 * shards),
                "dask": {"scheduler": cluster.scheduler_address},
            }
            calibrated = threading.Event()

            class ForgetCalibration(Display):
                """Forgets the conversions before the first split starts."""

                def start(self, split: str, samples: int, done: int) -> None:
                    if not calibrated.is_set():
                        calibrated.set()
                        spans.clear()

            dataprep.shard(dataprep.ShardConfig.model_validate(config), display=ForgetCalibration())
        receipts = len(list(Path(folder, "out", "receipts").iterdir()))
    seconds = max(end for _, end in spans) - min(start for start, _ in spans)
    busy = sum(end - start for start, end in spans) / (workers * seconds)
    asleep = sleep_s * len(spans) / (workers * seconds)
    print(json.dumps({"shards": receipts, "busy": busy, "asleep": asleep, "seconds": seconds}))


def ratio(reference: list[float], ours: list[float]) -> float:
    """Return the median of the ratios within rounds. Above 1, ``ours`` is faster."""
    return statistics.median(theirs / own for theirs, own in zip(reference, ours, strict=True))


def _write_links(folder: Path, data: bytes, images: int) -> None:
    """Write a file with this content, and links to it, so that the folder has ``images`` files."""
    first = folder / "0.JPEG"
    folder.mkdir(parents=True)
    first.write_bytes(data)
    for number in range(1, images):
        os.link(first, first.with_name(f"{number}.JPEG"))


def main() -> None:
    """Run the measurement that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["phase", "few", "simulated", "cluster"])
    parser.add_argument("photos")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--im2rec", metavar="PYTHON")
    options = parser.parse_args()
    if options.what == "phase":
        phase(options.photos, options.rounds, options.im2rec)
    elif options.what == "few":
        few(options.photos, options.rounds)
    elif options.what == "simulated":
        simulated(options.photos, workers=64, shards=33, images=50_000, sleep_s=0.05, size=256)
    else:
        simulated(options.photos, workers=200, shards=2_000, images=12_000, sleep_s=10 / 6)


if __name__ == "__main__":
    main()
