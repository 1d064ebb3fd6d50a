"""The memory of a job's workers over many small images."""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import psutil

import dataprep
from benchmarks.contest import Contender, Contest, Measured
from benchmarks.workplace import Workplace

IMAGES = 100_000
_DRAWN = 100
_WORKERS = 2
_EVERY_S = 0.1


def contests(place: Workplace) -> Iterator[Contest]:
    """Workers over 100,000 images."""
    arguments = {"work": str(place.root), "images": IMAGES}
    yield Contest(
        name="memory",
        title=f"Memory of workers over {IMAGES:,} small images",
        unit="img",
        cores=_WORKERS,
        repeats=1,
        contenders=(Contender("dataprep shard", f"{__name__}:workers", arguments),),
        notes=("The resident size of the larger worker: medians of thirds of the job.",),
    )


def workers(work: str, images: int) -> Measured:
    """``dataprep.shard`` with 2 worker processes over drawn images, in many small shards."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        place = Workplace(Path(folder), _small(Path(folder) / "drawn"), images)
        content = {
            "source": str(place.repeated()),
            "output": f"{folder}/output",
            "image": {"size": 32},
            "shard_size": "2MB",
            "dask": {"workers": _WORKERS, "processes": True},
        }
        sizes: list[int] = []
        over = threading.Event()
        watch = threading.Thread(target=_watch, args=(sizes, over))
        started_s = time.perf_counter()
        watch.start()
        try:
            dataprep.shard(dataprep.ShardConfig.model_validate(content))
        finally:
            over.set()
            watch.join()
        seconds = time.perf_counter() - started_s
    return Measured(images, seconds, {**thirds(sizes), "worker_peak_MB": max(sizes) / 1e6})


def thirds(sizes: Sequence[int]) -> dict[str, float]:
    """The median of the last third of some sizes in bytes, and divided by that of the middle."""
    third = len(sizes) // 3
    middle = statistics.median(sizes[third : 2 * third])
    last = statistics.median(sizes[2 * third :])
    return {"last_third_to_middle_third": last / middle, "last_third_MB": last / 1e6}


def _watch(sizes: list[int], over: threading.Event) -> None:
    """Note the largest resident size of this process's children, ten times a second."""
    while not over.wait(_EVERY_S):
        found = []
        for child in psutil.Process().children(recursive=True):
            try:
                found.append(child.memory_info().rss)
            except psutil.Error:  # it has ended
                continue
        sizes.append(max(found, default=0))


def _small(folder: Path) -> Path:
    """A few drawn images of 48 x 36 pixels in class folders."""
    from PIL import Image

    chance = np.random.default_rng(0)
    for number in range(_DRAWN):
        path = folder / f"class{number % 10}" / f"{number}.JPEG"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(chance.integers(0, 256, (36, 48, 3), np.uint8)).save(path, "JPEG")
    return folder
