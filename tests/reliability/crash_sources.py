"""Jobs over every kind of source in which samples crash, hang, or have boxes.

The same images as class folders, tars, listings, shards of both formats, and through a source that
a program of somebody's own brings (``crashing/drawers.py``).
"""

from __future__ import annotations

import io
import os
import random
import signal
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow.parquet as pq

from tests.commandline import PATIENCE_S, Finished, Running, dataprep, objects, wait_until
from tests.installed import Package, pyproject
from tests.reliability.crash_jobs import (
    THREADS,
    Ended,
    Place,
    Reference,
    arguments,
    faults,
    run,
    run_until_alive,
    same_but_told,
)

KINDS = {
    "class folders": "imagefolder",
    "one tar": "ilsvrc",
    "a folder of tars": "ilsvrc",
    "a listing": "listing",
    "TFRecord shards": "records",
    "RecordIO shards": "records",
}
"""What a source is, and the kind that reads it."""

_PIPELINE = Path(__file__).with_name("crashing") / "drawers.py"


def as_source(place: Place, tree: Path, what: str) -> Path:
    """The same images as such a source."""
    made = place.new()
    match what:
        case "class folders":
            return tree
        case "one tar":
            made = made.with_suffix(".tar")
            _tar(made, tree, tree)
        case "a folder of tars":
            made.mkdir()
            for group in sorted(path for path in tree.iterdir() if path.is_dir()):
                _tar(made / f"{group.name}.tar", group, group)
        case "a listing":
            made = made.with_suffix(".csv")
            rows = [f"{path},{path.parent.name}\n" for path in sorted(tree.rglob("*.JPEG"))]
            made.write_text("path,label\n" + "".join(rows))
        case _:
            form = "tfrecord" if what.startswith("TFRecord") else "recordio"
            given = ("--source", str(tree), "--output", str(made), "--format", form)
            done = dataprep("shard", *given, *THREADS, env=place.environment(""))
            assert done.code == 0, done.err
    return made


def _tar(path: Path, folder: Path, root: Path) -> None:
    with tarfile.open(path, "w") as tar:
        for image in sorted(folder.rglob("*.JPEG")):
            tar.add(image, str(image.relative_to(root)))


def crash(
    place: Place, how: Mapping[str, str], options: Sequence[str], what: str, *more: str
) -> list[str]:
    """A job some of whose samples crash: what is wrong with what came out."""
    source = as_source(place, place.marked(how), what)
    more = ("--kind", KINDS[what], *more)
    output = place.new()
    expected = Reference(place).of(source, *more)
    ended = run(place, place.notes, *arguments(source, output, *options, *more))
    if wrong := badly(ended):
        return wrong
    return _compared(what, objects(output), expected, how)


def badly(ended: Ended) -> list[str]:
    """What is wrong with how a job ended that has to end well."""
    if ended.last.code != 0:
        return [f"ended with {ended.last.code}: {ended.last.err[-400:]}"]
    return [f"died {ended.deaths} times"] * (ended.deaths > 1)


def _compared(
    what: str, found: Mapping[str, bytes], expected: Mapping[str, bytes], how: Mapping[str, str]
) -> list[str]:
    if what.endswith("shards"):  # which name their samples by numbers
        return same_but_told(found, expected, len(how))
    return faults(found, expected, how)


def boxes(place: Place, how: Mapping[str, str], options: Sequence[str]) -> list[str]:
    """As ``crash``, of images that have boxes beside them; all but the failed ones keep theirs."""
    table = place.new().with_suffix(".csv")
    names = [Path(name).name for name in place.names]
    table.write_text("".join(f"{n},0.1,0.2,0.{5 + i % 5},0.9\n" for i, n in enumerate(names)))
    more = ("--boxes", str(table))
    source, output = place.marked(how), place.new()
    expected = Reference(place).of(source, *more)
    ended = run(place, place.notes, *arguments(source, output, *options, *more))
    if wrong := badly(ended):
        return wrong
    found = objects(output)
    rows = pq.read_table(io.BytesIO(found["train.samples.parquet"])).to_pylist()
    written = [row["boxes"] for row in rows if row["status"] == "written"]
    wrong = [] if written == [1] * (place.images - len(how)) else [f"boxes: {written}"]
    return wrong + faults(found, expected, how)


def hang(place: Place, name: str, what: str, options: Sequence[str], *more: str) -> list[str]:
    """A job one of whose samples never comes back, and fails: all others are stored."""
    how = {name: "hang"}
    source = as_source(place, place.marked(how), what)
    more = ("--kind", KINDS[what], "--set", "hung_samples=fail", *more)
    outputs = []
    for crashing in ("fail", place.notes):
        outputs.append(place.new())
        given = arguments(source, outputs[-1], *options, *more, "--set", "dask.sample_timeout_s=3")
        # Planned where nothing hangs: by threads of the program nobody is watched.
        with Running(*given, env=place.environment("")) as running:
            wait_until((outputs[-1] / "train.job.json").exists, "the job to begin")
            os.killpg(running.pid, signal.SIGKILL)
        done = dataprep(*given, env=place.environment(crashing))
        if done.code != 0:
            return [f"ended with {done.code}: {done.err[-400:]}"]
    expected, found = map(objects, outputs)
    return _compared(what, found, expected, how)


def pipeline(
    place: Place, chance: random.Random, reading: str, options: Mapping[str, str]
) -> list[str]:
    """A program of somebody's own with a source of its own, over samples that crash.

    ``reading`` is the fault at which another sample's file is read, by native code of that source.
    """
    crashing, unreadable = chance.sample(place.names, 2)
    how = {crashing: chance.choice(("SIGSEGV", "SIGABRT", "exit"))}
    source = place.marked(how)
    files = {
        "pyproject.toml": pyproject(
            "drawers", {"dataprep.sources": {"drawers": "__main__:Drawers"}}
        )
    }
    package = Package(place.new(), files).folder

    def once(output: Path, crashing: str, engine: Mapping[str, str]) -> Finished:
        env = place.environment(crashing)
        env["PYTHONPATH"] = f"{package}:{env['PYTHONPATH']}"
        env |= {"READING": f"{unreadable}={reading}", **engine}
        done = subprocess.run(
            [sys.executable, str(_PIPELINE), str(source), str(output)],
            capture_output=True,
            env={**os.environ, **env},
            timeout=PATIENCE_S,
            check=False,
        )
        return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())

    plain, output = place.new(), place.new()
    assert (done := once(plain, "fail", {"WORKERS": "0"})).code == 0, done.err
    ended = run_until_alive(lambda: once(output, place.notes, options))
    if wrong := badly(ended):
        return wrong
    told = {unreadable: f"crashed what reads it ({reading})"}
    return faults(objects(output), objects(plain), how, told)
