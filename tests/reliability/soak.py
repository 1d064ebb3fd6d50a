"""Hours of work in one process: does it hold more and more of anything, and does it slow down?

``PYTHONPATH=. python -m tests.reliability.soak [--minutes M] [--images N] [--save]`` shards N
small images again and again in one driver, as a pipeline that imports the library does, for M
minutes each into a folder and into S3, and then runs a benchmark of 200 trials.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

import numpy as np
import psutil
from PIL import Image

from iobench.s3_server import MotoServer
from tests.reliability.growth import FEWEST, Growth, Reading, growth
from tests.reliability.rows import Row, Tried, save

EVERY_S = 2.0
DRAWN, CLASSES, PIXELS = 1000, 10, (120, 90)
_TRIALS = """
name: soak
repeats: {repeats}
data: {{images: 200, classes: 4, size: 64, shard_size: 1MB, folder: {folder}/data}}
disk:
  targets: [{{label: here, path: {folder}}}]
  file_bytes: 64MiB
  operations: [read]
  patterns: [sequential]
  block_bytes: [128KiB, 1MiB]
  parallelism: [1]
  seconds: 0.1
object_store:
  targets: [{{label: moto, uri: local}}]
  operations: [get]
  object_bytes: [100kB]
  connections: [1, 2]
  seconds: 0.1
loaders:
  - {{loader: raw, data: [shards@disk], workers: 1, seconds: 0.1}}
training:
  - group: paced
    consumer: paced
    images_per_s: 5000
    loader: raw
    workers: 1
    steps: 10
    batch_size: 16
