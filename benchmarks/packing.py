"""Packing only: images that need no conversion into shards, beside copying the same files.

The page cache holds the sources of both; what both write goes to the same disk, and both end
with ``sync``.
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
from benchmarks.workplace import Workplace, photographs
from dataprep.image import ImagePolicy, convert

SIZE = 256
COPY = "cp -r and sync"
STEADY = "steady_MB_per_s"
_TIMES = 3
_WORKERS = 2
_MB = 1e6


def contests(workplace: Workplace) -> Iterator[Contest]:
    """``dataprep shard`` with nothing to convert beside ``cp -r`` and ``sync``."""
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
            "MB/s are those of the whole command, its start and its plan included; steady is "
            "what a larger job comes to: shards stored after each worker's first, by the times "
            "of their receipts. The sources are in the page cache.",
        ),
    )


def packed(workplace: Workplace, images: int) -> Path:
    """Class folders of so many images of the target size: hard links to a thousand at most."""
    folder = workplace.root / f"small-{images}"
    if folder.exists():
        return folder
    policy = ImagePolicy(size=SIZE)
    small = []
    for path in photographs(workplace.photos)[: min(images, 1_000)]:
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
    """The command: one format, two workers, defaults but for what ``check`` says; then ``sync``."""
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
    """``cp -r``, then ``sync``.

    Copies of before are emptied, not removed: ext4 gives an inode that was freed seconds ago to
    no new file, and searching for others slows ``cp`` to a third.
    """
    amount = _warm(files)
    output = tempfile.mkdtemp(prefix="copy-", dir=outputs)
    os.sync()
    started_s = time.perf_counter()
    subprocess.run(["cp", "-r", files, output], check=True)
    os.sync()
    seconds = time.perf_counter() - started_s
    for path in photographs(Path(output)):
        os.truncate(path, 0)
    return Measured(amount, seconds, {STEADY: amount / seconds})


def _warm(files: str) -> float:
    """Read all files, so that the page cache has them; their MB."""
    return sum(len(path.read_bytes()) for path in photographs(Path(files))) / _MB


def _steady(output: Path) -> float | None:
    """MB of shards a second from each worker's first receipt to the last; None for too few."""
    keys = []
    for receipt in (output / "receipts").rglob("*.json"):
        shards = (output / "tfrecord").glob(f"{receipt.stem}*")
        keys.append((receipt.stat().st_mtime, sum(path.stat().st_size for path in shards)))
    keys.sort()
    if len(keys) < 2 * _WORKERS + 1:
        return None
    after = keys[_WORKERS - 1 :]
    return sum(size for _, size in after[1:]) / _MB / (after[-1][0] - after[0][0])
