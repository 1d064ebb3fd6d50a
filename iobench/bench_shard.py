"""``make bench``: how fast ``dataprep shard`` runs here, and what it needs.

Images a second with 1 and 2 worker processes (whole job, and in steady state: from the first
progress report to the last), the peak memory of a worker, the start-up of the command line.
Beside each job runs the codec floor: as many bare processes that decode each image in full and
encode it at its target size, with nothing between. Runs alternate; figures are medians, ratios
are taken within pairs. Give photographs of your own with ``--source``; they are repeated by hard
links until there are enough.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

import dataprep
from dataprep.config import load
from dataprep.worker import Progress

_FLOOR_IMAGES = 600
"""How many images each process of the codec floor works on; more would fill the memory."""


@dataclass(frozen=True, slots=True)
class Run:
    """One job: rates in images a second, memory in MB (10^6 bytes).

    ``floor_per_s`` is the codec floor that was measured right before it.
    """

    workers: int
    images: int
    whole_per_s: float
    steady_per_s: float
    worker_peak_mb: float
    floor_per_s: float


@dataclass
class Recorder:
    """A display that keeps when how much was done."""

    marks: list[tuple[float, int]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, split: str, samples: int, source_bytes: int, done: int) -> None:
        """Begin."""

    def advance(self, progress: Progress) -> None:
        """Keep the time of this report."""
        with self.lock:
            self.marks.append((time.perf_counter(), progress.samples))

    def note(self, line: str) -> None:
        """Nothing."""

    def stop(self) -> None:
        """Nothing."""

    def steady_per_s(self) -> float:
        """Samples after the first report over the time since it; 0 where there are too few."""
        if len(self.marks) < 2:
            return 0.0
        seconds = self.marks[-1][0] - self.marks[0][0]
        return sum(samples for _, samples in self.marks[1:]) / seconds


class PeakMemory(threading.Thread):
    """The largest resident size that any child process reached while this ran."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._done = threading.Event()
        self.bytes = 0

    def run(self) -> None:
        """Read the kernel's own high-water marks."""
        while not self._done.wait(0.1):
            for child in psutil.Process().children(recursive=True):
                self.bytes = max(self.bytes, _high_water_bytes(child.pid))

    def stop(self) -> int:
        """End; the peak in bytes."""
        self._done.set()
        self.join()
        return self.bytes


def _high_water_bytes(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next(
        (1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")),
        0,
    )


def repeated(source: Path, dest: Path, images: int) -> int:
    """Hard links to the files of ``source`` under new names until there are ``images``."""
    files = sorted(path for path in source.rglob("*") if path.is_file())
    if not files:
        raise SystemExit(f"no files in {source}")
    for i in range(images):
        path = files[i % len(files)]
        target = dest / path.parent.name / f"{path.stem}_{i // len(files)}{path.suffix}"
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, target)
        except OSError:
            shutil.copyfile(path, target)
    return images


def codec_floor_per_s(source: Path, processes: int, size: int) -> float:
    """Images a second of bare processes that decode in full and encode the resized image."""
    files = sorted(path for path in source.rglob("*") if path.is_file())
    shares = [files[i :: len(files) // _FLOOR_IMAGES + 1] for i in range(processes)]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        rates = pool.starmap(_floor_share, [(share, size) for share in shares], chunksize=1)
    return sum(rates)


def _floor_share(files: list[Path], size: int) -> float:
    import simplejpeg

    from dataprep.image import ImagePolicy, convert

    policy = ImagePolicy(size=size)
    pairs = []
    for path in files:
        data = path.read_bytes()
        small = simplejpeg.decode_jpeg(convert(data, policy).data, "RGB")
        pairs.append((data, small))
    started_s = time.perf_counter()
    for data, small in pairs:
        simplejpeg.decode_jpeg(data, "RGB")
        simplejpeg.encode_jpeg(small, quality=95, colorsubsampling="420", fastdct=False)
    return len(pairs) / (time.perf_counter() - started_s)


def one_run(source: Path, output: Path, workers: int, size: int, shard_size: str) -> Run:
    """Shard once with worker processes, into an empty folder."""
    floor_per_s = codec_floor_per_s(source, workers, size)
    shutil.rmtree(output, ignore_errors=True)
    config = load(
        None,
        {
            "source": str(source),
            "output": str(output),
            "format": ["tfrecord", "recordio"],
            "image.size": size,
            "shard_size": shard_size,
            "dask.workers": workers,
            "dask.processes": True,
        },
    )
    recorder, memory = Recorder(), PeakMemory()
    memory.start()
    started_s = time.perf_counter()
    (summary,) = dataprep.shard(config, display=recorder)
    seconds = time.perf_counter() - started_s
    images = summary.manifest.samples.total
    return Run(
        workers=workers,
        images=images,
        whole_per_s=images / seconds,
        steady_per_s=recorder.steady_per_s(),
        worker_peak_mb=memory.stop() / 1e6,
        floor_per_s=floor_per_s,
    )


def startup_s(repeats: int) -> float:
    """Median wall time of ``dataprep --help``, files warm."""
    times = []
    for _ in range(repeats + 1):
        started_s = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "dataprep", "--help"], check=True, stdout=subprocess.DEVNULL
        )
        times.append(time.perf_counter() - started_s)
    return statistics.median(times[1:])


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, help="class folders; drawn images without it")
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--shard-size", default="64MiB")
    parser.add_argument("--json", type=Path, help="write the raw runs here")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(dir=".") as folder:
        work = Path(folder)
        if options.source is None:
            from dataprep.sample import draw_tree

            options.source = draw_tree(work / "drawn", images=600, classes=20).root
        repeated(options.source, work / "source", options.images)
        runs = [
            one_run(work / "source", work / "output", workers, options.size, options.shard_size)
            for _ in range(options.repeats)
            for workers in (1, 2)
        ]
    help_s = startup_s(5)
    if options.json:
        raw = {"startup_s": help_s, "runs": [asdict(run) for run in runs]}
        options.json.write_text(json.dumps(raw, indent=1) + "\n")
    _print(runs, help_s, options.size)


def _print(runs: list[Run], help_s: float, size: int) -> None:
    lines = [
        f"{runs[0].images:,} images, short side {size}, q95, TFRecord and RecordIO; "
        f"{platform.machine()}, {os.cpu_count()} processors; medians of "
        f"{len(runs) // 2} runs each, alternating",
        "",
        "| workers | img/s steady | with start-up | codec floor | steady / floor | worker's peak |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for workers in (1, 2):
        own = [run for run in runs if run.workers == workers]
        steady, whole, peak = (
            statistics.median(getattr(run, name) for run in own)
            for name in ("steady_per_s", "whole_per_s", "worker_peak_mb")
        )
        floor = statistics.median(run.floor_per_s for run in own)
        ratio = statistics.median(run.steady_per_s / run.floor_per_s for run in own)
        lines.append(
            f"| {workers} | {steady:,.0f} | {whole:,.0f} | {floor:,.0f} | {ratio:.2f} "
            f"| {peak:,.0f} MB |"
        )
    lines += ["", f"`dataprep --help`: {help_s:.2f} s"]
    print("\n".join(lines))  # noqa: T201


if __name__ == "__main__":
    main()
