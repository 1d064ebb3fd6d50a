"""``iobench advise``: the advice as text and JSON, and the config for dataprep."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dataprep.config.shard_config import load
from dataprep.errors import ConfigError
from iobench.cli.advice_output import advise_saved
from iobench.cli.main import app
from iobench.errors import NoAdvice
from iobench.results.result import Result
from tests.iobench.analysis.made import DATA, loader, loop, run, together
from tests.iobench.analysis.test_recommend import DECODE_BOUND, ONE_WORKER, SLOW_DEVICE


def saved(folder: Path, result: Result) -> Path:
    """Write a result into a new folder, which is returned."""
    folder.mkdir()
    (folder / "result.json").write_bytes(result.to_json())
    return folder


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a run in the current folder that read ``photos/``, which exists there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    return saved(tmp_path / "run", run(DECODE_BOUND, data={**DATA, "source": "photos"}))


def test_the_text_has_the_verdict_and_the_changes_in_order(photos: Path) -> None:
    """Each change has its command, the next limit and its gain; the confidence comes last."""
    text = advise_saved(photos).text
    first, blank, change, then, how, *_ = text.splitlines()
    assert first.startswith("The loop gets 30 % of what the emulated device can consume.")
    assert blank == ""
    assert change.startswith("1. Store images at 256 pixels")
    assert change.endswith("1.50 times (1.50 to 1.50), predicted")
    assert then == "   then 892 samples/s, limited by decoding"
    assert how.strip() == "dataprep shard --source photos --output OUTPUT --size 256"
    assert "2. Use a machine with more CPUs" in text
    assert "Confidence: high" in text
    assert "Predictions were checked on 1 measured loop: within 10 %." in " ".join(text.split())


def test_no_change_is_an_answer(tmp_path: Path) -> None:
    """The exit code is 0 if no change would help, since that is an answer."""
    folder = saved(tmp_path / "run", run(SLOW_DEVICE))
    done = CliRunner().invoke(app, ["advise", str(folder)])
    assert done.exit_code == 0
    assert "None of the measured changes would make the loop faster." in done.stdout


def test_a_loop_that_is_not_there_is_named(photos: Path) -> None:
    """The error lists the loops that exist."""
    done = CliRunner().invoke(app, ["advise", str(photos), "--group", "nope"])
    assert done.exit_code == 2
    with pytest.raises(NoAdvice, match="called 'nope': choose one of g"):
        advise_saved(photos, "nope")


def test_json_has_the_recommendations(photos: Path) -> None:
    """The JSON object has the recommendations as in ``result.json``."""
    done = CliRunner().invoke(app, ["advise", str(photos), "--json"])
    assert done.exit_code == 0, done.output
    changes = json.loads(done.stdout)["recommendations"]
    assert [change["setting"] for change in changes] == ["resize", "processors"]
    assert changes[0]["gain"]["median"] == pytest.approx(1.5, rel=0.01)


def test_a_config_is_one_that_dataprep_loads(photos: Path, tmp_path: Path) -> None:
    """The config reads the run's source; the output says how to shard and measure again."""
    done = CliRunner().invoke(app, ["advise", str(photos), "--emit-config", "new/advised.yaml"])
    assert done.exit_code == 0, done.output
    config = load(tmp_path / "new/advised.yaml", {})
    assert config.source == str(tmp_path / "photos")
    assert config.output == str(tmp_path / "new/advised-shards")
    assert str(config.image.size) == "256"
    *_, make, again = done.stdout.splitlines()
    assert make == "dataprep shard new/advised.yaml"
    assert again.startswith(f"iobench run {photos}/config.yaml --set data.shards={config.output}")
    assert "--set training.0.data=shards" in again
    assert "--set 'loaders=[]'" in again


def test_a_loader_is_measured_again_over_data_that_its_entry_can_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries of ``loaders`` name their data with the location, and are not removed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    trials = [loader(600, 2, data="photos@disk", loader="torch-folder"), loader(900, 2)]
    folder = saved(tmp_path / "run", run(*trials, data={**DATA, "source": "photos"}))
    again = advise_saved(folder).write_config(tmp_path / "advised.yaml").splitlines()[-1]
    assert "--set loaders.0.data=shards@disk" in again
    assert "loaders=[]" not in again


