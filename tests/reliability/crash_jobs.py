"""Jobs over marked samples, and what is wrong with what comes out of them.

The faults are injected from outside, by ``tests/reliability/crashing``. What has to come out is
what the same job gives where the marked samples are images that cannot be decoded.
"""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from dataprep.sample import draw_tree
from tests.commandline import JOB, Finished, dataprep, objects, without_etags
from tests.reliability.rows import ROOT

FAULTS = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "exit")
_CRASHING = Path(__file__).with_name("crashing")
_RUNS = 4
"""The first may die, and the second isolates; any more would be a job that does not go on."""

_TOLD = ("crashed the decoder (", "took the decoder longer than")

THREADS = ("--set", "dask.processes=false", "--workers", "2")
_DASHBOARD = ("--set", "dask.dashboard=127.0.0.1:0")


def processes(workers: int) -> tuple[str, ...]:
    """Options of a job in so many worker processes."""
    return ("--set", "dask.processes=true", "--workers", str(workers), *_DASHBOARD)


@dataclass
class Place:
    """A folder to work in, with a drawn tree of which copies are marked."""

    root: Path
    images: int = 40
    _made: int = 0
    names: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        tree = draw_tree(self.root / "photos", images=self.images, classes=4, seed=3).root
        self.names = sorted(str(path.relative_to(tree)) for path in tree.rglob("*.JPEG"))

    def new(self) -> Path:
        """A folder that is not there yet."""
        self._made += 1
        return self.root / f"{self._made:04}"

    def marked(self, how: Mapping[str, str]) -> Path:
        """A copy of the tree, in which each of these files does as it says."""
        copy = self.new()
        shutil.copytree(self.root / "photos", copy, copy_function=os.link)
        for name, what in how.items():
            data = (copy / name).read_bytes()
            (copy / name).unlink()
            (copy / name).write_bytes(data + f"@@{what}@@".encode())
        return copy

    def environment(self, crashing: str) -> dict[str, str]:
        """That of a command: ``crashing`` is as ``crashing/sitecustomize.py`` has it, or empty."""
        return {
            "PYTHONPATH": f"{_CRASHING}:{ROOT}",
            "CRASHING": crashing,
            "XDG_CACHE_HOME": str(self.root / "cache"),
        }

    @property
    def notes(self) -> str:
        """Where faults that happen once are noted."""
        folder = self.root / "notes"
        folder.mkdir(exist_ok=True)
        return str(folder)


@dataclass(frozen=True)
class Ended:
    """How a job ended: its last run, and how often one before it died."""

    last: Finished
    deaths: int


def arguments(source: Path, output: str | Path, *more: str) -> tuple[str, ...]:
    """Of a job in both formats, a few shards, which any number of samples may fail."""
    place = ("--source", str(source), "--output", str(output))
    return ("shard", *place, *JOB, "--max-failures", "60", *more)


def run(place: Place, crashing: str, *given: str) -> Ended:
    """Run the same command until it does not die."""
    return run_until_alive(lambda: dataprep(*given, env=place.environment(crashing)))


def run_until_alive(once: Callable[[], Finished]) -> Ended:
    """Run it until it does not die."""
    for deaths in range(_RUNS):
        done = once()
        if done.code >= 0 and not (done.code == 1 and not done.complaints):
            return Ended(done, deaths)
    return Ended(done, _RUNS)


def faults(
    found: Mapping[str, bytes],
    expected: Mapping[str, bytes],
    how: Mapping[str, str],
    told: Mapping[str, str] | None = None,
) -> list[str]:
    """In what an output differs from the expected one, reasons of failed samples aside.

    Those have to be what ``how`` makes of each sample; ``told`` are further ones.
    """
    if found.keys() != expected.keys():
        return [f"other objects: {sorted(found.keys() ^ expected.keys())[:4]}"]
    wrong = []
    for key, data in found.items():
        if key.endswith(".manifest.json"):
            if _counts(data) != _counts(expected[key]):
                wrong.append(f"{key}: other counts")
        elif key.startswith("receipts/"):
            if _plain(without_etags(data)) != _plain(without_etags(expected[key])):
                wrong.append(f"{key}: other samples")
        elif not key.endswith(".samples.parquet") and data != expected[key]:
            wrong.append(f"{key}: other bytes")
    return wrong + untold(found["train.samples.parquet"], how, told or {})


def stopped_for_memory(
    place: Place, ended: Ended, name: str, given: Sequence[str], source: Path, output: Path
) -> list[str]:
    """What is wrong with a job killed over one sample, and run again with memory enough."""
    complaint = " ".join(ended.last.complaints)
    wrong = []
    if ended.last.code != 1 or name not in complaint or "memory" not in complaint:
        wrong.append(f"ended with {ended.last.code}: {ended.last.err[-400:]}")
    done = dataprep(*given, env=place.environment(""))
    if done.code != 0:
        return [*wrong, f"did not go on: {done.err[-400:]}"]
    plain = dataprep(*arguments(source, other := place.new(), *THREADS), env=place.environment(""))
    assert plain.code == 0, plain.err
    return wrong + faults(objects(output), objects(other), {})


def _counts(manifest: bytes) -> Any:
    content = json.loads(manifest)
    return content["samples"], content["formats"]


def _plain(receipt: dict[str, Any]) -> dict[str, Any]:
    samples = {k: v for k, v in receipt["samples"].items() if k not in ("reason", "kind")}
    return {**receipt, "samples": samples}


def untold(
    table: bytes, how: Mapping[str, str], further: Mapping[str, str] | None = None
) -> list[str]:
    """Samples whose row does not say what became of them; ``further`` are reasons as they stand."""
    rows = pq.read_table(io.BytesIO(table)).to_pylist()
    told = {Path(row["source"]).name: row["reason"] for row in rows if row["status"] == "failed"}
    expected = {Path(name).name: reason for name, reason in (further or {}).items()} | {
        Path(name).name: "crashed the decoder ({})".format(
            "exit code 1" if what == "exit" else what
        )
        for name, what in how.items()
        if what in FAULTS
    }
    hung = {Path(name).name for name, what in how.items() if what == "hang"}
    for name in hung & told.keys():
        if told.pop(name).startswith("took the decoder longer than"):
            hung.remove(name)
    return [f"told {told}, not {expected}"] * (told != expected) + [f"not hung: {hung}"] * bool(
        hung
    )


class Reference:
    """What a job gives where nothing dies."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def of(self, source: Path, *more: str) -> Mapping[str, bytes]:
        """Every object of it."""
        output = self._place.new()
        done = dataprep(
            *arguments(source, output, *THREADS, *more), env=self._place.environment("fail")
        )
        assert done.code == 0, done.err
        return objects(output)


def same_but_told(
    found: Mapping[str, bytes], expected: Mapping[str, bytes], failures: int
) -> list[str]:
    """``faults``, where samples have other names than their files: so many have to fail."""
    wrong = [line for line in faults(found, expected, {}) if not line.startswith("told ")]
    rows = pq.read_table(io.BytesIO(found["train.samples.parquet"])).to_pylist()
    told = [row["reason"] for row in rows if row["status"] == "failed"]
    if len(told) != failures:
        wrong.append(f"{len(told)} failed, not {failures}")
    return wrong + [reason for reason in told if not reason.startswith(_TOLD)]
