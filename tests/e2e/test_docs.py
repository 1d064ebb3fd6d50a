"""Every code block of the documentation runs, or gives the reason why it does not run here."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
import yaml

from dataprep.cli.main import app as dataprep_app
from iobench.cli.main import app as iobench_app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"(?:<!-- not run: (.+?) -->\n)?^```(\w*)\n(.*?)^```$", re.M | re.S)
_COMMAND = re.compile(r"^(?:\$ )?(dataprep|iobench) ([a-z]+)\b(.*)$", re.M)
_LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
APPS = {"dataprep": dataprep_app, "iobench": iobench_app}
PARSERS: Mapping[str, Callable[[str], object]] = {
    "python": ast.parse,
    "json": json.loads,
    "yaml": yaml.safe_load,
    "toml": tomllib.loads,
    "sh": lambda text: subprocess.run(["sh", "-n"], input=text, text=True, check=True),
}


@dataclass(frozen=True)
class Block:
    """A code block. ``reason`` says why it does not run here."""

    page: Path
    language: str
    text: str
    reason: str


BLOCKS = [
    Block(page, language, text, reason)
    for page in PAGES
    for reason, language, text in _BLOCK.findall(page.read_text())
]
RUNNING = {
    page: [b for b in BLOCKS if b.page == page and b.language in ("python", "sh") and not b.reason]
    for page in PAGES
}


def run(block: Block, folder: Path) -> None:
    """Run a block as a program of its own. It must succeed."""
    program = ["sh", "-eu", "-c", block.text]
    if block.language == "python":
        script = folder / "block.py"
        guarded = 'if __name__ == "__main__":\n' + textwrap.indent(block.text, "    ")
        script.write_text(guarded)  # worker processes import the script again
        program = [sys.executable, str(script)]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        program,
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (block.page.name, block.text, done.stderr[-2000:])


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the photos and the data set that the pages expect."""
    folder = tmp_path_factory.mktemp("docs")
    text = """
        dataprep sample photos --images 120
        dataprep shard --source photos --output out --size 96 --shard-size 1MB --validation 10% \\
            --format tfrecord --format recordio
        """
    run(Block(ROOT, "sh", textwrap.dedent(text), ""), folder)
    return folder


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("page", [p for p in PAGES if RUNNING[p]], ids=lambda page: page.stem)
def test_blocks_run_in_order(page: Path, workplace: Path, tmp_path: Path) -> None:
    """The blocks of a page run one after the other. The first page needs no prepared files."""
    if page.stem != "start":
        shutil.copytree(workplace, tmp_path, dirs_exist_ok=True)
    for block in RUNNING[page]:
        run(block, tmp_path)


TAKEN_FOR_GRANTED = """
from typing import Any
checkpoint: dict[str, Any]
device: Any
loader: Any
"""


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.smoke
def test_python_examples_have_the_types_that_they_show(tmp_path: Path) -> None:
    """The Python blocks of README and of the page about data sets pass ``mypy --strict``."""
    pages = (ROOT / "README.md", ROOT / "docs/dataset.md")
    blocks = [block for block in BLOCKS if block.language == "python" and block.page in pages]
    assert len(blocks) >= 7
    for number, block in enumerate(blocks):
        text = f"{TAKEN_FOR_GRANTED if block.reason else ''}{block.text}"
        (tmp_path / f"{block.page.stem.lower()}_{number}.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "."],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": os.fspath(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("language", PARSERS)
def test_blocks_are_valid(language: str) -> None:
    """Blocks that do not run here have no syntax errors."""
    for block in BLOCKS:
        if block.language == language:
            PARSERS[language](block.text)


def test_commands_and_options_exist() -> None:
    """The commands and options of every block exist, even if the block does not run."""
    for block in BLOCKS:
        text = block.text.replace("\\\n", " ")
        for program, name, rest in _COMMAND.findall(text):
            commands = typer.main.get_command(APPS[program]).commands  # type: ignore[attr-defined]
            assert name in commands, (block.page.name, name)
            command, arguments = commands[name], rest.partition("#")[0]
            if hasattr(command, "commands"):
                command = command.commands[arguments.split()[0]]
            options = {option for param in command.params for option in param.opts}
            options_used = set(re.findall(r"(?<!\S)--[a-z-]+", arguments))
            assert options_used <= options, (block.page.name, program, name, options_used - options)


def test_links_lead_to_files() -> None:
    """Each link of README and the pages leads to a file, and the index reaches each page."""
    for page in PAGES:
        for target in _LINK.findall(page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), (page.name, target)
    listed = (ROOT / "docs/index.md").read_text().split()
    assert {page.stem for page in PAGES[1:]} - {"index"} <= set(listed)
