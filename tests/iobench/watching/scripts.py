"""Training scripts that are watched, run as people run them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

from tests.commandline import PATIENCE_S

LOADER = """
class Loader:
    batch_size = 4

    def __init__(self, batches=12):
        self.batches = batches

    def __len__(self):
        return self.batches

    def __iter__(self):
        for number in range(self.batches):
            yield [number] * 4
"""


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as connection:
        connection.bind(("127.0.0.1", 0))
        return int(connection.getsockname()[1])


def written(folder: Path, code: str) -> list[str]:
    """``python script.py`` for a script that has a ``Loader``."""
    path = folder / "script.py"
    path.write_text(LOADER + textwrap.dedent(code))
    return [sys.executable, str(path)]


def environment(**settings: str) -> Mapping[str, str]:
    """Of no job of several processes, unless told."""
    launchers = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "SLURM_", "OMPI_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(launchers)}
    return {**kept, **settings}


def run(folder: Path, code: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """To its end, in ``folder``."""
    return subprocess.run(
        written(folder, code),
        cwd=folder,
        env=environment(**settings),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
