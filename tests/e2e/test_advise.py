"""The gain that ``iobench advise`` predicts is the gain that is measured after its changes.

Loops run on a virtual clock over real images, which real jobs resize and shard. The times for a
file and a byte are known, and nothing waits.
"""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from dataprep.config.files import parse_settings
from iobench.analysis.analyse import summarised
from iobench.clock import VirtualClock
from iobench.config.benchmark import BenchConfig, dump, load
from iobench.config.plan import location_names, trials
from iobench.results.result import Result
from iobench.results.trial import Context, Trial, TrialSpec
from iobench.runner.locations import Locations
from iobench.runner.run_folder import read
from iobench.trials import loader_trial, training_trial
from tests.commandline import dataprep, iobench
from tests.e2e.timed_loaders import ENTRY_POINTS

pytestmark = pytest.mark.slow

KINDS = {"loader": loader_trial.run, "train": training_trial.run}


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Loaders with known times, which can be selected by name."""
    folder = tmp_path_factory.mktemp("timed-package")
    package = folder / "timed-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: timed\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(ENTRY_POINTS)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "path", [*sys.path, str(folder)])
        yield


def config(folder: Path, **training_: Any) -> BenchConfig:
    """Photographs as they are, resized, and in shards, and a loop that reads the original files."""
    grid = {"workers": [0, 1, 2], "batch_size": 4, "seconds": 3}
    loop = {
        "group": "loop",
        "consumer": "paced",
        "loader": "timed-folder",
        "data": "photos",
        "workers": 2,
        "batch_size": 4,
        "inputs": ["synthetic", "warm"],
        "steps": 15,
        "images_per_s": 400,
        **training_,
    }
    return BenchConfig.model_validate(
        {
            "name": "round-trip",
            "repeats": 2,
            "more_workers_gain": None,
            "data": {"images": 60, "classes": 2, "folder": str(folder), "shard_size": "1MB"},
            "loaders": [
                {"loader": "timed-folder", "data": ["photos@disk", "files@disk"], **grid},
                {"loader": "timed-shards", "data": ["originals@disk", "shards@disk"], **grid},
            ],
            "training": [loop],
        }
    )


def measure(settings: BenchConfig, folder: Path) -> Result:
    """Run a benchmark with a virtual clock for each trial, and save it as ``iobench`` does."""
    with Locations(settings, lambda note: None, "run") as locations:
        finished_trials = [_trial(spec, locations) for spec in trials(settings)]
    result = Result(
        "round-trip", "2026-11-21T12:00:00+00:00", {"processors": 2}, {}, tuple(finished_trials)
    )
    content = json.loads(json.dumps(settings.model_dump(mode="json")))
    saved = summarised(Result(**{**_fields(result), "config": content}))
    folder.mkdir()
    (folder / "result.json").write_bytes(saved.to_json())
    (folder / "config.yaml").write_text(dump(settings))
    return read(folder)


def _fields(result: Result) -> dict[str, Any]:
    """The fields of a result that its constructor takes."""
    return {name: getattr(result, name) for name in ("name", "started", "environment", "trials")}


def _trial(spec: TrialSpec, locations: Locations) -> Trial:
    """Run one trial on a virtual clock."""
    locations_of_trial = {name: locations.get(name) for name in location_names(spec)}
    context = Context(locations_of_trial, VirtualClock(), lambda done, unit: None)
    outcome = KINDS[spec.kind](spec, context)
    identity = (spec.id, spec.kind, spec.params, spec.repeat)
    return Trial(*identity, "done", outcome.metrics, outcome.cold)


def rate(result: Result, **params: Any) -> float:
    """The rate of the loop with an input, in samples/s."""
    (first, *_) = [
        trial.metrics["samples_per_s"]
        for trial in result.trials
        if params.items() <= dict(trial.params).items()
    ]
    return float(first)


def overrides(line: str, command: str) -> dict[str, Any]:
    """The ``--set`` pairs of a printed command."""
    arguments = shlex.split(line)
    assert arguments[: len(command.split())] == command.split()
    return parse_settings(arguments[i + 1] for i, word in enumerate(arguments) if word == "--set")


def advised(run: Path, file: Path) -> tuple[dict[str, Any], Sequence[str]]:
    """The recommendations by setting, and the commands that follow them."""
    done = iobench("advise", run, "--json", "--emit-config", file)
    assert done.code == 0, done.err
    return {a["setting"]: a for a in done.one_object["recommendations"]}, done.err.splitlines()


@pytest.mark.parametrize(
    ("images_per_s", "limited_by"), [(100_000, "decode"), (400, "device")], ids=["fast", "slow"]
)
def test_what_was_predicted_comes(
    timed: None, tmp_path: Path, small_photos: Path, images_per_s: float, limited_by: str
) -> None:
    """A predicted gain is large and correct within 10 %, even if the device becomes the limit."""
    before = measure(config(small_photos, images_per_s=images_per_s), tmp_path / "run")
    advice, (make, again) = advised(tmp_path / "run", tmp_path / "advised.yaml")
    resize = advice["resize"]
    assert (resize["basis"], resize["limit"]) == ("predicted", limited_by)
    reported = [
        change["gain"]["median"] for change in advice.values() if change["gain"] is not None
    ]

    assert make == f"dataprep shard {tmp_path / 'advised.yaml'}"
    assert dataprep("plan", tmp_path / "advised.yaml").code == 0
    done = dataprep("shard", tmp_path / "advised.yaml")
    assert done.code == 0, done.err

    changed = overrides(again, "iobench run")
    expected = load(tmp_path / "run/config.yaml", changed)
    after = measure(expected, tmp_path / "again")
    improvement = rate(after, input="warm") / rate(before, input="warm")
    assert improvement > 1.2
    assert math.prod(reported) == pytest.approx(improvement, rel=0.1)


def test_a_loop_that_its_device_limits_is_left_alone(
    timed: None, tmp_path: Path, small_photos: Path
) -> None:
    """If the device limits the loop, no config is written, and one line gives the reason."""
    measure(config(small_photos, images_per_s=20), tmp_path / "run")
    done = iobench("advise", tmp_path / "run", "--emit-config", tmp_path / "advised.yaml")
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert "no change of the shards is recommended" in line
    assert not (tmp_path / "advised.yaml").exists()


def test_the_config_says_where_it_comes_from(
    timed: None, tmp_path: Path, small_photos: Path
) -> None:
    """The printed config names the drawn images, and the size that was measured as faster."""
    measure(config(small_photos), tmp_path / "run")
    advised(tmp_path / "run", tmp_path / "advised.yaml")
    content = yaml.safe_load((tmp_path / "advised.yaml").read_bytes())
    assert content["source"] == str(small_photos / "drawn-60-2-0")
    assert content["image"]["size"] == 256


@pytest.fixture(scope="module")
def small_photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Drawn images and the outputs made of them, which all tests of this module share."""
    return tmp_path_factory.mktemp("data")
