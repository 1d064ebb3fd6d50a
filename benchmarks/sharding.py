"""How fast ``dataprep shard`` is beside a bare loop, with few shards, and with many workers.

    python benchmarks/sharding.py phase PHOTOS [--im2rec PYTHON] [--rounds 5]
    python benchmarks/sharding.py few PHOTOS [--rounds 5]
    python benchmarks/sharding.py simulated PHOTOS
    python benchmarks/sharding.py cluster PHOTOS

``PHOTOS`` holds class folders of JPEG files; the published figures are of 12,000: 12 renamed
copies of 1,000 ImageNet photos. ``phase`` runs ``bare_loop.py`` and a job in turn (2 workers, 256
px, quality 95, both formats). The shard phase lasts from the job file, when all is planned and
the workers are there, to the last receipt; the command from its start to its end. With
``--im2rec``, the Python of an environment with MXNet, its ``im2rec.py`` runs in turn as well,
beside a job that writes RecordIO alone. ``few`` makes one shard of 1,600 photos with 1 and with 2
workers. ``simulated`` makes 33 shards on 64 workers of this process that sleep 50 ms a photo,
``cluster`` 2,000 shards on 200 workers that sleep 10 s a shard.
``busy`` is the share of their time that they spend in conversion, ``asleep`` the same without
waiting for the interpreter, which they share here. Sleeps vary by 5 % around these.
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
WORKERS = 2


@contextmanager
def output() -> Iterator[str]:
    """A folder for one run, removed and synced away before the next one begins."""
    folder = tempfile.mkdtemp(prefix="sharding-", dir=os.environ.get("TMPDIR"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
        os.sync()


def bare_loop(photos: str, workers: int = WORKERS) -> float:
    """Seconds of the loop without guarantees."""
    with output() as folder:
        program = [sys.executable, str(HERE / "bare_loop.py"), photos]
        done = subprocess.run(
            [*program, "--workers", str(workers), "--output", folder],
            check=True,
            capture_output=True,
        )
    return float(json.loads(done.stdout)["seconds"])


def job(
    photos: str,
    formats: list[str],
    workers: int = WORKERS,
    shard_size: str = "64MiB",
    size: int = 256,
) -> dict[str, float]:
    """Seconds of the whole command, and of its shard phase by the times of its files."""
    with output() as folder:
        finished_output = Path(folder, "out")
        program = [sys.executable, "-m", "dataprep", "shard"]
        options = [f"--source={photos}", f"--output={finished_output}", f"--size={size}"]
        options += [f"--workers={workers}"]
        options += [f"--shard-size={shard_size}", *[f"--format={name}" for name in formats]]
        started_s = time.perf_counter()
        subprocess.run([*program, *options], check=True, capture_output=True)
        seconds = time.perf_counter() - started_s
        stored_s = max(path.stat().st_mtime for path in (finished_output / "receipts").iterdir())
        return {
            "command": seconds,
            "phase": stored_s - (finished_output / "train.job.json").stat().st_mtime,
        }


_IM2REC = """
import runpy, sys
from pathlib import Path
from dataprep.reading.mxnet_compat import import_mxnet  # gives NumPy the names that MXNet misses

tool = Path(import_mxnet().__file__).parent / "tools" / "im2rec.py"
sys.argv[0] = str(tool)
runpy.run_path(str(tool), run_name="__main__")
"""


def im2rec(photos: str, python: str) -> float:
    """Seconds of MXNet's script: its list, then packing with as many processes."""
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
    """The bare loop, a job in both formats and, with MXNet, RecordIO alone and im2rec.py."""
    both = ["tfrecord", "recordio"]
    contenders: dict[str, Callable[[], float | dict[str, float]]] = {
        "bare loop": lambda: bare_loop(photos),
        "both formats": lambda: job(photos, both),
    }
    if python:
        contenders["recordio"] = lambda: job(photos, ["recordio"])
        contenders["im2rec.py"] = lambda: im2rec(photos, python)
    runs: dict[str, list[Any]] = {name: [] for name in contenders}
    for number in range(rounds):
        for name, run in contenders.items():
            runs[name].append(run())
            print(number, name, runs[name][-1], file=sys.stderr)
    bare = runs["bare loop"]
    ours = runs["both formats"]
    figures = {
        "bare loop, s": statistics.median(bare),
        "shard phase beside the bare loop": ratio(bare, [times["phase"] for times in ours]),
        "whole command, s": statistics.median(times["command"] for times in ours),
        "target of the whole command, s": statistics.median(bare) / 0.95 + 2.5,
    }
    if python:
        peer = runs["im2rec.py"]
        figures["im2rec.py, s"] = statistics.median(peer)
        figures["whole command beside im2rec.py"] = ratio(
            peer, [times["command"] for times in ours]
        )
        alone = [times["command"] for times in runs["recordio"]]
        figures["RecordIO alone beside im2rec.py"] = ratio(peer, alone)
    print(json.dumps(figures, indent=1))


