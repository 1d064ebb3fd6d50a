"""Trials in words that a person can tell apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.analysis.loop_entries import ladder_entry
from iobench.analysis.loops import training_loops
from iobench.config.benchmark import BenchConfig
from iobench.config.plan import trials
from iobench.results.host_sums import combine_host_parts
from iobench.results.numbers import rough_duration_range
from iobench.results.trial import Cold, HostPart, Trial, TrialSpec
from iobench.results.wording import ladder_table, params_words, point_words, result_words
from tests.iobench.analysis.made import COLD, GPU, UNPROVED, loop

LOADER = {
    "loader": "raw",
    "data": "shards@disk",
    "cache": "cold",
    "batch_size": 64,
    "workers": 2,
    "prefetch": 2,
    "augment": False,
    "seconds": 5.0,
}
EVERYTHING = {
    "repeats": 2,
    "disk": {"targets": [{"label": "here", "path": "."}], "layout_data": ["shards@disk"]},
    "object_store": {"targets": [{"label": "moto", "uri": "local"}]},
    "loaders": [{"loader": ["raw", "null"], "workers": [1, 2], "augment": [True, False]}],
    "training": [{"group": "one", "consumer": "paced", "images_per_s": 9, "loader": "raw"}],
}


@pytest.mark.parametrize(
    ("kind", "params", "text"),
    [
        (
            "disk",
            {
                "target": "nvme",
                "operation": "read",
                "pattern": "sequential",
                "block_bytes": 2**20,
                "parallelism": 4,
                "cache": "cold",
            },
            "disk nvme read sequential 1 MiB x4 cold #2",
        ),
        (
            "layout",
            {"data": "files@disk", "access": "files", "cache": "warm", "parallelism": 8},
            "layout files@disk files x8 warm #2",
        ),
        (
            "object",
            {
                "store": "s3",
                "client": "boto3",
                "operation": "get",
                "object_bytes": 5000,
                "connections": 16,
            },
            "store s3 boto3 get 5 kB x16 #2",
        ),
        (
            "disk",
            {
                "target": "nvme",
                "operation": "read",
                "pattern": "random",
                "block_bytes": 2**20,
                "parallelism": 4,
                "cache": "cold",
                "engine": "fio",
            },
            "disk nvme read random 1 MiB x4 cold by fio #2",
        ),
        ("loader", LOADER, "loader raw shards@disk cold workers=2 batch=64 augment=no #2"),
        (
            "train",
            {"group": "LeNet", "input": "warm", "batch_size": 32},
            "train LeNet warm batch=32 #2",
        ),
        (
            "train",
            {"group": "LeNet", "input": "warm", "batch_size": 32, "devices": "all"},
            "train LeNet warm batch=32 devices=all #2",
        ),
        ("something else", {}, "something else #2"),
    ],
)
def test_each_kind_has_its_words(kind: str, params: dict[str, object], text: str) -> None:
    """What is measured and which repeat, counted from 1."""
    assert point_words(TrialSpec(kind, params, 1)) == text


def test_words_tell_trials_apart() -> None:
    """No two trials of a config are called the same."""
    specs = trials(BenchConfig.model_validate(EVERYTHING))
    assert len({point_words(spec) for spec in specs}) == len(specs) > 20


def test_result_has_its_figures_and_its_label() -> None:
    """Samples/s and MB/s where a trial has them, and what the cache held."""
    done = Trial("i", "loader", LOADER, 0, "done", {"samples_per_s": 1234.4, "mb_per_s": 12.34})
    assert result_words(done).endswith("#1: 1,234 samples/s, 12.3 MB/s")
    cold = Trial("i", "loader", LOADER, 0, "done", {"mb_per_s": 150}, Cold("cold", "cold"))
    assert result_words(cold).endswith("#1: 150 MB/s (cold, by residency)")
    counted = replace(cold, cold=Cold("cold", "cold", 0.0, 0.9999, cache_resident=True))
    assert result_words(counted).endswith("#1: 150 MB/s (cold 99.9 %, cache-resident)")


def test_a_rate_between_two_bounds_is_a_range() -> None:
    """Where the bounds of an endless loader do not agree."""
    bounds = {"samples_per_s_low": 290.4, "samples_per_s_high": 1256.1}
    trial = Trial("i", "loader", LOADER, 0, "done", bounds)
    assert result_words(trial).endswith("#1: between 290 and 1,256 samples/s")


def test_no_label_where_the_cache_has_no_part() -> None:
    """``not applicable`` is not said."""
    trial = Trial("i", "loader", LOADER, 0, "done", {"mb_per_s": 1}, Cold("", "not applicable"))
    assert result_words(trial).endswith(": 1 MB/s")


@pytest.mark.parametrize("status", ["failed", "skipped"])
def test_what_has_no_figure_has_a_reason(status: str) -> None:
    """A failed or skipped trial says why, in one line that no terminal obeys."""
    trial = Trial("i", "loader", LOADER, 2, status, reason="no \x1b[2J\nway")  # type: ignore[arg-type]
    text = result_words(trial)
    assert text.startswith(f"{status} loader raw")
    assert text.endswith("#3: no \\x1b[2J\\x0away")


@given(st.text())
def test_names_of_others_are_shown_in_one_line(group: str) -> None:
    """A group may be called anything."""
    text = params_words("train", {"group": group, "input": "warm", "batch_size": 1})
    assert len(text.splitlines()) == 1
    assert text.isprintable() or not group.isprintable()


def ladder_text(trials: list[Trial]) -> str:
    """The tables."""
    return "\n\n".join(ladder_table(ladder_entry(loop)) for loop in training_loops(trials))


def test_a_table_a_loop() -> None:
    """A row a rung, a question mark where a part cannot be told, and what was not measured."""
    trials = [
        trial
        for source, rate in (("synthetic", 100), ("copy", 200 / 3), ("collate", 40))
        for trial in loop(source, rate, metrics=GPU)
    ]
    other = [*loop("synthetic", 100, group="b", repeats=1), *loop("warm", 50, group="b", repeats=1)]
    first, second = ladder_text([*trials, *other]).split("\n\n")
    lines = first.splitlines()
    assert lines[0] == "g"
    assert lines[1].split() == ["rung", "s/1,000", "samples", "adds", "between", "share", "cache"]
    assert [line.split("  ")[0] for line in lines[2:5]] == [
        "device-resident",
        "+ copy to the device (not pinned)",
        "+ collate and inter-process",
    ]
    assert lines[4].split()[-7:][:2] == ["25", "10"]
    assert lines[5].startswith("not measured: augment, decode, warm, cold, store: not requested")
    assert " ?" in second.splitlines()[3]


def test_what_a_reader_must_not_miss() -> None:
    """A part below 0 keeps its sign, an emulated device is called one."""
    first, *_, below, _ = ladder_text([*loop("synthetic", 50), *loop("warm", 200 / 3)]).splitlines()
    assert first == "g (emulated)"
    assert " -5 " in below


def test_the_last_column_says_what_was_shown_of_the_cache() -> None:
    """The share that came from storage; what was not proved; data that may stay in memory."""
    resident = replace(COLD, physical_ratio=0.98, cache_resident=True)
    for cold, message in (
        (resident, "cold 98 %, cache-resident"),
        (UNPROVED, "cold requested, not proved: half was resident"),
    ):
        lines = ladder_text([*loop("synthetic", 90), *loop("cold", 50, cold=cold)]).splitlines()
        assert lines[3].endswith(message)


@pytest.mark.parametrize(
    ("low_s", "high_s", "text"),
    [
        (12.0, 45.0, "12.0 to 45.0 s"),
        (180, 480, "3 to 8 min"),
        (45, 180, "45.0 s to 3 min"),
        (3_600, 12_000, "1 h to 3 h 20 min"),
        (180, 181, "3 min"),
    ],
)
def test_a_range_of_durations(low_s: float, high_s: float, text: str) -> None:
    """A range names its unit once, and is one duration if both ends read the same."""
    assert rough_duration_range(low_s, high_s) == text


def test_a_trial_of_several_hosts_begins_with_their_sum() -> None:
    """Then follow the slowest host, the spread of starts, and host 0; a missing host is counted."""
    params: dict[str, Any] = {"store": "s3", "client": "boto3", "operation": "get"}
    params |= {"object_bytes": 1_000_000, "connections": 4}
    parts = [
        HostPart(host, "done", metrics={"mb_per_s": rate}, began_s=(0.0, 0.05), ended_s=3.0)
        for host, rate in enumerate((30.0, 20.0))
    ]
    trial = Trial(
        "a", "object", params, 0, "done", {"mb_per_s": 30.0}, hosts=combine_host_parts(2, parts)
    )
    assert result_words(trial) == (
        "store s3 boto3 get 1 MB x4 #1: 2 hosts together 50 MB/s, slowest host 1 with 20 MB/s, all "
        "started within 0.05 s, 30 MB/s on host 0"
    )
    missing = combine_host_parts(3, [*parts, HostPart(2, "failed", "gone")])
    assert "2 of 3 hosts together 50 MB/s" in result_words(replace(trial, hosts=missing))
    one_host = replace(trial, params={**params, "hosts": 1}, hosts=combine_host_parts(1, parts[:1]))
    assert result_words(one_host) == "store s3 boto3 get 1 MB x4 on 1 host #1: 30 MB/s"
