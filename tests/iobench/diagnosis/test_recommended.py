"""Commands that findings and advice recommend are those of the command line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import typer

import iobench
from dataprep.cli.main import app

_FOLDER = Path(iobench.__file__).parent
_COMMAND = re.compile(r"\bdataprep ([a-z]+)((?: (?:--[a-z-]+|[A-Z]+|\d+MB|\d+)\b)*)")


def recommended() -> Iterator[tuple[str, str]]:
    """Each command in a text, and what stands behind it."""
    for name in ("diagnosis", "advice", "whatif", "report/model"):
        for path in sorted((_FOLDER / name).glob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield from _COMMAND.findall(node.value)


def test_they_exist_with_their_options() -> None:
    """Also those that copy shards to a local disk."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    found = list(recommended())
    assert {"shard", "stage"} <= {name for name, _ in found}
    for name, rest in found:
        known = {option for one in commands[name].params for option in one.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= known, (name, rest)
