"""Which requests a schedule hits."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.faults import Delay, Match, Reset, Rule, Schedule, Status

SLOW_DOWN = Status(503, "SlowDown")


def test_match_without_conditions_fits_every_request() -> None:
    """A bare Match fits whatever the method and the path."""
    assert Match().fits("GET", "/bucket/key?partNumber=1")


@pytest.mark.parametrize(
    ("match", "fits"),
    [
        (Match(method="PUT"), False),
        (Match(method="GET"), True),
        (Match(path=r"\.tfrecord"), True),
        (Match(path=r"^/data/train-\d+"), True),
        (Match(path=r"\?versionId=3$"), True),
        (Match(path=r"^train"), False),
        (Match(method="GET", path=r"/val-"), False),
        (Match(method="PUT", path=r"/train-"), False),
    ],
)
def test_match_needs_method_and_path(match: Match, fits: bool) -> None:
    """A Match fits where the method is equal and the pattern is found in path?query."""
    assert match.fits("GET", "/data/train-00001.tfrecord?versionId=3") is fits


@pytest.mark.parametrize("fields", [{"skip": -1}, {"times": -1}, {"every": 0}, {"path": "("}])
def test_match_that_cannot_be_is_refused(fields: dict[str, object]) -> None:
    """Negative counts and broken patterns are refused when the Match is built."""
    with pytest.raises(ValueError, match="Match: "):
        Match(**fields)  # type: ignore[arg-type]


@given(
    skip=st.integers(0, 6),
    times=st.none() | st.integers(0, 6),
    every=st.integers(1, 4),
    methods=st.lists(st.sampled_from(["GET", "PUT"]), max_size=20),
)
def test_skip_and_times_select_a_slice_of_the_fitting_requests(
    skip: int, times: int | None, every: int, methods: list[str]
) -> None:
    """Of the fitting requests exactly [skip : skip + times : every] are hit, and no other."""
    schedule = Schedule([Rule(Match("GET", skip=skip, times=times, every=every), SLOW_DOWN)])
    hit = [bool(schedule.faults_for(method, "/")) for method in methods]
    gets = [index for index, method in enumerate(methods) if method == "GET"]
    expected = (gets[skip:] if times is None else gets[skip : skip + times])[::every]
    assert [index for index, one in enumerate(hit) if one] == expected


@given(
    st.lists(st.tuples(st.sampled_from(["GET", "PUT"]), st.sampled_from(["/a", "/b"]))),
    st.lists(st.tuples(st.sampled_from([None, "GET"]), st.integers(0, 3)), max_size=4),
)
def test_rules_do_not_influence_each_other(
    requests: list[tuple[str, str]], matches: list[tuple[str | None, int]]
) -> None:
    """Several rules hit what each of them hits alone, in the order of the rules."""
    rules = [
        Rule(Match(method, "/a", skip=skip, times=2), Delay(number))
        for number, (method, skip) in enumerate(matches)
    ]
    together = Schedule(rules)
    alone = [Schedule([rule]) for rule in rules]
    for request in requests:
        expected = [fault for one in alone for fault in one.faults_for(*request)]
        assert list(together.faults_for(*request)) == expected


def test_replace_counts_from_zero() -> None:
    """Replaced rules forget how many requests have fitted before."""
    rules = [Rule(Match(times=1), Reset())]
    schedule = Schedule(rules)
    assert [schedule.faults_for("GET", "/") for _ in range(2)] == [(Reset(),), ()]
    schedule.replace(rules)
    assert schedule.faults_for("GET", "/") == (Reset(),)
    schedule.replace(())
    assert schedule.faults_for("GET", "/") == ()


def test_threads_share_one_count() -> None:
    """Of many requests at once, exactly ``times`` are hit."""
    schedule = Schedule([Rule(Match(skip=100, times=250), SLOW_DOWN)])
    hits: list[int] = []

    def ask() -> None:
        hits.append(sum(len(schedule.faults_for("GET", "/")) for _ in range(100)))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(hits) == 250
