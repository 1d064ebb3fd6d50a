"""``iobench compare``: saved runs are read, and their comparison is text, JSON and a page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dataprep.errors import ConfigError
from iobench.cli.comparison_output import compare_saved, label, require_page_name, threshold_share
from iobench.errors import ResultError
from iobench.results.result import Result
from tests.iobench.analysis.made import loader, run


def saved_run(folder: Path, factor: float = 1.0) -> Path:
    """Save a run into a new folder, which is returned; ``factor`` multiplies its rate."""
    folder.mkdir()
    (folder / "result.json").write_bytes(run_at(factor).to_json())
    return folder


def run_at(factor: float = 1.0) -> Result:
    """Return a run with six repeats of a loader; ``factor`` multiplies its rate and its memory."""
    trials = []
    for trial in loader(100 * factor, 1):
        trials.append(replace(trial, metrics={**trial.metrics, "memory_bytes": 1e9 * factor}))
    environment = {"processor": "AMD EPYC", "gpus": [{"name": "NVIDIA H100"}] * 2}
    return run(trials, environment=environment)


def test_folders_and_files_are_the_same(tmp_path: Path) -> None:
    """A run can be named by its folder, its result, or a copy of the result."""
    run = saved_run(tmp_path / "run")
    copy_of_result = tmp_path / "baseline.json"
    copy_of_result.write_bytes((run / "result.json").read_bytes())
    for base in (run, run / "result.json", copy_of_result):
        assert compare_saved([base, run], None, 0.05).exit_code == 0
        assert compare_saved([run], base, 0.05).exit_code == 0


def test_the_base_is_the_first_or_the_baseline(tmp_path: Path) -> None:
    """The first run or the baseline is the base, and all other runs are new."""
    slow, fast = saved_run(tmp_path / "slow", 0.5), saved_run(tmp_path / "fast")
    assert compare_saved([fast, slow], None, 0.05).exit_code == 1
    assert compare_saved([slow, fast], None, 0.05).exit_code == 0
    assert compare_saved([slow], fast, 0.05).exit_code == 1
    two_new_runs = compare_saved([slow, slow], fast, 0.05)
    assert two_new_runs.exit_code == 1
    assert len(json.loads(two_new_runs.json)["comparisons"]) == 2


def test_deciding_figures_are_apart_from_the_others(tmp_path: Path) -> None:
    """Text, JSON object and page separate the figures that decide from the others."""
    base, new = saved_run(tmp_path / "base"), saved_run(tmp_path / "new", 1.5)
    comparison = compare_saved([base, new], None, 0.05)
    assert comparison.exit_code == 0
    decides = comparison.text.index("1 figure decides")
    others = comparison.text.index("Other figures")
    assert decides < comparison.text.index("samples/s") < others
    assert others < comparison.text.index("memory: 1 GB -> 1.50 GB")
    content = json.loads(comparison.json)
    rate, memory = content["changes"]
    assert (rate["verdict"], rate["decides"], memory["decides"]) == ("improvement", True, False)
    assert rate["adjusted_p_value"] == rate["p_value"] == pytest.approx(2 / 924)
    assert (memory["verdict"], memory["adjusted_p_value"]) == ("regression", None)
    assert content["deciding"] == {
        "figures": 1,
        "by": "the rate of each loader and probe",
        "significance": 0.05,
        "correction": "Holm",
        "underpowered": False,
        "more_repeats": None,
    }
    assert content["base"]["rates"] == "steady-state"
    page = tmp_path / "page.html"
    comparison.write_page(page)
    for title in ("figures that decide the exit code", "other figures"):
        assert title in page.read_text()


def test_machines_are_in_the_heading(tmp_path: Path) -> None:
    """The text and the page name processor, CPUs and GPUs of both runs."""
    comparison = compare_saved([saved_run(tmp_path / "a"), saved_run(tmp_path / "b")], None, 0.05)
    machine = "AMD EPYC, 2 CPUs, 2 × NVIDIA H100"
    assert comparison.text.partition("decides")[0].count(machine) == 2
    page = tmp_path / "page.html"
    comparison.write_page(page)
    assert page.read_text().partition("<h1>")[0].count(machine) == 2


def test_one_run_is_nothing_to_compare(tmp_path: Path) -> None:
    """The message says how to name the other run."""
    with pytest.raises(ConfigError, match="NEW_DIR --against BASELINE"):
        compare_saved([saved_run(tmp_path / "run")], None, 0.05)


def test_a_file_without_a_result_is_refused(tmp_path: Path) -> None:
    """The message names the file, whether it is the base or the new run."""
    run, odd = saved_run(tmp_path / "run"), tmp_path / "odd.json"
    odd.write_bytes(b'{"schema": 1}')
    for pair in ([odd, run], [run, odd]):
        with pytest.raises(ResultError, match=r"odd\.json: not the result of a run"):
            compare_saved(pair, None, 0.05)


def test_nothing_there_is_refused(tmp_path: Path) -> None:
    """A folder without a run, a missing folder and a missing file are refused."""
    run = saved_run(tmp_path / "run")
    for nowhere in (tmp_path, tmp_path / "nowhere", tmp_path / "nowhere.json"):
        with pytest.raises(ResultError, match="no run in"):
            compare_saved([run, nowhere], None, 0.05)


def test_a_page_replaces_a_page_and_nothing_else(tmp_path: Path) -> None:
    """A page can be written again, but no result is overwritten by mistake."""
    done = compare_saved([saved_run(tmp_path / "a"), saved_run(tmp_path / "b", 0.8)], None, 0.05)
    page = tmp_path / "page.html"
    for _ in range(2):
        done.write_page(page)
    assert b"iobench compare" in page.read_bytes()
    with pytest.raises(ConfigError, match=r"ends in \.html"):
        done.write_page(tmp_path / "a" / "result.json")
    with pytest.raises(ConfigError, match="cannot write"):
        done.write_page(tmp_path / "nowhere" / "page.html")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(ConfigError, match="cannot write"):
        done.write_page(tmp_path / "folder.html")
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"a", "b", "folder.html", "page.html"}


def test_no_path_of_this_machine_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is called by its folder's name, and a file by its own name."""
    done = compare_saved([saved_run(tmp_path / "a"), saved_run(tmp_path / "b")], None, 0.05)
    assert str(tmp_path) not in done.text
    assert str(tmp_path) not in done.json
    monkeypatch.chdir(tmp_path / "a")
    assert label(Path()) == "a"
    assert label(Path("result.json")) == "a"
    assert label(Path("../copy_of_result.json")) == "copy_of_result.json"


@pytest.mark.parametrize(("text", "share"), [("5%", 0.05), ("2.5 %", 0.025), ("99%", 0.99)])
def test_a_threshold_is_a_share(text: str, share: float) -> None:
    """A percentage is read as a share of 1."""
    assert threshold_share(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["0%", "100%", "5", "-5%", "nan%", "", "five"])
def test_other_thresholds_are_refused(text: str) -> None:
    """The message names ``--threshold``."""
    with pytest.raises(ConfigError, match="--threshold"):
        threshold_share(text)


def test_require_page_names() -> None:
    """The name of a page ends in ``.html`` in upper or lower case."""
    require_page_name(Path("a.HTML"))
    with pytest.raises(ConfigError, match=r"--html result\.json"):
        require_page_name(Path("result.json"))
