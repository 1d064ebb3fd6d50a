"""Every command and every key that iobench recommends exists."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from torch.utils.data import DataLoader

import dataprep
import iobench
from dataprep.cli.main import app as dataprep_app
from iobench.analysis.recommendations import Recommendation
from iobench.cli.main import app as iobench_app
from iobench.config.benchmark import BenchConfig
from tests.iobench.analysis.made import GPU, analysed, loop
from tests.iobench.analysis.test_recommend import DECODE_BOUND, FAR_STORE, ONE_WORKER

_FOLDER = Path(iobench.__file__).parent
_ROOT = _FOLDER.parent
_COMMAND = re.compile(r"\b(dataprep|iobench) ([a-z]+)((?: (?:--[a-z-]+|[A-Z/_]+|[\w.=/-]+))*)")
_WORDS = {"made", "run", "page", "result", "of", "and", "packages", "itself", "writes", "commands"}


def texts() -> Iterator[tuple[str, str]]:
    """Yield the file name and the text of every string of the package and of every template."""
    for path in sorted(_FOLDER.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield path.name, node.value
    for path in sorted(_FOLDER.rglob("*.j2")):
        yield path.name, path.read_text()


def options(program: str, name: str) -> set[str]:
    """Return the options of a command; the set is empty if there is no such command."""
    app = {"dataprep": dataprep_app, "iobench": iobench_app}[program]
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    if name not in commands:
        return set()
    return {option for param in commands[name].params for option in param.opts}


def test_commands_and_their_options_exist() -> None:
    """Commands in all texts exist with their options, and so do the configs that they name."""
    seen = set()
    for where, text in texts():
        for program, name, rest in _COMMAND.findall(text):
            known_options = options(program, name)
            options_used = set(re.findall(r"--[a-z-]+", rest))
            if options_used:
                assert options_used <= known_options | {"--set"}, (where, program, name, rest)
            seen.add((program, name) if known_options else ("", ""))
        for config in re.findall(r"configs/bench/[\w-]+\.yaml", text):
            assert (_ROOT / config).exists(), (where, config)
    assert {("dataprep", "shard"), ("dataprep", "stage"), ("iobench", "run")} <= seen


def all_changes() -> list[Recommendation]:
    """Return the recommendations of many runs, with the remedies of many causes."""
    runs = [analysed(trials) for trials in (ONE_WORKER, FAR_STORE, DECODE_BOUND)]
    synthetic = loop("synthetic", 900, loader="torch-map")
    runs.append(analysed(synthetic, loop("store", 30, loader="torch-map")))
    without_disk = [t for t in FAR_STORE if t.params.get("data") != "shards@disk"]
    runs.append(analysed(without_disk))
    rates = {"synthetic": 1000, "copy": 700, "collate": 500, "augment": 300}
    rates |= {"decode": 200, "warm": 150}
    ladder = []
    for source, rate in rates.items():
        ladder += loop(source, rate, metrics=GPU, colour_jitter=True, pca_noise=True)
    runs.append(analysed(ladder))
    changes = [change for run in runs for change in run.advice.changes]
    settings = {change.setting for change in changes}
    assert {"workers", "loader", "resize", "normalise", "colour_jitter", "pin_memory"} <= settings
    return changes


@pytest.mark.parametrize("change", all_changes(), ids=lambda change: change.setting)
def test_keys_are_those_of_the_config(change: Recommendation) -> None:
    """iobench accepts a config with the recommended keys, and its code and command are valid."""
    training: dict[str, Any] = {"consumer": "paced", "preset": "A100", "colour_jitter": True}
    content: dict[str, object] = {"data": {}}
    for key, value in change.config.items():
        part, _, name = key.rpartition(".")
        if part == "data":
            content["data"] = {name: value}
        elif name == "inputs":
            training[name] = str(value).strip("[]").split(", ")
        else:
            assert part == "training.0", key
            training[name] = value
    BenchConfig.model_validate({**content, "training": [training]})
    if change.code:
        call = ast.parse(change.code, mode="eval").body
        assert isinstance(call, ast.Call)
        takes: dict[str, Any] = {
            "DataLoader": DataLoader,
            "dataprep.to_torch": dataprep.to_torch,
            "dataprep.normalise": dataprep.normalise,
        }
        parameters = inspect.signature(takes[ast.unparse(call.func)]).parameters
        assert {word.arg for word in call.keywords} <= set(parameters)
    if change.command:
        program, name, *rest = change.command.split()
        assert {word for word in rest if word.startswith("--")} <= options(program, name)