"""
_TRIALS_A_REPEAT = 19


def many(folder: Path, images: int) -> Path:
    """A tree of ``images`` small files, of which each is a link to one of a thousand drawn ones."""
    random = np.random.default_rng(7)
    folder.mkdir(exist_ok=True)
    sources = []
    for number in range(min(DRAWN, images)):
        coarse = random.integers(0, 256, (6, 8, 3), np.uint8)
        source = folder / f"{number}.JPEG"
        Image.fromarray(coarse).resize(PIXELS).save(source, quality=90)
        sources.append(source)
    tree = folder / "photos"
    for number in range(images):
        target = tree / f"class-{number % CLASSES}" / f"{number:07}.JPEG"
        if number < CLASSES:
            target.parent.mkdir(parents=True)
        target.hardlink_to(sources[number % len(sources)])
    return tree


def readings(process: subprocess.Popen[bytes]) -> Iterator[Reading]:
    """One every two seconds, until the process ends."""
    begun_s = time.monotonic()
    watched = psutil.Process(process.pid)
    while process.poll() is None:
        try:
            children = watched.children(recursive=True)
            yield Reading(
                time.monotonic() - begun_s,
                watched.memory_info().rss / 1e6,
                max((_resident_mb(child) for child in children), default=0.0),
                watched.num_fds(),
                watched.num_threads(),
                1 + len(children),
            )
        except psutil.NoSuchProcess:
            return
        time.sleep(EVERY_S)


def _resident_mb(process: psutil.Process) -> float:
    try:
        return float(process.memory_info().rss) / 1e6
    except psutil.NoSuchProcess:
        return 0.0


def rows(
    what: str, where: str, times: int, seen: Sequence[Reading], rates: Sequence[float]
) -> Iterator[Row]:
    """What grew, by the hour, over readings after a warm-up of a tenth; and the rate.

    The driver's memory also in the second half: what an allocator keeps grows for a few jobs, until
    its gaps are as large as what a job needs, and a leak goes on.
    """
    kept = [reading for reading in seen if reading.at_s > seen[-1].at_s / 10]
    at_s = [reading.at_s for reading in kept]
    hours = seen[-1].at_s / 3600
    minutes = f"{hours * 60:.0f} min"

    def of(name: str) -> Growth:
        return growth(at_s, [float(getattr(reading, name)) for reading in kept])

    driver, workers = of("driver_mb"), of("workers_mb")
    half = max(0, min(len(kept) // 2, len(kept) - FEWEST))
    later = growth(at_s[half:], [reading.driver_mb for reading in kept[half:]])
    yield Row(
        f"{what}: memory",
        where,
        times,
        f"{minutes}: driver {driver.first:.0f} MB in the first quarter, {driver.last:.0f} MB in "
        f"the last, {driver.per_hour:+.1f} MB/h, in the second half {later.per_hour:+.1f}; "
        f"largest worker {workers.first:.0f} and {workers.last:.0f} MB, "
        f"{workers.per_hour:+.1f} MB/h",
    )
    files, threads, processes = of("descriptors"), of("threads"), of("processes")
    yield Row(
        f"{what}: descriptors, threads, processes",
        where,
        times,
        f"{files.first:.0f}, {threads.first:.0f}, {processes.first:.0f} in the first quarter; "
        f"{files.last:.0f}, {threads.last:.0f}, {processes.last:.0f} in the last",
    )
    if rates:
        quarter = max(1, len(rates) // 4)
        yield Row(
            f"{what}: rate",
            where,
            times,
            f"{median(rates[:quarter]):,.0f} images/s in the first quarter of the jobs, "
            f"{median(rates[-quarter:]):,.0f} in the last; least {min(rates):,.0f}, most "
            f"{max(rates):,.0f}",
        )


def watched(
    arguments: Sequence[str], environment: Mapping[str, str], told: Path
) -> tuple[list[Reading], list[dict[str, float]]]:
    """Run a command to its end, and what it held meanwhile; what it told, line by line.

    Raises:
        RuntimeError: it failed.
    """
    with told.open("wb") as out:
        process = subprocess.Popen(arguments, env={**os.environ, **environment}, stdout=out)
        seen = list(readings(process))
    if process.wait():
        raise RuntimeError(f"{' '.join(arguments)} ended with {process.returncode}")
    lines = told.read_text().splitlines()
    return seen, [json.loads(line) for line in lines if line.startswith("{")]


def sharded(
    source: Path,
    output: str,
    folder: Path,
    server: MotoServer,
    *,
    minutes: float = 0.0,
    jobs: int = 1,
) -> tuple[list[Reading], list[dict[str, float]]]:
    """One driver that shards ``source`` so often at least, and for so long at least."""
    arguments = [sys.executable, "-m", "tests.reliability.soaked", str(source), output]
    arguments += ["--minutes", str(minutes), "--jobs", str(jobs), "--endpoint-url", server.url]
    return watched(arguments, MotoServer.ENVIRONMENT, folder / "jobs")


def benchmarked(folder: Path, trials: int) -> list[Reading]:
    """One benchmark of at least so many trials."""
    config = folder / "soak.yaml"
    repeats = -(-trials // _TRIALS_A_REPEAT)
    config.write_text(_TRIALS.format(folder=folder, repeats=repeats))
    run = ["run", str(config), "--output", str(folder / "run")]
    seen, _ = watched([sys.executable, "-m", "iobench", *run], {}, folder / "said")
    return seen


def main() -> None:
    """The long form."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=30.0)
    options.add_argument("--images", type=int, default=500_000)
    options.add_argument("--trials", type=int, default=200)
    options.add_argument("--save", action="store_true")
    given = options.parse_args()
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as name, MotoServer() as server:
        folder = Path(name)
        source = many(folder, given.images)
        os.environ.update(MotoServer.ENVIRONMENT)
        server.create_bucket("soak")
        for where, output in (("a folder", str(folder / "out")), ("S3 (moto)", "s3://soak/out")):
            seen, jobs = sharded(source, output, folder, server, minutes=given.minutes)
            images = sum(int(job["images"]) for job in jobs)
            rates = [job["images"] / job["seconds"] for job in jobs]
            what = f"{images:,} images in {len(jobs)} jobs"
            found += _shown(rows(what, where, images, seen, rates))
        seen = benchmarked(folder, given.trials)
        what = f"iobench run of {given.trials} trials"
        found += _shown(rows(what, "a folder and S3 (moto)", given.trials, seen, []))
    if given.save:
        command = f"PYTHONPATH=. python -m tests.reliability.soak --minutes {given.minutes:g}"
        command += f" --images {given.images} --trials {given.trials}"
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        save("soak", Tried("Long runs", command, today, None, found))


def _shown(found: Iterator[Row]) -> Iterator[Row]:
    for row in found:
        print(row.fault, row.where, row.seen, sep=": ", flush=True)  # noqa: T201
        yield row


if __name__ == "__main__":
    main()
