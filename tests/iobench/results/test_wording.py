"""The texts that name trials, so that users can tell them apart."""

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
from iobench.results.wording import (
    ladder_table,
    params_words,
    point_words,
    rates_words,
    result_words,
)
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
LOADERS = {"loader": ["raw", "null"], "workers": [1, 2], "augment": [True, False]}
LOOP = {"group": "one", "consumer": "paced", "images_per_s": 9, "loader": "raw"}
EVERYTHING = {
    "repeats": 2,
    "disk": {"targets": [{"label": "here", "path": "."}], "layout_data": ["shards@disk"]},
    "object_store": {"targets": [{"label": "moto", "uri": "local"}]},
    "loaders": [LOADERS],
    "training": [LOOP],
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
    """A text says what is measured, and which repeat it is, counted from 1."""
    assert point_words(TrialSpec(kind, params, 1)) == text


def test_words_tell_trials_apart() -> None:
    """No two trials of a config have the same text."""
    specs = trials(BenchConfig.model_validate(EVERYTHING))
    assert len({point_words(spec) for spec in specs}) == len(specs) > 20


def test_result_has_its_figures_and_its_label() -> None:
    """A text has samples/s and MB/s if a trial has them, and what the page cache held."""
    done = Trial("i", "loader", LOADER, 0, "done", {"samples_per_s": 1234.4, "mb_per_s": 12.34})
    assert result_words(done).endswith("#1: 1,234 samples/s, 12.3 MB/s")
    cold = Trial("i", "loader", LOADER, 0, "done", {"mb_per_s": 150}, Cold("cold", "cold"))
    assert result_words(cold).endswith("#1: 150 MB/s (cold, by residency)")
    counted = replace(cold, cold=Cold("cold", "cold", 0.0, 0.9999, cache_resident=True))
    assert result_words(counted).endswith("#1: 150 MB/s (cold 99.9 %, cache-resident)")


def test_a_rate_between_two_bounds_is_a_range() -> None:
    """A range is shown if the bounds of an endless loader do not agree."""
    bounds = {"samples_per_s_low": 290.4, "samples_per_s_high": 1256.1}
    trial = Trial("i", "loader", LOADER, 0, "done", bounds)
    assert result_words(trial).endswith("#1: between 290 and 1,256 samples/s")


def test_no_label_where_the_cache_has_no_part() -> None:
    """The label ``not applicable`` is left out."""
    trial = Trial("i", "loader", LOADER, 0, "done", {"mb_per_s": 1}, Cold("", "not applicable"))
    assert result_words(trial).endswith(": 1 MB/s")


@pytest.mark.parametrize("status", ["failed", "skipped"])
def test_a_trial_without_a_figure_has_a_reason(status: str) -> None:
    """A failed or skipped trial has its reason on one line without control characters."""
    trial = Trial("i", "loader", LOADER, 2, status, reason="no \x1b[2J\nway")  # type: ignore[arg-type]
    text = result_words(trial)
    assert text.startswith(f"{status} loader raw")
    assert text.endswith("#3: no \\x1b[2J\\x0away")


@given(st.text())
def test_names_of_others_are_shown_in_one_line(group: str) -> None:
    """The name of a group may have any characters."""
    text = params_words("train", {"group": group, "input": "warm", "batch_size": 1})
    assert len(text.splitlines()) == 1
    assert text.isprintable() or not group.isprintable()


def ladder_text(trials: list[Trial]) -> str:
    """Return the tables of the ladders of these trials."""
    return "\n\n".join(ladder_table(ladder_entry(loop)) for loop in training_loops(trials))


def test_a_table_a_loop() -> None:
    """Each rung has a row, a question mark stands for an uncertain part, and gaps are named."""
    trials: list[Trial] = []
    for source, rate in (("synthetic", 100), ("copy", 200 / 3), ("collate", 40)):
        trials += loop(source, rate, metrics=GPU)
    other: list[Trial] = []
    for source, rate in (("synthetic", 100), ("warm", 50)):
        other += loop(source, rate, group="b", repeats=1)
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


def test_signs_and_emulated_devices_are_shown() -> None:
    """A negative part keeps its sign, and an emulated device is marked."""
    first, *_, below, _ = ladder_text([*loop("synthetic", 50), *loop("warm", 200 / 3)]).splitlines()
    assert first == "g (emulated)"
    assert " -5 " in below


def test_seconds_of_a_ladder_have_no_exponent() -> None:
    """Almost 1,000 s for 1,000 samples are rounded to ``1,000``."""
    lines = ladder_text([*loop("synthetic", 1 / 0.9997), *loop("warm", 0.5)]).splitlines()
    assert lines[2].split()[1] == "1,000"
    assert "e+" not in "".join(lines)


def test_the_last_column_says_what_was_shown_of_the_cache() -> None:
    """The column has the share from storage, a missing proof, and data that stay in memory."""
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
        (12_000, 19_200, "3 h 20 min to 5 h 20 min"),
        (180, 181, "3 min"),
    ],
)
def test_a_range_of_durations(low_s: float, high_s: float, text: str) -> None:
    """A range names its unit once, and is one duration if both ends read the same."""
    assert rough_duration_range(low_s, high_s) == text


