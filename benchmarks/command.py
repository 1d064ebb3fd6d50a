"""Whole commands: ``dataprep shard`` beside img2dataset.

``sharding.py`` has the bare loop and MXNet's im2rec.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import codec
from benchmarks.contest import Contender, Contest, Measured
from benchmarks.workplace import Workplace, photographs
from iobench.machine.processes import find_program

_WORKERS = 2
_PER_ARCHIVE = 1000


def contests(workplace: Workplace) -> Iterator[Contest]:
    """A long job."""
    many = {"source": str(workplace.repeated()), "work": str(workplace.root)}
    yield Contest(
        name="command",
        title=f"The whole command with {_WORKERS} workers, start included",
        unit="img",
        cores=_WORKERS,
        contenders=(
            Contender("dataprep shard", f"{__name__}:ours", many),
            Contender("img2dataset", f"{__name__}:img2dataset", many, needs=("img2dataset",)),
        ),
        notes=(
            "dataprep writes TFRecord and RecordIO, hashes every source and output file, and waits "
            "until they are on disk. img2dataset reads file:// addresses from a list that is made "
            "beforehand and writes WebDataset. Each was started once before.",
        ),
    )


def ours(source: str, work: str) -> Measured:
    """``python -m dataprep shard``, from start to exit."""
    images = len(photographs(Path(source)))
    _seconds([sys.executable, "-c", "import dataprep.job.cluster, distributed"])
    with tempfile.TemporaryDirectory(dir=work) as output:
        job = ["--source", source, "--output", output, "--size", str(codec.SIZE)]
        job += ["--format", "tfrecord", "--format", "recordio", "--workers", str(_WORKERS)]
        return Measured(images, _seconds([sys.executable, "-m", "dataprep", "shard", *job]))


def img2dataset(source: str, work: str) -> Measured:
    """img2dataset: short side 256 by area, quality 95, WebDataset, two processes."""
    files = photographs(Path(source))
    program = find_program("img2dataset") or "img2dataset"
    _seconds([program, "--help"])
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
        seconds = _seconds([program, *(f"--{name}={value}" for name, value in options.items())])
        stats = [json.loads(path.read_text()) for path in Path(output, "made").glob("*_stats.json")]
    done = sum(int(part["successes"]) for part in stats)
    if done != len(files):
        raise RuntimeError(f"{done:,} of {len(files):,} images were packed")
    return Measured(len(files), seconds)


def _seconds(command: Sequence[str]) -> float:
    """Wall time of a command, which must succeed."""
    quiet = {**os.environ, "NO_ALBUMENTATIONS_UPDATE": "1"}  # img2dataset's asks the network
    started_s = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True, env=quiet)
    return time.perf_counter() - started_s
