"""Compare packing of images that need no conversion with copying the same files.

Both read from the page cache and write to the same disk, and both end with ``sync``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.contest import Contender, Contest, Measured
from benchmarks.workplace import Workplace, files_below
from dataprep.image import ImagePolicy, convert

SIZE = 256
COPY = "cp -r and sync"
STEADY = "steady_MB_per_s"
_TIMES = 3
_WORKERS = 2
_MB = 1e6


def contests(workplace: Workplace) -> Iterator[Contest]:
    """Yield the contest of ``dataprep shard``, without conversion, and ``cp -r``."""
    files = packed(workplace, _TIMES * workplace.images)
    arguments = {"files": str(files), "outputs": str(workplace.root)}

    def contender(name: str, function: str, **more: str) -> Contender:
        return Contender(name, f"{__name__}:{function}", {**arguments, **more})

    yield Contest(
        name="packing",
        title="Packing only: JPEGs of the target size into TFRecord",
        unit="MB",
        contenders=(
            contender("dataprep shard, image.check: header", "shard", check="header"),
            contender(COPY, "copy"),
            contender("dataprep shard", "shard", check="decode"),
        ),
        cores=_WORKERS,
        notes=(
            "MB/s is the rate of the whole command, with its start and its plan. The steady rate "
            "predicts the rate of a larger job: it counts the shards after the first shard of "
            "each worker, by the times of their receipts. The sources are in the page cache.",
        ),
    )


def packed(workplace: Workplace, images: int) -> Path:
    """Make class folders with images of the target size, unless they exist.

    At most 1,000 images are made. Other files are hard links to them.
    """
    folder = workplace.root / f"small-{images}"
    if folder.exists():
        return folder
    policy = ImagePolicy(size=SIZE)
    small = []
    for path in files_below(workplace.photos)[: min(images, 1_000)]:
        target = folder / path.parent.name / f"{path.stem}_0.jpg"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(convert(path.read_bytes(), policy).data)
        small.append(target)
    for number in range(len(small), images):
        path = small[number % len(small)]
        stem = path.stem.removesuffix("_0")
        path.with_stem(f"{stem}_{number // len(small)}").hardlink_to(path)
    os.sync()
    return folder


def shard(files: str, outputs: str, check: str) -> Measured:
    """Run ``dataprep shard`` with one format and two workers, and then ``sync``.

    Args:
        files: class folders.
        outputs: the folder in which the output is made. It is removed at the end.
        check: the value of ``image.check``.
    """
    amount = _warm(files)
    output = Path(tempfile.mkdtemp(prefix="shards-", dir=outputs))
    command = [
        *(sys.executable, "-m", "dataprep", "shard"),
        *("--source", files, "--output", str(output), "--format", "tfrecord"),
        *("--set", f"image.size={SIZE}", "--set", f"image.check={check}"),
        *("--set", f"dask.workers={_WORKERS}"),
    ]
    os.sync()
    started_s = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.sync()
    seconds = time.perf_counter() - started_s
    steady = _steady(output) or amount / seconds
    shutil.rmtree(output)
    return Measured(amount, seconds, {STEADY: steady})


def copy(files: str, outputs: str) -> Measured:
    """Run ``cp -r``, and then ``sync``.

    The copies are emptied, and not removed. ext4 does not give an inode that was freed a few
    seconds ago to a new file. Searching for other inodes slows the next ``cp`` to a third.
    """
    amount = _warm(files)
    output = tempfile.mkdtemp(prefix="copy-", dir=outputs)
    os.sync()
    started_s = time.perf_counter()
    subprocess.run(["cp", "-r", files, output], check=True)
    os.sync()
    seconds = time.perf_counter() - started_s
    for path in files_below(Path(output)):
        os.truncate(path, 0)
    return Measured(amount, seconds, {STEADY: amount / seconds})


def _warm(files: str) -> float:
    """Read all files, so that they are in the page cache. Returns their size in MB."""
    return sum(len(path.read_bytes()) for path in files_below(Path(files))) / _MB


def _steady(output: Path) -> float | None:
    """Return the rate in MB/s after the first shard of each worker; None if there are few shards.

    The time is that from the receipt of the last worker's first shard to the last receipt.
    """
    shards = []
    for receipt in (output / "receipts").rglob("*.json"):
        paths = (output / "tfrecord").glob(f"{receipt.stem}*")
        shard_bytes = sum(path.stat().st_size for path in paths)
        shards.append((receipt.stat().st_mtime, shard_bytes))
    shards.sort()
    if len(shards) < 2 * _WORKERS + 1:
        return None
    begin_s, _ = shards[_WORKERS - 1]
    end_s, _ = shards[-1]
    steady_bytes = sum(shard_bytes for _, shard_bytes in shards[_WORKERS:])
    return steady_bytes / _MB / (end_s - begin_s)