def test_a_trial_of_several_hosts_begins_with_their_sum() -> None:
    """The slowest host, the spread of starts and host 0 follow; missing hosts are counted."""
    params: dict[str, Any] = {"store": "s3", "client": "boto3", "operation": "get"}
    params |= {"object_bytes": 1_000_000, "connections": 4}
    parts = []
    for host, rate in enumerate((30.0, 20.0)):
        metrics = {"mb_per_s": rate}
        parts.append(HostPart(host, "done", metrics=metrics, began_s=(0.0, 0.05), ended_s=3.0))
    hosts = combine_host_parts(2, parts)
    trial = Trial("a", "object", params, 0, "done", {"mb_per_s": 30.0}, hosts=hosts)
    assert result_words(trial) == (
        "store s3 boto3 get 1 MB x4 #1: 2 hosts together 50 MB/s, slowest host 1 with 20 MB/s, all "
        "started within 0.05 s, 30 MB/s on host 0"
    )
    missing = combine_host_parts(3, [*parts, HostPart(2, "failed", "gone")])
    assert "2 of 3 hosts together 50 MB/s" in result_words(replace(trial, hosts=missing))
    first_host = combine_host_parts(1, parts[:1])
    one_host = replace(trial, params={**params, "hosts": 1}, hosts=first_host)
    assert result_words(one_host) == "store s3 boto3 get 1 MB x4 on 1 host #1: 30 MB/s"


def loader_on_hosts(*metrics: dict[str, float]) -> str:
    """Return the outcome of a loader whose hosts have these metrics, without its settings."""
    parts = [
        HostPart(host, "done", metrics=own, began_s=(0.0, 0.01), ended_s=3.0)
        for host, own in enumerate(metrics)
    ]
    hosts = combine_host_parts(len(parts), parts)
    trial = Trial("i", "loader", LOADER, 0, "done", metrics[0], hosts=hosts)
    return result_words(trial).partition("#1: ")[2]


def test_the_figures_of_host_0_are_marked_only_if_it_has_some() -> None:
    """Nothing else is said to be of host 0, and no text ends without its figure."""
    assert loader_on_hosts({}, {"mb_per_s": 9.0}) == "2 hosts measured, all started within 0.01 s"
    assert loader_on_hosts({"mb_per_s": 9.0}, {}) == (
        "2 hosts measured, all started within 0.01 s, 9 MB/s on host 0"
    )
    assert result_words(Trial("i", "loader", LOADER, 0, "done", {})).endswith("#1: no rate")


def test_hosts_with_bounds_have_the_bounds_of_their_sum() -> None:
    """The sum has both bounds, and the slowest host is that with the lowest lower bound."""
    bounds = {"samples_per_s_low": 290.0, "samples_per_s_high": 1256.0}
    other_bounds = {"samples_per_s_low": 300.0, "samples_per_s_high": 1300.0}
    assert loader_on_hosts(bounds, other_bounds) == (
        "2 hosts together between 590 and 2,556 samples/s, slowest host 0 with 290 samples/s or "
        "more, all started within 0.01 s, between 290 and 1,256 samples/s on host 0"
    )
    assert loader_on_hosts({"samples_per_s": 1000.0}, bounds) == (
        "2 hosts together between 1,290 and 2,256 samples/s, all started within 0.01 s, 1,000 "
        "samples/s on host 0"
    )


@pytest.mark.parametrize(
    ("rates", "text"),
    [
        ({"samples_per_s_low": 290.0}, "290 samples/s or more"),
        ({"samples_per_s_high": 1256.0, "iops": 3.0}, "1,256 samples/s or less, 3 IOPS"),
    ],
)
def test_a_single_bound_is_shown_as_a_bound(rates: dict[str, float], text: str) -> None:
    """A rate with one known bound has words of its own."""
    assert rates_words(rates) == text
