"""Training scripts with a watched loop, which run in processes of their own."""

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
    """Return a port at which nobody listens."""
    with socket.socket() as connection:
        connection.bind(("127.0.0.1", 0))
        return int(connection.getsockname()[1])


def script_command(folder: Path, code: str) -> list[str]:
    """Write a script with a class ``Loader``, and return the command that runs it."""
    path = folder / "script.py"
    path.write_text(LOADER + textwrap.dedent(code))
    return [sys.executable, str(path)]


def environment(**settings: str) -> Mapping[str, str]:
    """Return the environment without variables of launchers, and with these variables."""
    launchers = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "SLURM_", "OMPI_")
    variables = {name: text for name, text in os.environ.items() if not name.startswith(launchers)}
    return {**variables, **settings}


def run(folder: Path, code: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a script in ``folder`` to its end."""
    return subprocess.run(
        script_command(folder, code),
        cwd=folder,
        env=environment(**settings),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
