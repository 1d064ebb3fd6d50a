"""The whole job: ``dataprep shard`` beside the codec on as many cores, and other programs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import dataprep
from dataprep.image import ImagePolicy
from iobench.programs import required
from iobench.sidebyside import codec
from iobench.sidebyside.contest import Contender, Contest, Goal, Measured
from iobench.sidebyside.watched import Memory, Recorder, steady
from iobench.sidebyside.workplace import Workplace, photographs

FLOOR = "codec floor"
IM2REC = "MXNet im2rec.py"
IMG2DATASET = "img2dataset"
SMALL_JOB = 200
_WORKERS = 2
_FLOOR_IMAGES = 600
_FORMATS = ("tfrecord", "recordio")
_PER_ARCHIVE = 1000
_ENOUGH = 6000


def contests(place: Workplace) -> Iterator[Contest]:
    """The steady state, whole commands, and a job that is small."""
    photos = {"photos": str(place.photos)}
    many = {"source": str(place.repeated()), "work": str(place.root)}
    few = {"source": str(place.repeated(SMALL_JOB)), "work": str(place.root)}
    yield Contest(
        name="steady",
        title=f"{_WORKERS} workers in steady state, both formats",
        unit="img",
        cores=_WORKERS,
        contenders=(
            Contender("dataprep shard", f"{__name__}:ours_steady", many),
            Contender(FLOOR, f"{__name__}:floor", photos),
        ),
        goals=(
            Goal(0.85, FLOOR),
            Goal(0.85, FLOOR, "of_1_worker_per_s"),
            Goal(0.95, FLOOR, "times_1_worker"),
            Goal(500, figure="worker_peak_MB", bound="at most"),
        ),
        notes=(
            f"{FLOOR}: as many bare processes that decode images in full and encode them at their "
            "target size, all in memory, nothing between, nothing read or written. Steady: from "
            "the first report of progress until fewer shards are left than there are workers.",
        ),
    )
    yield Contest(
        name="command",
        title=f"The whole command with {_WORKERS} workers, start-up included",
        unit="img",
        cores=_WORKERS,
        contenders=(
            Contender("dataprep shard", f"{__name__}:ours_command", many),
            Contender(IM2REC, f"{__name__}:im2rec", many, needs=("mxnet", "cv2")),
            Contender(IMG2DATASET, f"{__name__}:img2dataset", many, needs=("img2dataset",)),
        ),
        goals=(Goal(1.25, IM2REC), Goal(2.5, IMG2DATASET)),
        notes=(
            "dataprep writes TFRecord and RecordIO, hashes every source and output file, and waits "
            "until they are on disk. im2rec.py makes its list and packs RecordIO, as dataprep "
            "lists its source. The libraries of each are in the page cache: it was started once "
            "before. img2dataset reads file:// addresses from a list that is made "
            "beforehand and writes WebDataset.",
        ),
    )
    yield Contest(
        name="small",
        title=f"A job of {SMALL_JOB} images",
        unit="img",
        cores=_WORKERS,
        contenders=(Contender("dataprep shard", f"{__name__}:ours_small", few),),
        goals=(Goal(1.5, figure="beyond_conversion_s", bound="at most"),),
        notes=(
            "Beyond conversion: the whole command, from start to exit, less half the time in which "
            "one warm process converts these images, as though both cores had done nothing else.",
        ),
    )


def ours_steady(source: str, work: str) -> Measured:
    """``dataprep.shard`` with 1 and with 2 worker processes, defaults otherwise."""
    alone, _ = _job(source, work, 1)
    together, peak_bytes = _job(source, work, _WORKERS)
    others = _scaling(alone, together) | {"worker_peak_MB": peak_bytes / 1e6}
    return Measured(together.amount, together.seconds, others)


def _job(source: str, work: str, workers: int) -> tuple[Measured, int]:
    """The steady state of one job, and the peak memory of a worker in bytes."""
    recorder = Recorder()
    with tempfile.TemporaryDirectory(dir=work) as output, Memory() as memory:
        content = {
            "source": source,
            "output": output,
            "format": list(_FORMATS),
            "image": {"size": codec.SIZE},
            "shard_size": shard_size(len(photographs(Path(source)))),
            "dask": {"workers": workers, "processes": True},
        }
        dataprep.shard(dataprep.ShardConfig.model_validate(content), display=recorder)
        receipts = (Path(output) / "receipts").iterdir()
        stored_s = [path.stat().st_mtime for path in receipts]
    return Measured(*steady(recorder.marks, stored_s, workers)), memory.peak_bytes


def shard_size(images: int) -> str:
    """PURE. The default, or less where that would leave workers without shards."""
    return "64MiB" if images >= _ENOUGH else "8MiB"


def floor(photos: str) -> Measured:
    """The codec alone in 1 and in 2 bare processes."""
    alone = _bare(photos, 1)
    together = _bare(photos, _WORKERS)
    return Measured(together.amount, together.seconds, _scaling(alone, together))


def _bare(photos: str, processes: int) -> Measured:
    context = get_context("spawn")
    barrier = context.Barrier(processes)
    with context.Pool(processes, _share, (barrier,)) as pool:
        shares = [(photos, part, processes) for part in range(processes)]
        rates = pool.starmap(_floor_share, shares, chunksize=1)
    return Measured(sum(rates), 1.0)


_barrier: Any = None


def _share(barrier: Any) -> None:
    global _barrier
    _barrier = barrier


def _floor_share(photos: str, part: int, processes: int) -> float:
    files = photographs(Path(photos))[: _FLOOR_IMAGES * processes]
    found = [path.read_bytes() for path in files[part::processes]]
    work = codec.codec_alone(found)
    for data in found[:20]:
        work(data)
    _barrier.wait()
    started_s = time.perf_counter()
    for data in found:
        work(data)
    return len(found) / (time.perf_counter() - started_s)


def _scaling(alone: Measured, together: Measured) -> dict[str, float]:
    return {"of_1_worker_per_s": alone.rate, "times_1_worker": together.rate / alone.rate}


def ours_command(source: str, work: str) -> Measured:
    """``python -m dataprep shard``, from start to exit."""
    images = len(photographs(Path(source)))
    _seconds([sys.executable, "-c", "import dataprep.job.cluster, distributed"])
    with tempfile.TemporaryDirectory(dir=work) as output:
        return Measured(images, _command_s(source, output))


def ours_small(source: str, work: str) -> Measured:
    """The same of few images, and what one warm process takes to convert them."""
    files = photographs(Path(source))
    found = [path.read_bytes() for path in files]
    policy = ImagePolicy(size=codec.SIZE)
    for data in found[:20]:
        dataprep.convert(data, policy)
    started_s = time.perf_counter()
    for data in found:
        dataprep.convert(data, policy)
    conversion_s = time.perf_counter() - started_s
    with tempfile.TemporaryDirectory(dir=work) as output:
        seconds = _command_s(source, output)
    beyond_s = seconds - conversion_s / _WORKERS
    others = {"conversion_in_one_process_s": conversion_s, "beyond_conversion_s": beyond_s}
    return Measured(len(found), seconds, others)


def _command_s(source: str, output: str) -> float:
    formats = [word for name in _FORMATS for word in ("--format", name)]
    job = ["--source", source, "--output", output, "--size", str(codec.SIZE), *formats]
    return _seconds([sys.executable, "-m", "dataprep", "shard", *job, "--workers", str(_WORKERS)])


_IM2REC = """
import runpy, sys
from pathlib import Path
from dataprep.adapters.mxnet_compat import import_mxnet

