"""``result.json``: a result is read as it was written, and older results stay readable."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import SchemaTooNew
from iobench.errors import ResultError
from iobench.results.host_sums import combine_host_parts
from iobench.results.result import (
    SCHEMA,
    STEADY_STATE,
    Finding,
    HostFacts,
    Result,
    read_log,
    run_line,
    trial_line,
)
from iobench.results.trial import Cold, HostPart, Trial, TrialSpec

any_text = st.text(max_size=8)
numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.none() | st.booleans() | numbers | any_text | st.lists(any_text, max_size=2)
json_objects = st.dictionaries(any_text, json_values, max_size=4)
colds = st.none() | st.builds(
    Cold,
    asked=any_text,
    label=any_text,
    resident_before=st.none() | st.floats(0, 1),
    physical_ratio=st.none() | st.floats(0, 9),
    cache_resident=st.none() | st.booleans(),
    why=any_text,
)
drawn_trials = st.builds(
    Trial,
    id=any_text,
    kind=any_text,
    params=json_objects,
    repeat=st.integers(0, 99),
    status=st.sampled_from(["done", "failed", "skipped"]),
    metrics=json_objects,
    cold=colds,
    reason=any_text,
    started_s=st.floats(0, 2e9),
    seconds=st.floats(0, 1e6),
)
findings = st.builds(Finding, any_text, any_text, any_text, any_text)
results = st.builds(
    Result,
    name=any_text,
    started=any_text,
    environment=json_objects,
    config=json_objects,
    trials=st.lists(drawn_trials, max_size=3).map(tuple),
    summary=json_objects,
    findings=st.lists(findings, max_size=2).map(tuple),
    forecast=json_objects,
    rates=any_text,
)
EMPTY = Result("n", "2026-11-21T12:00:00+00:00", {}, {})


@given(results)
def test_a_written_result_is_read_as_it_was(result: Result) -> None:
    """Every field survives JSON, and the bytes are the same again."""
    data = result.to_json()
    parsed = Result.from_json(data, "result.json")
    assert parsed == result
    assert parsed.to_json() == data


@given(results, drawn_trials)
def test_a_trial_more(result: Result, trial: Trial) -> None:
    """The new trial comes last, and the given result stays as it was."""
    before = tuple(result.trials)
    extended = result.with_trial(trial)
    assert tuple(extended.trials) == (*before, trial)
    assert tuple(result.trials) == before


def test_the_schema_comes_first() -> None:
    """Readers and later versions find the schema at the beginning."""
    first = ("schema", "name", "started", "environment", "config", "trials", "summary")
    keys = [*first, "findings", "run_id", "forecast", "references"]
    assert list(json.loads(EMPTY.to_json())) == keys


def test_the_rule_of_rates_is_read_and_written() -> None:
    """Results of earlier versions have no rule, and stay without it."""
    assert Result.from_json(EMPTY.to_json(), "result.json").rates == ""
    new = replace(EMPTY, rates=STEADY_STATE)
    assert json.loads(new.to_json())["rates"] == "steady-state"
    assert Result.from_json(new.to_json(), "result.json") == new


def test_several_hosts_are_read_and_written() -> None:
    """A result of several hosts has their parts; one of a single host lacks these keys."""
    single_host = EMPTY.with_trial(Trial("i", "k", {}, 0, "done"))
    assert "hosts" not in json.loads(single_host.to_json())
    parts = [
        HostPart(0, "done", "", {"mb_per_s": 2.0}, Cold("cold", "cold"), (0.0, 0.25), 3.0),
        HostPart(1, "failed", "it gave no result"),
    ]
    trial = Trial("i", "k", {}, 0, "done", hosts=combine_host_parts(2, parts))
    facts = (HostFacts(0), HostFacts(1, {"processors": 4}, {"puts": 3}))
    several_hosts = replace(EMPTY, hosts=facts)
    saved = several_hosts.with_trial(trial)
    assert Result.from_json(saved.to_json(), "result.json") == saved
    line = read_log(b"".join([run_line(several_hosts), trial_line(trial, {}, {})]), "log")
    assert line.result == saved


def test_figures_that_are_none_are_not_written() -> None:
    """A result with NaN is refused, since NaN is not JSON."""
    broken = EMPTY.with_trial(Trial("i", "k", {}, 0, "done", {"mb_per_s": float("nan")}))
    with pytest.raises(ValueError, match="not JSON compliant"):
        broken.to_json()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no json",
        b"\xff\xfe",
        b"[]",
        b"[" * 100_000,
        b'{"schema": 1, "trials": [1e999]}',
        b"{}",
        b'{"schema": 1}',
        b'{"schema": "one"}',
        EMPTY.to_json()[:-20],
        EMPTY.to_json().replace(b'"trials": []', b'"trials": [{}]'),
        EMPTY.to_json().replace(b'"trials": []', b'"trials": 3'),
        EMPTY.to_json().replace(b'"name"', b'"nmae"'),
        EMPTY.to_json().replace(b'"findings": []', b'"findings": [[]]'),
    ],
)
def test_a_file_without_a_result_is_refused(data: bytes) -> None:
    """Truncated, foreign and edited files raise one error, which names the file."""
    with pytest.raises(ResultError, match=r"result\.json"):
        Result.from_json(data, "result.json")


def test_a_newer_result_is_refused_as_newer() -> None:
    """The error says that this version is too old for the schema."""
    content = {**json.loads(EMPTY.to_json()), "schema": SCHEMA + 1, "novelty": 1}
    with pytest.raises(SchemaTooNew):
        Result.from_json(json.dumps(content).encode(), "result.json")


@given(results, json_objects)
def test_parts_that_a_later_version_added_are_left_aside(
    result: Result, novelty: dict[str, Any]
) -> None:
    """Unknown keys of the same schema are ignored at every level."""
    content = json.loads(result.to_json())
    parts = [content, *content["trials"], *content["findings"]]
    parts += [trial["cold"] for trial in content["trials"] if trial["cold"]]
    for part in parts:
        part["a later part"] = novelty
    assert Result.from_json(json.dumps(content).encode(), "result.json") == result


def test_schema_1_stays_readable() -> None:
    """A result of the first version is read."""
    cold: dict[str, Any] = {
        "asked": "cold",
        "label": "warm",
        "resident_before": 0.5,
        "physical_ratio": None,
        "cache_resident": True,
        "why": "half",
    }
    trial: dict[str, Any] = {
        "id": "disk/target=here/0",
        "kind": "disk",
        "params": {"target": "here"},
        "repeat": 0,
        "status": "done",
        "metrics": {"mb_per_s": 1500.0},
        "cold": cold,
        "reason": "",
        "started_s": 1.5,
        "seconds": 2.5,
    }
    skipped = {**trial, "cold": None, "status": "skipped", "reason": "no"}
    content = {
        "schema": 1,
        "name": "old",
        "started": "2026-11-21T12:00:00+00:00",
        "environment": {"processors": 2},
        "config": {"repeats": 1},
        "trials": [trial, skipped],
        "summary": {"verdict": "v"},
        "findings": [{"code": "c", "severity": "info", "evidence": "e", "advice": "a"}],
    }
    parsed = Result.from_json(json.dumps(content).encode(), "result.json")
    assert parsed.trials[0].cold == Cold("cold", "warm", 0.5, None, True, "half")
    assert (parsed.trials[1].cold, parsed.trials[1].reason) == (None, "no")
    assert parsed.findings == (Finding("c", "info", "e", "a"),)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("config",), []),
        (("environment",), None),
        (("started",), 3),
        (("trials", 0, "params"), "x"),
        (("trials", 0, "status"), "odd"),
        (("trials", 0, "metrics"), [1]),
        (("trials", 0, "kind"), None),
        (("trials", 0, "reason"), {}),
        (("trials", 0, "cold"), {"asked": "cold"}),
    ],
)
def test_parts_that_are_something_else_are_refused(path: tuple[Any, ...], value: object) -> None:
    """The error names the key with the wrong value."""
    trial = Trial("a", "disk", {}, 0, "done")
    content = json.loads(Result("n", "2026-11-21T12:00:00+00:00", {}, {}, (trial,)).to_json())
    part = content
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    key = r"\.".join(str(key_or_index) for key_or_index in path)
    with pytest.raises(ResultError, match=f"r.json: not the result of a run: '{key}"):
        Result.from_json(json.dumps(content).encode(), "r.json")


def test_an_id_names_everything_that_is_measured() -> None:
    """An id has the kind, the params in order, and the repeat."""
    spec = TrialSpec("loader", {"loader": "raw", "workers": 2, "sizes": [1, 2]}, 3)
    assert spec.id == "loader/loader=raw,workers=2,sizes=1+2/3"
