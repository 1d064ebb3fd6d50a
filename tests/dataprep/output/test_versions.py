"""A job names the libraries, and perhaps the processor, that determine its bytes."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import dataprep
from dataprep.drawn import draw_tree
from dataprep.errors import JobError, OutputConflict
from dataprep.output.versions import require_versions, resizer, versions_that_determine_bytes

WITH_CYKOOZ = pytest.mark.skipif(
    find_spec("cykooz_resizer") is None, reason="cykooz-resizer has no wheel for this processor"
)
WITHOUT = """
import sys
sys.modules["cykooz_resizer"] = None  # its import raises ImportError
from dataprep.cli.main import main
sys.argv[0] = "dataprep"
main()
"""
"""The program on a machine that has no cykooz-resizer."""


def test_the_processor_is_told_where_it_matters() -> None:
    """The processor is named only if the bytes depend on it."""
    exact, depends = (
        dict(versions_that_determine_bytes()),
        dict(versions_that_determine_bytes(same_everywhere=False)),
    )
    assert "processor" not in exact
    assert depends.pop("processor").startswith(platform.machine())
    assert depends == exact


def test_another_processor_is_refused() -> None:
    """A worker on another processor than the planner's refuses, if the bytes depend on it."""
    require_versions(versions_that_determine_bytes())
    planned = versions_that_determine_bytes(same_everywhere=False)
    require_versions(planned)
    other_versions = tuple((name, "abacus" if name == "processor" else v) for name, v in planned)
    with pytest.raises(JobError, match=r"processor .* instead of abacus"):
        require_versions(other_versions)


def without_cykooz(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The result of the program in which NumPy resizes."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, *arguments], capture_output=True, text=True, check=False
    )


def unfinished(output: Path) -> None:
    """Remove the manifest and the first shard's receipt, as if a run had been killed."""
    (output / "train.manifest.json").unlink()
    min((output / "receipts").iterdir()).unlink()


@pytest.fixture
def config(tmp_path: Path) -> dataprep.ShardConfig:
    """The config of a job of a few photos, which are resized."""
    draw_tree(tmp_path / "photos", images=6, classes=2)
    values = {"source": f"{tmp_path}/photos", "output": f"{tmp_path}/out"}
    return dataprep.ShardConfig.model_validate({**values, "image": {"size": 64}})


def command(config: dataprep.ShardConfig) -> list[str]:
    """The same job as a command line."""
    paths = ["--source", config.source, "--output", config.output]
    return ["shard", *paths, "--size", "64", "--set", "dask.processes=false"]


def test_without_cykooz_resizer_numpy_resizes(config: dataprep.ShardConfig) -> None:
    """The job succeeds, and its job file, its manifest and --version name NumPy."""
    done = without_cykooz(*command(config))
    assert done.returncode == 0, done.stderr
    for name in ("train.job.json", "train.manifest.json"):
        versions = json.loads(Path(config.output, name).read_bytes())
        assert versions["versions"]["resizer"] == "numpy"
    assert without_cykooz("--version").stdout.splitlines()[1].endswith(", numpy")


@WITH_CYKOOZ
def test_a_job_is_not_resumed_with_another_resizer(config: dataprep.ShardConfig) -> None:
    """A resume with the other resizer, either way, exits with 2 and names both and a remedy."""
    dataprep.shard(config)
    unfinished(Path(config.output))
    before = sorted(Path(config.output).rglob("*"))
    for more in ((), ("--part", "0/2")):
        done = without_cykooz(*command(config), *more)
        assert done.returncode == 2
        assert f"planned with the resizer {resizer()}, but" in done.stderr
        assert "has numpy" in done.stderr
        assert f"use machines with {resizer()}" in done.stderr
        assert "another --output or with --overwrite" in done.stderr
    assert sorted(Path(config.output).rglob("*")) == before
    assert without_cykooz(*command(config), "--overwrite").returncode == 0
    with pytest.raises(OutputConflict, match="planned with the resizer numpy, but"):
        dataprep.shard(config)


@WITH_CYKOOZ
def test_a_worker_with_another_resizer_is_refused() -> None:
    """All workers of a job have one resizer. Earlier versions had the pixels of cykooz-resizer."""
    others = [(name, value) for name, value in versions_that_determine_bytes() if name != "resizer"]
    require_versions(tuple(others))
    with pytest.raises(JobError, match=r"planned with the resizer numpy, but .* has cykooz"):
        require_versions((*others, ("resizer", "numpy")))


@WITH_CYKOOZ
def test_a_job_of_an_earlier_version_is_resumed(
    config: dataprep.ShardConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job file without a resizer is resumed with cykooz-resizer, and with no other."""

    def earlier(*, same_everywhere: bool = True) -> tuple[tuple[str, str], ...]:
        versions = versions_that_determine_bytes(same_everywhere=same_everywhere)
        return tuple((name, value) for name, value in versions if name != "resizer")

    with monkeypatch.context() as patch:
        patch.setattr("dataprep.job.planning.versions_that_determine_bytes", earlier)
        dataprep.shard(config)
    shards_before = {path: path.read_bytes() for path in Path(config.output, "tfrecord").iterdir()}
    dataprep.shard(config)  # the job is complete
    unfinished(Path(config.output))
    refused = without_cykooz(*command(config))
    assert refused.returncode == 2
    assert "planned with the resizer cykooz-resizer, but" in refused.stderr
    dataprep.shard(config)
    assert {path: path.read_bytes() for path in shards_before} == shards_before
    job = json.loads(Path(config.output, "train.job.json").read_bytes())
    assert "resizer" not in job["versions"]