tool = Path(import_mxnet().__file__).parent / "tools" / "im2rec.py"
sys.argv[0] = str(tool)
runpy.run_path(str(tool), run_name="__main__")
"""
"""The tool as it is, after NumPy was given the names that MXNet misses."""
_IMPORTS = "import cv2; from dataprep.adapters.mxnet_compat import import_mxnet; import_mxnet()"


def im2rec(source: str, work: str) -> Measured:
    """MXNet's tool: short side 256, quality 95, two processes that encode and one that writes."""
    tool = [sys.executable, "-c", _IM2REC]
    packing = ["--resize", str(codec.SIZE), "--quality", str(codec.QUALITY)]
    images = len(photographs(Path(source)))
    _seconds([sys.executable, "-c", _IMPORTS])
    with tempfile.TemporaryDirectory(dir=work) as output:
        prefix = f"{output}/packed"
        listing_s = _seconds([*tool, prefix, source, "--list", "--recursive"])
        packing_s = _seconds([*tool, prefix, source, *packing, "--num-thread", str(_WORKERS)])
        _require(Path(f"{prefix}.idx").read_bytes().count(b"\n"), images)
    return Measured(images, listing_s + packing_s, {"listing_s": listing_s})


def img2dataset(source: str, work: str) -> Measured:
    """img2dataset: short side 256 by area, quality 95, WebDataset, two processes."""
    files = photographs(Path(source))
    _seconds([required("img2dataset"), "--help"])
    with tempfile.TemporaryDirectory(dir=work) as output:
        listed = Path(output) / "list.txt"
        listed.write_text("".join(f"{path.as_uri()}\n" for path in files))
        options = {
            "url_list": listed,
            "output_folder": f"{output}/made",
            "output_format": "webdataset",
            "image_size": codec.SIZE,
            "resize_mode": "keep_ratio",
            "encode_quality": codec.QUALITY,
            "processes_count": _WORKERS,
            "thread_count": 16,
            "number_sample_per_shard": min(_PER_ARCHIVE, len(files) // _WORKERS),
        }
        seconds = _seconds(
            [required("img2dataset"), *(f"--{name}={value}" for name, value in options.items())]
        )
        made = Path(output, "made").glob("*_stats.json")
        _require(sum(_successes(path) for path in made), len(files))
    return Measured(len(files), seconds)


def _successes(stats: Path) -> int:
    import json

    return int(json.loads(stats.read_text())["successes"])


def _require(done: int, images: int) -> None:
    if done != images:
        raise RuntimeError(f"{done:,} of {images:,} images were packed")


def _seconds(command: Sequence[str]) -> float:
    """Wall time of a command, which must succeed."""
    quiet = {**os.environ, "NO_ALBUMENTATIONS_UPDATE": "1"}  # img2dataset's asks the network
    started_s = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=quiet)
    seconds = time.perf_counter() - started_s
    if done.returncode:
        raise RuntimeError(f"{command[0]}: exit {done.returncode}: {done.stderr[-400:]}")
    return seconds
