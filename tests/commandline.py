"""Runs the command lines as users do, and reads the content of an output."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import dataprep as library
from dataprep.cli.main import app
from dataprep.stores import Store, StoreOptions, open_store
from dataprep.stores.s3 import S3Store
from iobench.servers.moto_server import MotoServer

PATIENCE_S = 180.0
IN_ONE_PROCESS = ("--set", "dask.processes=false")
"""With these options, a signal that ends the process ends the driver."""
FORMATS = ("tfrecord", "recordio", "webdataset")
_FORMATS_OF_JOB = ("--format", "tfrecord", "--format", "recordio", "--format", "webdataset")
JOB = (*_FORMATS_OF_JOB, "--shard-size", "1.2MB")
"""Options for all formats and the smallest shards: the drawn tree has ten of them."""


@dataclass(frozen=True)
class Finished:
    """The result of a command that has ended."""

    code: int
    out: str
    err: str
    program: str = "dataprep"

    def checked(self, code: int | None) -> Finished:
        """Compare the exit code with the expected one, if any. Return this result."""
        assert code is None or self.code == code, self
        return self

    @property
    def complaints(self) -> list[str]:
        """The messages about errors, each with the lines that follow it."""
        actual: list[str] = []
        for line in self.err.splitlines():
            if line.startswith(f"{self.program}: "):
                actual.append(line)
            elif actual:
                actual[-1] += f"\n{line}"
        return actual

    @property
    def one_object(self) -> Any:
        """The JSON object on stdout. Any other output is an error."""
        return json.loads(self.out)


def command(*arguments: str | os.PathLike[str], program: str = "dataprep") -> list[str]:
    """The command of ``dataprep ARGUMENTS``, or of another program, for this interpreter."""
    return [sys.executable, "-m", program, *(os.fspath(argument) for argument in arguments)]


def dataprep(
    *arguments: str | os.PathLike[str],
    env: Mapping[str, str] | None = None,
    code: int | None = None,
) -> Finished:
    """Run ``dataprep`` to its end. Compare its exit code, if one is given."""
    return _finished("dataprep", *arguments, env=env, code=code)


def in_process(*arguments: str | os.PathLike[str], code: int | None = None) -> Finished:
    """Run a command in this process, which is faster."""
    result = CliRunner().invoke(app, [os.fspath(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Finished(result.exit_code, result.stdout, result.stderr).checked(code)


def make(source: str | os.PathLike[str], output: str | os.PathLike[str], **changes: Any) -> None:
    """Make shards with the options ``JOB``, on threads of this process."""
    options: dict[str, Any] = {
        "format": FORMATS,
        "shard_size": "1.2MB",
        "dask": {"workers": 2, "processes": False},
        **changes,
    }
    library.shard(
        library.ShardConfig(source=os.fspath(source), output=os.fspath(output), **options)
    )


def upload(folder: Path, store: Store) -> None:
    """Copy a folder to a store."""
    for name in sorted(files(folder)):
        store.put(name, (folder / name).read_bytes())


def iobench(
    *arguments: str | os.PathLike[str],
    env: Mapping[str, str] | None = None,
    code: int | None = None,
) -> Finished:
    """Run a command of the benchmark to its end."""
    return _finished("iobench", *arguments, env=env, code=code)


def _finished(
    program: str,
    *arguments: str | os.PathLike[str],
    env: Mapping[str, str] | None,
    code: int | None,
) -> Finished:
    """Run a program to its end, and return its result."""
    done = subprocess.run(
        command(*arguments, program=program),
        capture_output=True,
        env={**os.environ, **(env or {})},
        timeout=PATIENCE_S,
        check=False,
    )
    finished = Finished(done.returncode, done.stdout.decode(), done.stderr.decode(), program)
    return finished.checked(code)


class Running:
    """A running command, in a process group of its own."""

    def __init__(
        self,
        *arguments: str | os.PathLike[str],
        env: Mapping[str, str] | None = None,
        program: str = "dataprep",
    ) -> None:
        self._program = program
        self._process = subprocess.Popen(
            command(*arguments, program=program),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )
        self.pid = self._process.pid

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
        self._process.communicate()

    @property
    def ended(self) -> bool:
        """Whether the command has ended."""
        return self._process.poll() is not None

    def send(self, number: signal.Signals) -> None:
        """Send a signal only to the driver, as Slurm, AWS Batch and ``kill`` do."""
        self._process.send_signal(number)

    def send_group(self, number: signal.Signals) -> None:
        """Send a signal to driver and workers, as a terminal does."""
        os.killpg(self.pid, number)

    def workers(self) -> list[int]:
        """The process ids of its workers, which are forks of a server that imports for them."""
        group, servers = self._group(), self.servers()
        return [pid for pid, parent, _ in group if parent in servers]

    def servers(self) -> list[int]:
        """The process id of the fork server, once it has started."""
        return [
            pid
            for pid, parent, args in self._group()
            if parent == self.pid and "forkserver" in args
        ]

    def survivors(self) -> list[str]:
        """The ids of the processes of its group that still run, including the driver."""
        return [args for _, _, args in self._group()]

    def _group(self) -> list[tuple[int, int, str]]:
        """The processes of the group: process id, parent's id, and arguments."""
        listed = subprocess.run(
            ["ps", "-ww", "-eo", "pid=,ppid=,pgid=,stat=,args="],
            capture_output=True,
            text=True,
            check=True,
        )
        processes = []
        for line in listed.stdout.splitlines():
            pid, parent, group, state, args = line.split(None, 4)
            is_zombie = state.startswith("Z")
            if int(group) == self.pid and not is_zombie:
                processes.append((int(pid), int(parent), args))
        return processes

    def finish(self, code: int | None = None) -> Finished:
        """Wait for the end. Compare the exit code, if one is given."""
        out, err = self._process.communicate(timeout=PATIENCE_S)
        finished = Finished(self._process.returncode, out.decode(), err.decode(), self._program)
        return finished.checked(code)


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Poll until ``condition`` holds."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline_s:
            raise AssertionError(f"waited {PATIENCE_S:.0f} s for {what}")
        time.sleep(0.01)


