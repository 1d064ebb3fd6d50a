"""A saved run into advice, and into a config."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dataprep.config import load
from dataprep.errors import ConfigError
from iobench.advising import advise_saved
from iobench.cli import app
from iobench.errors import NoAdvice
from iobench.result import Result
from iobench.rundir import summarised
from tests.iobench.advice.made import DATA, forms, over_photos, run
from tests.iobench.whatif.made import loader


def saved(folder: Path, result: Result) -> Path:
    """Its folder."""
    folder.mkdir()
    (folder / "result.json").write_bytes(result.to_json())
    return folder


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run over ``photos/``, which is there, in the folder that this process is in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    return saved(tmp_path / "run", run(forms(), over_photos(), data={**DATA, "source": "photos"}))


def test_the_text_says_what_to_change_first(photos: Path) -> None:
    """Then what stays, what is not known, and whether the model holds."""
    found = advise_saved(photos).text
    heads = [line for line in found.splitlines() if line and not line.startswith(" ")]
    assert heads[:4] == ["Of g:", "Change", "Leave as it is", "Not known"]
    assert heads[4].startswith("The model of least capacities holds here: ")
    assert "  resize beforehand: 256 pixels (now as it is), 1.67 times" in found
    assert "dataprep shard: image.size=256" in found
    assert max(map(len, found.splitlines())) <= 100


def test_a_model_that_does_not_hold_is_said_to(tmp_path: Path) -> None:
    """And that no advice is derived from it."""
    folder = saved(tmp_path / "run", run(forms(), over_photos(150.0)))
    assert "does not hold everywhere here: g: 300 samples/s predicted" in advise_saved(folder).text


def test_another_loop_of_the_run_may_be_asked_of(tmp_path: Path) -> None:
    """By its name; the keys to set are its own. One that is not there is named, with those that
    are."""
    other = over_photos(299.0, group="other")
    folder = saved(tmp_path / "run", run(forms(), over_photos(), other))
    assert advise_saved(folder).entries[0].of == "g"
    entries = {entry.setting: entry for entry in advise_saved(folder, "other").entries}
    assert entries["resize"].of == "other"
    assert "training.1.data" in entries["together"].config
    done = CliRunner().invoke(app, ["advise", str(folder), "--group", "nope"])
    assert done.exit_code == 2
    with pytest.raises(NoAdvice, match="called 'nope'; there are g, other"):
        advise_saved(folder, "nope")


def test_json_is_what_the_summary_has(photos: Path) -> None:
    """One object: the same advice and model as in result.json."""
    done = CliRunner().invoke(app, ["advise", str(photos), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    summary = summarised(advise_saved(photos).result).summary
    assert found == json.loads(json.dumps({key: summary[key] for key in ("advice", "whatif")}))


def test_a_config_is_one_that_dataprep_loads(photos: Path, tmp_path: Path) -> None:
    """Its source is where the run read, its output beside it; then how to go on."""
    done = CliRunner().invoke(app, ["advise", str(photos), "--emit-config", "new/advised.yaml"])
    assert done.exit_code == 0, done.output
    found = load(tmp_path / "new/advised.yaml", {})
    assert found.source == str(tmp_path / "photos")
    assert found.output == str(tmp_path / "new/advised-shards")
    *_, make, again = done.stdout.splitlines()
    assert make == "dataprep shard new/advised.yaml"
    assert again.startswith(f"iobench run {photos}/config.yaml --set data.shards={found.output}")
    assert "--set training.0.data=shards" in again
    assert "--set 'loaders=[]'" in again


def test_the_same_config_may_be_written_twice_and_no_other(photos: Path, tmp_path: Path) -> None:
    """What somebody has changed is left alone."""
    file = tmp_path / "advised.yaml"
    first = advise_saved(photos).write_config(file)
    assert advise_saved(photos).write_config(file) == first
    file.write_text("source: mine\n")
    with pytest.raises(ConfigError, match="there already, with another content"):
        advise_saved(photos).write_config(file)
    assert file.read_text() == "source: mine\n"


def test_a_place_that_is_taken_is_not_written_to(photos: Path, tmp_path: Path) -> None:
    """Where the shards were to go."""
    (tmp_path / "advised-shards").mkdir()
    with pytest.raises(ConfigError, match="where the shards were to go"):
        advise_saved(photos).write_config(tmp_path / "advised.yaml")
    assert not (tmp_path / "advised.yaml").exists()


def test_a_source_that_is_not_there_is_named(photos: Path, tmp_path: Path) -> None:
    """Relative names are those of the folder where the run was started."""
    (tmp_path / "photos").rmdir()
    with pytest.raises(NoAdvice, match=r"data\.source: no folder .*: be in the folder where"):
        advise_saved(photos).write_config(tmp_path / "advised.yaml")


def test_drawn_images_are_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the run drew them."""
    monkeypatch.chdir(tmp_path)
    data = {"images": 40, "classes": 2, "seed": 1, "size": 256, "folder": "made"}
    folder = saved(tmp_path / "run", run(forms(), over_photos(), data=data))
    with pytest.raises(NoAdvice, match="the drawn images: no folder"):
        advise_saved(folder).write_config(tmp_path / "advised.yaml")
    (tmp_path / "made/drawn-40-2-1").mkdir(parents=True)
    advise_saved(folder).write_config(tmp_path / "advised.yaml")
    assert load(tmp_path / "advised.yaml", {}).source == str(tmp_path / "made/drawn-40-2-1")


@pytest.mark.parametrize("option", [[], ["--json"], ["--emit-config", "x.yaml"]])
def test_what_cannot_be_advised_is_one_line_and_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: list[str]
) -> None:
    """No run; and a run that says nothing, except as JSON, where nothing is an empty list."""
    monkeypatch.chdir(tmp_path)
    none = CliRunner().invoke(app, ["advise", "nowhere", *option])
    assert isinstance(none.exception, SystemExit) or none.exit_code != 0
    silent = saved(tmp_path / "run", run(loader(300.0, 2, loader="raw")))
    done = CliRunner().invoke(app, ["advise", str(silent), *option])
    if option == ["--json"]:
        assert json.loads(done.stdout)["advice"] == []
    else:
        assert done.exit_code == 2
    assert not (tmp_path / "x.yaml").exists()


def test_a_result_of_an_older_version_is_read(tmp_path: Path) -> None:
    """Its summary has no such parts: they are computed from its trials."""
    result = replace(run(forms(), over_photos()), summary={"verdict": "old"})
    assert "resize beforehand: 256" in advise_saved(saved(tmp_path / "run", result)).text