@pytest.mark.parametrize(
    ("name", "expected"),
    [("torch-iterable", "tfrecord"), ("mxnet-record", "recordio"), ("webdataset", "webdataset")],
)
def test_the_config_has_the_format_that_the_loader_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, expected: str
) -> None:
    """A loader that reads several formats gets TFRecord, which is the default."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    trials = together(
        loader(600, 2, data="originals@disk", loader=name),
        loader(900, 2, loader=name),
        loop("synthetic", 2000, form="originals", workers=2, loader=name),
        loop("warm", 595, form="originals", workers=2, loader=name),
    )
    folder = saved(tmp_path / "run", run(trials, data={**DATA, "source": "photos"}))
    advise_saved(folder).write_config(tmp_path / "advised.yaml")
    assert load(tmp_path / "advised.yaml", {}).format == (expected,)


def test_the_same_config_may_be_written_twice_and_no_other(photos: Path, tmp_path: Path) -> None:
    """A file that a user has changed is not replaced."""
    file = tmp_path / "advised.yaml"
    first = advise_saved(photos).write_config(file)
    assert advise_saved(photos).write_config(file) == first
    file.write_text("source: mine\n")
    with pytest.raises(ConfigError, match="exists with another content"):
        advise_saved(photos).write_config(file)
    assert file.read_text() == "source: mine\n"


def test_a_place_that_is_taken_is_not_written_to(photos: Path, tmp_path: Path) -> None:
    """No config is written if the folder for its shards exists."""
    (tmp_path / "advised-shards").mkdir()
    with pytest.raises(ConfigError, match="but the shards would be written there"):
        advise_saved(photos).write_config(tmp_path / "advised.yaml")
    assert not (tmp_path / "advised.yaml").exists()


def test_a_source_that_is_not_there_is_named(photos: Path, tmp_path: Path) -> None:
    """A relative source belongs to the folder where the run was started."""
    (tmp_path / "photos").rmdir()
    with pytest.raises(NoAdvice, match=r"data\.source: no folder .*: change to the folder in"):
        advise_saved(photos).write_config(tmp_path / "advised.yaml")


def test_drawn_images_are_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The source is the folder in which the run drew its images."""
    monkeypatch.chdir(tmp_path)
    data = {"images": 40, "classes": 2, "seed": 1, "size": 256, "folder": "made", "source": None}
    folder = saved(tmp_path / "run", run(DECODE_BOUND, data=data))
    with pytest.raises(NoAdvice, match="the drawn images: no folder"):
        advise_saved(folder).write_config(tmp_path / "advised.yaml")
    (tmp_path / "made/drawn-40-2-1").mkdir(parents=True)
    advise_saved(folder).write_config(tmp_path / "advised.yaml")
    assert load(tmp_path / "advised.yaml", {}).source == str(tmp_path / "made/drawn-40-2-1")


@pytest.mark.parametrize("option", [[], ["--emit-config", "x.yaml"]])
def test_without_advice_there_is_one_line_and_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: list[str]
) -> None:
    """A missing run and one that decodes nothing have no advice; some runs need no new shards."""
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, ["advise", "nowhere", *option]).exit_code == 2
    silent = saved(tmp_path / "silent", run(loader(300.0, 2, loader="raw")))
    assert CliRunner().invoke(app, ["advise", str(silent), *option]).exit_code == 2
    fine = saved(tmp_path / "fine", run(ONE_WORKER))
    with pytest.raises(NoAdvice, match="no change of the shards is recommended"):
        advise_saved(fine).write_config(tmp_path / "x.yaml")
    assert not (tmp_path / "x.yaml").exists()


def test_a_result_of_an_older_version_is_read(tmp_path: Path) -> None:
    """A result whose summary lacks recommendations gets them from its trials."""
    result = replace(run(DECODE_BOUND), summary={"verdict": "old"})
    assert "Store images at 256" in advise_saved(saved(tmp_path / "run", result)).text