def few(photos: str, rounds: int) -> None:
    """One shard of 1,600 photos: 2 workers beside 1, after start-up."""
    with output() as source:
        for path in sorted(Path(photos).rglob("*.JPEG"))[:1600]:
            target = Path(source, path.parent.name, path.name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        ratios = []
        for _ in range(rounds):
            one, two = (
                job(source, ["tfrecord", "recordio"], workers, shard_size="100MB")["phase"]
                for workers in (1, 2)
            )
            print(one, two, file=sys.stderr)
            ratios.append(one / two)
    print(json.dumps({"2 workers beside 1": statistics.median(ratios)}))


_PERIODS = ("admin.tick.interval", "admin.system-monitor.interval")
"""Of what every Dask worker does beside its tasks: 64 of them would keep two cores busy."""


def simulated(
    photos: str, workers: int, shards: int, images: int, sleep_s: float, size: int | None = None
) -> None:
    """Conversion seconds / (workers x seconds from first to last); ``sleep_s`` for each image."""
    import dask
    from distributed import LocalCluster

    import dataprep
    from dataprep.job import conversion
    from dataprep.job.report import Display

    data = next(Path(photos).rglob("*.JPEG")).read_bytes()
    converted = dataprep.convert(data, dataprep.ImagePolicy(size=size))
    spans: list[tuple[float, float]] = []

    def slow(*_: object, **__: object) -> dataprep.Converted:
        started_s = time.perf_counter()
        time.sleep(sleep_s * (0.95 + len(spans) % 11 / 100))  # or all would store at once
        spans.append((started_s, time.perf_counter()))
        return converted

    with output() as folder:
        first = Path(folder, "photos", "n0", "0.JPEG")
        first.parent.mkdir(parents=True)
        first.write_bytes(data[: len(data) // 20])
        for number in range(1, images):
            os.link(first, first.with_name(f"{number}.JPEG"))
        dask.config.set({"distributed.worker.profile.enabled": False})
        dask.config.set({f"distributed.{name}": "2s" for name in _PERIODS})
        cluster = LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=False,
            dashboard_address=None,
            memory_limit=0,  # they share this process's
        )
        with cluster:
            conversion.convert = slow  # type: ignore[attr-defined]
            config = {
                "source": str(Path(folder, "photos")),
                "output": f"{folder}/out",
                "format": ["tfrecord"],
                "image": {"size": size},
                "shard_size": images * (len(converted.data) + 300) * 101 // (100 * shards),
                "dask": {"scheduler": cluster.scheduler_address},
            }
            calibrated = threading.Event()

            class Ready(Display):
                def start(self, split: str, samples: int, done: int) -> None:
                    if not calibrated.is_set():
                        calibrated.set()
                        spans.clear()

            dataprep.shard(dataprep.ShardConfig.model_validate(config), display=Ready())
        receipts = len(list(Path(folder, "out", "receipts").iterdir()))
    seconds = max(end for _, end in spans) - min(start for start, _ in spans)
    busy = sum(end - start for start, end in spans) / (workers * seconds)
    asleep = sleep_s * len(spans) / (workers * seconds)
    print(json.dumps({"shards": receipts, "busy": busy, "asleep": asleep, "seconds": seconds}))


def ratio(reference: list[float], ours: list[float]) -> float:
    """Median of the ratios within rounds; above 1 we are faster."""
    return statistics.median(theirs / own for theirs, own in zip(reference, ours, strict=True))


def main() -> None:
    """Run what the command line names."""
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
