"""Compare the whole command ``dataprep shard`` with img2dataset.

``sharding.py`` compares it with a bare loop and with MXNet's im2rec.py.
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
from benchmarks.workplace import Workplace, files_below
from iobench.machine.processes import find_program

_WORKERS = 2
_IMAGES_PER_ARCHIVE = 1000


def contests(workplace: Workplace) -> Iterator[Contest]:
    """Yield the contest of whole jobs."""
    arguments = {"source": str(workplace.repeated()), "work": str(workplace.root)}
    yield Contest(
        name="command",
        title=f"The whole command with {_WORKERS} workers, start included",
        unit="img",
        cores=_WORKERS,
        contenders=(
            Contender("dataprep shard", f"{__name__}:ours", arguments),
            Contender("img2dataset", f"{__name__}:img2dataset", arguments, needs=("img2dataset",)),
        ),
        notes=(
            "dataprep writes TFRecord and RecordIO, hashes every source and output file, and waits "
            "until they are on disk. img2dataset writes WebDataset. It reads file:// addresses "
            "from a list that is made beforehand. Each program was started once before.",
        ),
    )


def ours(source: str, work: str) -> Measured:
    """Run ``python -m dataprep shard``, and measure it from its start to its exit."""
    images = len(files_below(Path(source)))
    _seconds([sys.executable, "-c", "import dataprep.job.cluster, distributed"])
    with tempfile.TemporaryDirectory(dir=work) as output:
        job = ["--source", source, "--output", output, "--size", str(codec.SIZE)]
        job += ["--format", "tfrecord", "--format", "recordio", "--workers", str(_WORKERS)]
        return Measured(images, _seconds([sys.executable, "-m", "dataprep", "shard", *job]))


def img2dataset(source: str, work: str) -> Measured:
    """Run img2dataset with two processes.

    It resizes to a short side of 256 pixels by area, encodes at quality 95 and writes WebDataset.

    Raises:
        RuntimeError: not all images were packed.
    """
    files = files_below(Path(source))
    program = find_program("img2dataset") or "img2dataset"
    _seconds([program, "--help"])
    with tempfile.TemporaryDirectory(dir=work) as output:
        url_list = Path(output) / "list.txt"
        url_list.write_text("".join(f"{path.as_uri()}\n" for path in files))
        options = {
            "url_list": url_list,
            "output_folder": f"{output}/made",
            "output_format": "webdataset",
            "image_size": codec.SIZE,
            "resize_mode": "keep_ratio",
            "encode_quality": codec.QUALITY,
            "processes_count": _WORKERS,
            "thread_count": 16,
            "number_sample_per_shard": min(_IMAGES_PER_ARCHIVE, len(files) // _WORKERS),
        }
        arguments = [f"--{name}={value}" for name, value in options.items()]
        seconds = _seconds([program, *arguments])
        done = 0
        for path in Path(output, "made").glob("*_stats.json"):
            statistics = json.loads(path.read_text())
            done += int(statistics["successes"])
    if done != len(files):
        raise RuntimeError(f"{done:,} of {len(files):,} images were packed")
    return Measured(len(files), seconds)


def _seconds(command: Sequence[str]) -> float:
    """Run a command, which must succeed, and return its wall time."""
    # A library of img2dataset would look for a new version on the network.
    environment = {**os.environ, "NO_ALBUMENTATIONS_UPDATE": "1"}
    started_s = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True, env=environment)
    return time.perf_counter() - started_s
