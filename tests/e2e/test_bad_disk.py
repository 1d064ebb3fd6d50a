"""A full disk, a removed folder or a low limit is one error line, and the job can be resumed."""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import commandline
from tests.changing import draw
from tests.commandline import Finished, command, comparable, files, objects
from tests.e2e.conftest import Gate

pytestmark = pytest.mark.slow

JOB = ("--shard-size", "1MB", "--workers", "1", "--set", "dask.processes=false")
# While a job waits at the gate, it then stores no other shard.
ONE_AT_A_TIME = ("--set", "dask.max_concurrent_uploads=1")


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images for two shards. Read only."""
    return draw(tmp_path_factory.mktemp("photos") / "photos", 3)


@pytest.fixture(scope="module")
def complete_output(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The output that a job makes of the photos without disturbance."""
    output = tmp_path_factory.mktemp("whole") / "out"
    commandline.dataprep("shard", "--source", photos, "--output", output, *JOB, code=0)
    return comparable(objects(output))


@contextmanager
def mounted(location: Path, options: str) -> Iterator[Path]:
    """A mounted file system. The test is skipped without the right to mount one."""
    location.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(location)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a file system")
    yield location
    subprocess.run(["umount", str(location)], check=True)


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A disk that is mounted read-only."""
    with mounted(tmp_path / "read-only", "size=1M,ro") as disk:
        yield disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MB."""
    with mounted(tmp_path / "small", "size=4M") as disk:
        yield disk


def limited(*arguments: str | Path, **limits: int) -> Finished:
    """Start a command with lower limits, soft and hard, such as ``NOFILE=5``."""

    def lower() -> None:
        for name, value in limits.items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))

    done = subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        preexec_fn=lower,
        timeout=commandline.PATIENCE_S,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def clear_line(done: Finished, code: int) -> str:
    """The one error line of a command."""
    assert done.code == code, done.err
    assert "Traceback" not in done.err
    (line,) = done.complaints
    return line


def goes_on(photos: Path, output: Path, complete_output: dict[str, object]) -> None:
    """Check that the same command completes the output and leaves nothing else behind."""
    commandline.dataprep("shard", "--source", photos, "--output", output, *JOB, code=0)
    assert comparable(objects(output)) == complete_output
    assert not list(output.glob(".partial*"))


def test_a_read_only_disk(photos: Path, read_only: Path) -> None:
    """A read-only disk is refused before anything is made, for shards and for benchmark runs."""
    done = commandline.dataprep("shard", "--source", photos, "--output", read_only / "out", *JOB)
    line = clear_line(done, 2)
    assert "the disk is read-only: mount it for writing, or choose another location" in line
    config = Path(__file__).parents[2] / "configs" / "bench" / "smoke.yaml"
    done = commandline.iobench("run", config, "--output", read_only / "run")
    assert "Read-only file system" in clear_line(done, 2)
    assert not files(read_only)


def test_a_disk_that_is_too_small(
    photos: Path, complete_output: dict[str, object], small_disk: Path, gate: Gate
) -> None:
    """A job that does not fit is refused.

    A disk that fills up stops a job, which can be resumed.
    """
    output, ballast = small_disk / "out", small_disk / "ballast"
    job = ("shard", "--source", photos, *JOB, *ONE_AT_A_TIME, "--output", f"gated://{output}")
    ballast.write_bytes(bytes(3_000_000))
    refused = clear_line(commandline.dataprep(*job[:-1], output), 2)
    assert "MB would be written" in refused
    assert files(small_disk) == {"ballast"}
    ballast.unlink()
    with gate.stopping("receipts/", 1, *job) as running:
        ballast.write_bytes(bytes(max(0, shutil.disk_usage(small_disk).free - 500_000)))
        gate.open()
        line = clear_line(running.finish(), 1)
    assert "no space left" in line
    ballast.unlink()
    goes_on(photos, output, complete_output)


@pytest.mark.parametrize("location", ["receipts/=1", "tfrecord/=2"])
def test_an_output_that_is_removed_meanwhile(
    photos: Path, complete_output: dict[str, object], gate: Gate, tmp_path: Path, location: str
) -> None:
    """If its output is removed, the job stops without a complete split.

    --overwrite starts again.
    """
    output = tmp_path / "out"
    prefix, _, count = location.partition("=")
    job = ("shard", "--source", photos, *JOB, *ONE_AT_A_TIME, "--output", f"gated://{output}")
    with gate.stopping(prefix, int(count), *job) as running:
        shutil.rmtree(output)
        gate.open()
        line = clear_line(running.finish(), 1)
    assert f"does not see the output {output}" in line
    assert "it was removed during this run: run again" in line
    assert not list(output.glob("*.manifest.json"))
    again = ("shard", "--source", photos, "--output", output, *JOB)
    assert "--overwrite" in clear_line(commandline.dataprep(*again), 2)
    assert commandline.dataprep(*again, "--overwrite").code == 0
    assert comparable(objects(output)) == complete_output


def test_a_source_that_is_removed_meanwhile(
    photos: Path, complete_output: dict[str, object], gate: Gate, tmp_path: Path
) -> None:
    """If its source is removed, the job stops without failed samples, and continues later."""
    source, output = tmp_path / "photos", tmp_path / "out"
    shutil.copytree(photos, source)
    job = ("shard", "--source", source, *JOB, *ONE_AT_A_TIME, "--output", f"gated://{output}")
    with gate.stopping("tfrecord/", 1, *job) as running:
        source.rename(tmp_path / "elsewhere")
        gate.open()
        line = clear_line(running.finish(), 1)
    assert "is gone from" in line
    assert "restore it" in line
    (tmp_path / "elsewhere").rename(source)
    goes_on(source, output, complete_output)


def test_files_that_may_not_grow(
    photos: Path, complete_output: dict[str, object], tmp_path: Path
) -> None:
    """A limit of the size of files stops the job, which can be resumed."""
    output = tmp_path / "out"
    job = ("shard", "--source", photos, "--output", output, *JOB)
    line = clear_line(limited(*job, FSIZE=500_000), 1)
    assert re.search(r"'tfrecord/.*': File too large", line)
    goes_on(photos, output, complete_output)
