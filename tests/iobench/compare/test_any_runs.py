"""Whatever two results hold, they are compared or refused, and what is said is text."""

from __future__ import annotations

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from iobench.compare import Saved, compare, trend
from iobench.compare.charts import bars, curves
from iobench.compare.exported import comparison_object, trend_object
from iobench.compare.page import comparison_page, trend_page
from iobench.compare.text import comparison_text, trend_text
from iobench.errors import NotComparable
from iobench.report.charts import as_items
from iobench.result import Result
from iobench.trial import Cold, Trial

words = st.sampled_from(["", "warm", "cold", "a\nb", "\udce9"]) | st.text(max_size=3)
values = st.none() | st.booleans() | st.integers() | st.floats() | words
rates = st.floats(0, 1e12) | values
kinds = st.sampled_from(["disk", "loader", "train", "object", "layout", "theirs"])
METRICS = ("samples_per_s", "mb_per_s", "time_to_first_batch_s", "latency_s_p99", "device")
trials = st.builds(
    Trial,
    id=words,
    kind=kinds,
    params=st.dictionaries(st.sampled_from(["cache", "loader", "input", "x"]), values, max_size=2),
    repeat=st.integers(0, 5),
    status=st.sampled_from(["done", "done", "done", "failed", "skipped"]),
    metrics=st.dictionaries(st.sampled_from(METRICS), rates, max_size=4),
    cold=st.none() | st.builds(Cold, asked=words, label=words),
    reason=words,
)
parts = st.dictionaries(words, values | st.lists(values, max_size=2), max_size=3)
results = st.builds(
    Result,
    name=words,
    started=words | st.datetimes().map(lambda moment: moment.isoformat()),
    environment=parts,
    config=parts,
    trials=st.lists(trials, max_size=8).map(tuple),
)


@given(results, results, st.floats(0.001, 0.9))
def test_any_two_runs(base: Result, new: Result, threshold: float) -> None:
    """With and without a figure in common; each ratio within its interval."""
    try:
        found = compare(Saved("a", base), Saved("b", new), threshold, force=True)
    except NotComparable:
        return
    comparison_text(found).encode()
    json.dumps(comparison_object(found))
    comparison_page(found)
    json.dumps(as_items(bars(found)))
    for change in found.changes:
        assert change.ratio.low <= change.ratio.ratio <= change.ratio.high
        assert math.isfinite(change.worse)


@given(st.lists(results, min_size=2, max_size=3), st.lists(trials, min_size=1, max_size=3))
def test_any_trend(runs: list[Result], shared: list[Trial]) -> None:
    """Of runs that have something in common with the base."""
    every = [
        Saved(str(i), Result(run.name, run.started, {}, {}, (*run.trials, *shared)))
        for i, run in enumerate(runs)
    ]
    try:
        found = trend(every[0], every[1:], 0.05)
    except NotComparable:
        return
    assert sorted(int(run.where) for run in found.runs) == list(range(len(runs)))
    trend_text(found).encode()
    json.dumps(trend_object(found))
    trend_page(found)
    json.dumps(as_items(curves(found)))
