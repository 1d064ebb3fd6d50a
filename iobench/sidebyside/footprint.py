"""What a job keeps in memory: its workers over many images, its driver over many more."""

from __future__ import annotations

import pickle
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import psutil

import dataprep
from dataprep.config import ShardConfig
from dataprep.job.in_process import InProcess
from dataprep.job.planning import Planned, planned
from dataprep.job.request import Request
from dataprep.job.worker import Outcome
from dataprep.labels.labelling import load_labelling
from dataprep.sources import Listing, Located
from dataprep.stores import StoreOptions
from iobench.sidebyside.contest import Contender, Contest, Goal, Measured
from iobench.sidebyside.watched import Memory, Recorder
from iobench.sidebyside.workplace import Workplace, photographs

MANY = 100_000
IMAGENET = 1_300_000
_CLASSES = 1000
_FLAT = 1.05
_DRAWN = 100
_WORKERS = 2


def contests(place: Workplace) -> Iterator[Contest]:
    """Workers over 100,000 images, a plan of 1.3 million, and its tasks handed out."""
    work, photos = str(place.root), str(place.photos)
    yield Contest(
        name="flat-workers",
        title=f"Memory of workers over {MANY:,} small images",
        unit="img",
        cores=_WORKERS,
        repeats=1,
        contenders=(
            Contender("dataprep shard", f"{__name__}:workers", {"work": work, "images": MANY}),
        ),
        goals=(Goal(_FLAT, figure="last_third_to_middle_third", bound="at most"),),
        notes=("The resident size of the larger worker: medians of thirds of the job.",),
    )
    samples = {"photos": photos, "samples": IMAGENET}
    yield Contest(
        name="plan",
        title=f"A plan of {IMAGENET:,} samples from a listing in memory",
        unit="sample",
        repeats=3,
        contenders=(Contender("dataprep", f"{__name__}:plan", samples),),
        goals=(Goal(20, figure="seconds", bound="at most"),),
        notes=("Labels, calibration by conversions, order, cuts, plan as Parquet, fingerprint.",),
    )
    yield Contest(
        name="flat-driver",
        title=f"Memory of the driver over {IMAGENET:,} samples",
        unit="sample",
        repeats=1,
        contenders=(Contender("dataprep", f"{__name__}:driver", samples),),
        goals=(Goal(_FLAT, figure="last_third_to_middle_third", bound="at most"),),
        notes=(
            "Every shard's task is built from the plan, pickled as for a worker, and let go. "
            "Receipts, which are read back when all shards are stored, are not in it.",
        ),
    )


def workers(work: str, images: int) -> Measured:
    """``dataprep.shard`` with 2 worker processes over small drawn images, in many small shards."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        place = Workplace(Path(folder), _small(Path(folder) / "drawn"), images)
        content = {
            "source": str(place.repeated()),
            "output": f"{folder}/output",
            "image": {"size": 32},
            "shard_size": "2MB",
            "dask": {"workers": _WORKERS, "processes": True},
        }
        recorder = Recorder()
        started_s = time.perf_counter()
        with Memory() as memory:
            dataprep.shard(ShardConfig.model_validate(content), display=recorder)
        seconds = time.perf_counter() - started_s
    working = recorder.marks[0][0], recorder.marks[-1][0]
    sizes = [size for at_s, size in memory.sizes if working[0] <= at_s <= working[1]]
    others = thirds(sizes) | {
        "MB_per_10000_images": _slope(sizes) * 1e4 / images,
        "worker_peak_MB": memory.peak_bytes / 1e6,
    }
    return Measured(images, seconds, others)


def thirds(sizes: Sequence[int]) -> dict[str, float]:
    """PURE. The median of the last third of some sizes in bytes to that of the middle one."""
    third = len(sizes) // 3
    middle = statistics.median(sizes[third : 2 * third])
    last = statistics.median(sizes[2 * third :])
    return {"last_third_to_middle_third": last / middle, "last_third_MB": last / 1e6}


def _slope(sizes: Sequence[int]) -> float:
    """MB that the later two thirds rise by, over as long as all of it; by least squares."""
    later = np.array(sizes[len(sizes) // 3 :]) / 1e6
    return float(np.polyfit(np.arange(len(later)), later, 1)[0]) * len(sizes)


def _small(folder: Path) -> Path:
    """A few drawn images of 48 x 36 pixels in class folders."""
    from PIL import Image

    chance = np.random.default_rng(0)
    for number in range(_DRAWN):
        path = folder / f"class{number % 10}" / f"{number}.JPEG"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(chance.integers(0, 256, (36, 48, 3), np.uint8)).save(path, "JPEG")
    return folder


class Listed:
    """A source whose listing is in memory, and every entry one of a few photographs."""

    concurrency = 1
    uri = "memory"

    def __init__(self, photos: Sequence[Path], samples: int) -> None:
        self._photos = photos
        self._samples = samples

    def list(self) -> Listing:
        """ImageNet's names and classes, with the sizes of the photographs in turn."""
        each = -(-self._samples // _CLASSES)
        names = [
            f"n{row // each:08}/n{row // each:08}_{row:08}.JPEG" for row in range(self._samples)
        ]
        found = np.array([path.stat().st_size for path in self._photos], np.int64)
        return Listing(
            names=names,
            sizes=np.resize(found, self._samples),
            classes=[name.partition("/")[0] for name in names],
        )

    def read(self, item: Located) -> bytes:
        """The photograph that this entry is."""
        row = int(item.name.rpartition("_")[2].partition(".")[0])
        return self._photos[row % len(self._photos)].read_bytes()


def _request(photos: str, samples: int) -> Request:
    content = {
        "source": "memory",
        "output": "memory://",
        "format": ["tfrecord", "recordio"],
        "image": {"size": 256},
    }
    config = ShardConfig.model_validate(content)
    source = Listed(photographs(Path(photos)), samples)
    labelling = load_labelling(config.labels, StoreOptions())
    return Request(config, (config.split,), source, source.list(), labelling)


def _planned(request: Request) -> Planned:
    config, engine = request.config, InProcess(request.config.dask, lambda progress: None)

    def convert(items: Sequence[Located]) -> Iterator[Outcome]:
        return engine.outcomes(request.source, items, config.image, config.sample_limit)

    return planned(request, request.own_labels(), lambda line: None, convert)


def plan(photos: str, samples: int) -> Measured:
    """From a listing in memory to plan and job file as they are stored."""
    request = _request(photos, samples)
    started_s = time.perf_counter()
    made = _planned(request)
    seconds = time.perf_counter() - started_s
    shards = made.plans[request.config.split].shard_count
    peak = {"peak_MB": _own_peak_bytes() / 1e6, "shards": shards}
    return Measured(samples, seconds, peak)


def driver(photos: str, samples: int) -> Measured:
    """Every shard's items out of the plan of a whole job, pickled, one shard after the other."""
    request = _request(photos, samples)
    split_plan = _planned(request).plans["train"]
    process, sizes, done = psutil.Process(), [], 0
    started_s = time.perf_counter()
    for shard in range(split_plan.shard_count):
        items = split_plan.items(split_plan.rows_of(shard))
        done += len(pickle.loads(pickle.dumps(items)))  # noqa: S301
        sizes.append(process.memory_info().rss)
    return Measured(done, time.perf_counter() - started_s, thirds(sizes))


def _own_peak_bytes() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
