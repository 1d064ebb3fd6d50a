"""Targets: a whole output of which one file is hostile, by the command line and the library.

An input is a key, a line end and the content of that key. What holds checksums of it is written
anew where the key has a ``=`` before it, so that the readers behind them are reached.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from typer.testing import CliRunner

import dataprep
from dataprep.cli import app as dataprep_app
from dataprep.errors import DataprepError
from dataprep.job.jobfile import JobFile
from tests.reliability.hostile import mutations as m
from tests.reliability.hostile.fuzz import Target
from tests.reliability.hostile.records import _IO, _TF
from tests.reliability.hostile.tables import DATASETS, table_mutation

_ROOT = Path(tempfile.mkdtemp(prefix="hostile-", dir="/dev/shm"))
_OUT = _ROOT / "output"
_SOUND = {
    os.fspath(path.relative_to(DATASETS / "pipeline-4/folders/output")): path.read_bytes()
    for path in sorted((DATASETS / "pipeline-4/folders/output").rglob("*"))
    if path.is_file()
}


def seeds() -> Sequence[bytes]:
    """Each file as it is."""
    return [key.encode() + b"\n" + data for key, data in _SOUND.items()]


def of_key(data: bytes, rng: Random) -> bytes:
    """Hostile content of the kind that a key has."""
    key, _, content = data.partition(b"\n")
    name = key.removeprefix(b"=")
    if name.endswith(b".json"):
        content = m.json_tree(content, rng)
    elif name.endswith(b".parquet"):
        content = table_mutation(content, rng)
    elif name.startswith(b"tfrecord/"):
        content = _TF(content, rng)
    elif name.startswith(b"recordio/"):
        content = _IO(content, rng)
    else:
        content = m.cells(content, rng)
    sign = b"=" if rng.random() < 0.6 else b""
    return sign + name + b"\n" + content


def lay_out(data: bytes) -> str:
    """The output with one file of it replaced; its key."""
    name, _, content = data.partition(b"\n")
    key = name.decode("utf-8", "replace").removeprefix("=")
    files = {**_SOUND, key: content} if key in _SOUND else dict(_SOUND)
    if name.startswith(b"="):
        files = consistent(files)
    shutil.rmtree(_OUT, ignore_errors=True)
    for other, found in files.items():
        path = _OUT / other
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(found)
    return key


def consistent(files: dict[str, bytes]) -> dict[str, bytes]:
    """The same with every checksum and fingerprint of the train split right, as far as it goes."""
    try:
        job = json.loads(files["train.job.json"])
        job["plan_sha256"] = hashlib.sha256(files["train.plan.parquet"]).hexdigest()
        job["labels_sha256"] = hashlib.sha256(files["labels.json"]).hexdigest()
        told = {key: value for key, value in job.items() if key != "fingerprint"}
        told["calibration"] = tuple(tuple(point) for point in told["calibration"])
        job["fingerprint"] = JobFile(**told).fingerprint
        files = {**files, "train.job.json": json.dumps(job).encode()}
    except Exception:  # noqa: BLE001  it is hostile: left as it is
        return files
    for key in ("train.manifest.json", "receipts/train-00000-of-00001.json"):
        try:
            content = json.loads(files[key])
            content["fingerprint"] = job["fingerprint"]
            if key.startswith("receipts/"):
                for stored in content["formats"].values():
                    for file in (stored["file"], *stored["indexes"]):
                        file["bytes"] = len(files[file["key"]])
                        file["sha256"] = hashlib.sha256(files[file["key"]]).hexdigest()
            elif "table" in content:
                table = files["train.samples.parquet"]
                content["table"] = {
                    "bytes": len(table),
                    "sha256": hashlib.sha256(table).hexdigest(),
                }
            files = {**files, key: json.dumps(content, separators=(",", ":")).encode() + b"\n"}
        except Exception:  # noqa: BLE001
            continue
    return files


def command(*arguments: str, app: object = dataprep_app, codes: Sequence[int] = (0, 1, 2)) -> int:
    """A command line in this process: its exit code, one of ``codes``.

    Raises:
        DataprepError: what it said, where it did not end with 0.
        AssertionError: anything else than such an end in order.
    """
    done = CliRunner().invoke(app, list(arguments))  # type: ignore[arg-type]
    error = done.exception
    if error is not None and not isinstance(error, SystemExit):
        raise error
    assert done.exit_code in codes, done.exit_code
    assert "Traceback" not in done.output
    if done.exit_code:
        said = done.output.strip()
        assert said, "no word"
        raise DataprepError(said[-2000:])
    return done.exit_code


def by_command(*arguments: str, sees_records: bool = False) -> Callable[[bytes], None]:
    """``dataprep ARGUMENTS`` on an output; ``OUT`` stands for it."""

    def read(data: bytes) -> None:
        key = lay_out(data)
        told = [os.fspath(_OUT) if part == "OUT" else part for part in arguments]
        command(*told)
        records = key.startswith(("tfrecord/train-", "recordio/train-", "index/"))
        if sees_records and records and not data.startswith(b"="):
            assert (_OUT / key).read_bytes() == _SOUND[key], f"{key} is another, and nobody says so"

    return read


def by_library(data: bytes) -> None:
    """Opened, and every sample read; each refused sample has its place."""
    key = lay_out(data)
    # What a record or the table says of a label is verify's part, if its checksums are right.
    told = key.endswith(".json") and not data.startswith(b"=")
    for name in ("tfrecord", "recordio"):
        with dataprep.open(_OUT, format=name) as found:
            assert len(found.labels) == len(found)
            assert sum(1 for _ in found) == len(found)
            for number in range(len(found)):
                assert not told or found[number].label == int(found.labels[number])
            assert len(found.written) == len(found)
            assert len(found.label_space.labels)


def resharded(data: bytes) -> None:
    """As the source of another job."""
    lay_out(data)
    command(
        "plan",
        "--source",
        os.fspath(_OUT),
        "--kind",
        "records",
        "--output",
        os.fspath(_ROOT / "new"),
    )


def targets() -> list[Target]:
    """All of them."""
    own = ("dataprep/",)
    mutate = m.stacked(of_key)
    # A limit that is passed names its samples, and a question of the command line its option.
    place = r"failed, --max-failures|output|\.json|\.parquet|tfrecord/|recordio/|index/"

    def target(name: str, read: Callable[[bytes], None], cost: int) -> Target:
        return Target(name, "outputs", seeds, mutate, read, own, place, cost=cost)

    return [
        target("library", by_library, 15),
        target("verify", by_command("verify", "OUT", sees_records=True), 30),
        target("verify --deep", by_command("verify", "OUT", "--deep", sees_records=True), 30),
        target("verify --quick", by_command("verify", "OUT", "--quick"), 30),
        target("inspect", by_command("inspect", "OUT"), 15),
        target("inspect --record", by_command("inspect", "OUT", "--record", "1"), 15),
        target("finalize", by_command("finalize", "OUT", "--split", "train"), 20),
        target("plan of shards", resharded, 60),
    ]
