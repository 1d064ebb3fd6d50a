"""Targets: an output of two shards of which one file is hostile, or another's, at each stage.

An input is as in ``outputs``; how far the job is follows from its bytes.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
from PIL import Image

import dataprep
from dataprep.cli import app as dataprep_app
from tests.reliability.hostile import mutations as m
from tests.reliability.hostile.fuzz import Target
from tests.reliability.hostile.outputs import command, of_key

_ROOT = Path(tempfile.mkdtemp(prefix="hostile-", dir="/dev/shm"))
_OUT, _SOURCE = _ROOT / "output", _ROOT / "source"
_SHARD = "-00001-of-00002"
_STAGES: Sequence[Callable[[str], bool]] = (
    lambda key: False,
    lambda key: key == "train.manifest.json",
    lambda key: key in ("train.manifest.json", "train.samples.parquet"),
    lambda key: key.startswith(("train.manifest", "train.samples")) or _SHARD in key,
    lambda key: key.startswith(("train.manifest", "train.samples", "receipts/")),
)
"""What is not there yet: nothing, the manifest, the table, the second shard, all receipts."""


@cache
def sound() -> Mapping[str, bytes]:
    """A finished output, by key."""
    for number in range(14):
        path = _SOURCE / f"class{number % 2}" / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_noise(number))
    _shard()
    found = {
        os.fspath(path.relative_to(_OUT)): path.read_bytes()
        for path in sorted(_OUT.rglob("*"))
        if path.is_file()
    }
    assert any(_SHARD in key for key in found), sorted(found)
    return found


def _noise(number: int) -> bytes:
    """Of a size, so that there are two shards of the smallest size."""
    pixels = np.random.default_rng(number).integers(0, 256, (384, 384, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=98)
    return buffer.getvalue()


def _shard(*more: str) -> int:
    told = ("--source", os.fspath(_SOURCE), "--output", os.fspath(_OUT), "--shard-size", "1MB")
    return command("shard", *told, "--workers", "1", *more, app=dataprep_app)


def seeds() -> Sequence[bytes]:
    """Each small file as it is, and what may stand where the job puts leases."""
    small = {key: data for key, data in sound().items() if len(data) < 2**16}
    small["labels.json"] = sound()["labels.json"]
    found = [key.encode() + b"\n" + data for key, data in small.items()]
    more = {".partial/leases/train": b"split 'train'", "train.retried.json": b'{"schema": 1}'}
    return [*found, *(key.encode() + b"\n" + data for key, data in more.items())]


def changed(data: bytes, rng: Random) -> bytes:
    """Hostile content, or that of another file of this output; a large one is cut."""
    kind = rng.randrange(8)
    if kind > 2:
        return of_key(data, rng).removeprefix(b"=")
    name = data.partition(b"\n")[0]
    if kind == 0:
        other = rng.choice(sorted(sound()))
        return name + b"\n" + sound()[other]
    key = rng.choice(sorted(sound()))
    content = sound()[key]
    return key.encode() + b"\n" + m.bytes_at_random(content[: rng.choice((0, 9, 4096))], rng)


def lay_out(data: bytes) -> None:
    """The output as far as it is, with one file replaced."""
    name, _, content = data.partition(b"\n")
    key = name.decode("utf-8", "replace")
    stage = _STAGES[hashlib.sha256(data).digest()[0] % len(_STAGES)]
    files = {key: data for key, data in sound().items() if not stage(key)}
    if key in sound() or key in (".partial/leases/train", "train.retried.json"):
        files[key] = content
    shutil.rmtree(_OUT, ignore_errors=True)
    for other, found in files.items():
        path = _OUT / other
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(found)


def by_command(*arguments: str) -> Callable[[bytes], None]:
    """``dataprep ARGUMENTS``; ``OUT`` stands for the output."""

    def read(data: bytes) -> None:
        lay_out(data)
        command(*[os.fspath(_OUT) if part == "OUT" else part for part in arguments])

    return read


def sharded(*more: str) -> Callable[[bytes], None]:
    """``dataprep shard`` again; what it says is done can be read, and has nothing of another."""

    def read(data: bytes) -> None:
        lay_out(data)
        _shard(*more)
        if not more:
            _looked_into()

    return read


def made_anew(data: bytes) -> None:
    """``--overwrite``: whatever was there, the bytes are the undisturbed run's."""
    lay_out(data)
    _shard("--overwrite")
    for key, content in sound().items():
        if key.startswith(("tfrecord/", "index/", "labels")) or key.endswith("plan.parquet"):
            assert (_OUT / key).read_bytes() == content, f"{key} is another"


def opened(data: bytes) -> None:
    """By the library."""
    lay_out(data)
    _looked_into()


def _looked_into() -> None:
    with dataprep.open(_OUT) as found:
        assert len(found.labels) == len(found)
        for number in range(len(found)):
            assert found[number].image
        assert len(found.label_space.labels)


def targets() -> list[Target]:
    """All of them."""
    mutate = m.stacked(changed)
    place = r"failed, --max-failures|output|\.json|\.parquet|tfrecord/|index/"

    def target(name: str, read: Callable[[bytes], None], cost: int) -> Target:
        told = f"unfinished: {name}"
        return Target(told, "unfinished", seeds, mutate, read, ("dataprep/",), place, cost=cost)

    return [
        target("library", opened, 20),
        target("verify", by_command("verify", "OUT"), 30),
        target("verify --deep", by_command("verify", "OUT", "--deep"), 30),
        target("inspect", by_command("inspect", "OUT"), 20),
        target("finalize", by_command("finalize", "OUT", "--split", "train"), 30),
        target("shard", sharded(), 60),
        target("shard --part", sharded("--part", "1/2"), 60),
        target("shard --retry-failed", sharded("--retry-failed"), 60),
        target("shard --overwrite", made_anew, 60),
    ]