def objects(store: Store | str | Path) -> dict[str, bytes]:
    """Every object of an output by key."""
    opened = open_store(os.fspath(store)) if isinstance(store, str | Path) else store
    return {info.key: opened.get(info.key) for info in opened.list()}


def objects_of(uri: str, server: MotoServer, environment: Mapping[str, str]) -> dict[str, bytes]:
    """Every object of a bucket, with the credentials of an environment."""
    with pytest.MonkeyPatch.context() as patch:
        for name in MotoServer.ENVIRONMENT:
            patch.setenv(name, environment[name])
        return objects(S3Store(uri, StoreOptions(endpoint_url=server.url)))


def files(folder: Path) -> set[str]:
    """Every file below ``folder``, including temporary ones."""
    return {os.fspath(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def comparable(contents: Mapping[str, bytes]) -> dict[str, object]:
    """The objects that must be equal after each run: manifests without ``created`` and ``run``."""
    return {
        key: without_run(data) if key.endswith(".manifest.json") else data
        for key, data in contents.items()
    }


def without_run(manifest: bytes) -> dict[str, Any]:
    """A manifest without the values that may differ between runs."""
    content: dict[str, Any] = json.loads(manifest)
    assert {"created", "run"} <= content.keys()
    return {key: value for key, value in content.items() if key not in ("created", "run")}


def without_etags(receipt: bytes) -> dict[str, Any]:
    """A receipt without the ETags of the store."""
    content: dict[str, Any] = json.loads(receipt)
    for format_entry in content["formats"].values():
        for file in (format_entry["file"], *format_entry["indexes"]):
            del file["etag"]
    return content
