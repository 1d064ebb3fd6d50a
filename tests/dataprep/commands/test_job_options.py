"""Tests of dataprep.commands.job_options."""

from __future__ import annotations

import inspect
import re
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dataprep.cli import app
from dataprep.commands.jobs import plan, shard
from dataprep.config import load


def options(command: object) -> dict[str, inspect.Parameter]:
    """A command's parameters."""
    assert callable(command)
    return dict(inspect.signature(command).parameters)


def test_plan_and_shard_take_the_same_job() -> None:
    """Whatever tells shard what to make tells plan too, and each has options of its own."""
    of_plan, of_shard = options(plan), options(shard)
    shared = of_plan.keys() & of_shard.keys()
    assert {"config", "source", "output", "format", "size", "seed", "set_"} <= shared
    assert of_plan.keys() - shared == {"readers", "prices"}
    assert {"part", "retry_failed", "overwrite"} <= of_shard.keys() - shared
    for name in shared:
        assert of_plan[name].annotation == of_shard[name].annotation


def test_options_override_the_file(tmp_path: Path) -> None:
    """What --print-config shows is the file with the options in its place."""
    path = tmp_path / "job.yaml"
    path.write_text("source: a\noutput: b\nseed: 3\nimage: {size: 64}\n")
    given = ["--seed", "4", "--size", "32x16", "--mode", "crop", "--set", "dask.retries=1"]
    result = CliRunner().invoke(app, ["shard", str(path), *given, "--print-config"])
    assert result.exit_code == 0, result.stderr
    printed = tmp_path / "printed.yaml"
    printed.write_text(result.stdout)
    config = load(printed, {})
    assert (config.source, config.seed, config.dask.retries) == ("a", 4, 1)
    assert (config.image.mode, config.image.size) == ("crop", (32, 16))


@pytest.mark.parametrize("size", ["", "x", "10x", "1x2x3", "big", "-5"])
@pytest.mark.parametrize("command", ["plan", "shard"])
def test_no_size(command: str, size: str) -> None:
    """A size that is none is refused in one line by both."""
    result = CliRunner().invoke(app, [command, f"--size={size}"])
    assert result.exit_code == 2
    assert "give pixels" in result.stderr


def test_help_names_every_kind_of_source() -> None:
    """The kinds of this package, as they are registered; those of others it cannot know."""
    own = {
        entry.name
        for entry in entry_points(group="dataprep.sources")
        if entry.value.startswith("dataprep.")
    }
    assert "ilsvrc" in own
    assert own <= set(re.findall(r"\w+", options(shard)["kind"].annotation.__metadata__[0].help))
