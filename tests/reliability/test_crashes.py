"""If a codec crashes or hangs, its image fails, or the job stops and names the image."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import dataprep
from tests import commandline
from tests.commandline import FORMATS, Finished, comparable, objects

pytestmark = [pytest.mark.process, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def source(tree: Path, tmp_path: Path) -> Path:
    """A copy of the drawn tree that a test may change."""
    return Path(shutil.copytree(tree, tmp_path / "photos"))


def shard(source: Path, output: Path, *more: str) -> Finished:
    """Run a job of two workers and one shard, whose codec does what the images say."""
    notes = source.parent / "notes"
    notes.mkdir(exist_ok=True)
    environment = {
        "PYTHONPATH": f"{ROOT / 'tests/reliability/crashing'}:{ROOT}",
        "CRASHING": str(notes),
    }
    formats = [word for name in FORMATS for word in ("--format", name)]
    arguments: tuple[str | Path, ...] = (
        "--source",
        source,
        "--output",
        output,
        *formats,
        "--size",
        "48",
        "--workers",
        "2",
    )
    return commandline.dataprep("shard", *arguments, "--max-failures", "9", *more, env=environment)


def marked(source: Path, how: str, *numbers: int) -> list[str]:
    """Append ``how`` to the images with these numbers. Return their names."""
    names = sorted(source.rglob("*.JPEG"))
    for number in numbers:
        with names[number].open("ab") as file:
            file.write(f"@@{how}@@".encode())
    return [str(names[number].relative_to(source)) for number in numbers]


@pytest.mark.parametrize("how", ["SIGSEGV", "SIGABRT"])
def test_an_image_that_crashes_fails_alone(source: Path, tmp_path: Path, how: str) -> None:
    """A crashing image fails, even the first or last one. All others are written and verify."""
    names = marked(source, how, 0, 61, 119)
    done = shard(source, tmp_path / "out", "--json")
    assert done.code == 0, done.err
    assert "Traceback" not in done.err
    table = dataprep.open(str(tmp_path / "out")).samples
    failed = table[table.status == "failed"]
    assert sorted(failed.source) == names
    assert set(failed.reason) == {f"crashed the decoder ({how})"}
    assert (table.status == "written").sum() == 117
    assert commandline.dataprep("verify", tmp_path / "out", "--deep").code == 0


def test_an_image_that_kills_once_changes_nothing(source: Path, tmp_path: Path) -> None:
    """A worker that is killed from outside is replaced, and the bytes are those of a quiet run."""
    marked(source, "once", 5, 70)
    assert shard(source, tmp_path / "killed").code == 0
    assert len(list((tmp_path / "notes").iterdir())) == 2
    assert shard(source, tmp_path / "quiet").code == 0
    killed, quiet = (comparable(objects(tmp_path / name)) for name in ("killed", "quiet"))
    assert killed == quiet


def test_an_image_over_which_all_are_killed_stops_the_job(source: Path, tmp_path: Path) -> None:
    """If every worker is killed over an image, the job stops with 1 and the name; no sample fails.

    A kill does not prove that the content of the image is wrong.
    """
    (name,) = marked(source, "SIGKILL", 33)
    done = shard(source, tmp_path / "out")
    assert done.code == 1
    assert name in done.complaints[0]
    assert "SIGKILL" in done.complaints[0]
    assert not (tmp_path / "out" / "train.manifest.json").exists()


@pytest.mark.parametrize("policy", ["stop", "fail"])
def test_an_image_that_hangs(source: Path, tmp_path: Path, policy: str) -> None:
    """An image that hangs stops the job by name, or fails, as ``hung_samples`` says."""
    (name,) = marked(source, "hang", 33)
    limit = ("--set", "dask.sample_timeout_s=2", "--set", f"hung_samples={policy}")
    done = shard(source, tmp_path / "out", *limit)
    if policy == "stop":
        assert done.code == 1
        assert name in done.complaints[0]
        return
    assert done.code == 0, done.err
    table = dataprep.open(str(tmp_path / "out")).samples
    failed = table[table.status == "failed"]
    assert failed.source.tolist() == [name]
    assert failed.reason.tolist() == ["took the decoder longer than 2 s"]
