"""A split in figures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import dataprep
from dataprep.inspection.summary import Spread, summarise


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=50))
def test_spread(values: list[int]) -> None:
    """Least, most, sum and mean are those of the values, and quantiles are values."""
    found = Spread.of(values)
    assert (found.least, found.most, found.total) == (min(values), max(values), sum(values))
    assert found.least <= found.p5 <= found.median <= found.p95 <= found.most
    assert {found.p5, found.median, found.p95} <= set(values)
    assert np.isclose(found.mean, sum(values) / len(values))


def test_of_nothing() -> None:
    """Of no values all is 0."""
    assert Spread.of([]) == Spread(0, 0, 0, 0, 0, 0, 0.0, 0)


def test_the_median() -> None:
    """Quantiles of a hundred and one values are those at their places."""
    found = Spread.of(range(101))
    assert (found.p5, found.median, found.p95) == (5, 50, 95)


def test_a_split(made: Path) -> None:
    """Every figure is that of the manifest or of a column of the table."""
    dataset = dataprep.open(made)
    found = summarise(dataset.manifest, dataset.samples)
    written = dataset.written
    assert found.samples["written"] == len(dataset)
    assert found.samples["failed"] == 1
    assert [form.name for form in found.formats] == ["tfrecord", "recordio"]
    assert found.formats[0].records.total == written["tfrecord_length"].sum()
    assert found.formats[0].shards.count == len(dataset.shards())
    counts = written.groupby("label").size()
    assert (found.classes.count, found.classes.total) == (6, len(dataset))
    assert found.most[0].samples == counts.max() == found.classes.most
    assert found.fewest[0].samples == counts.min() == found.classes.least
    assert (found.width.least, found.width.most) == (written["width"].min(), written["width"].max())
    assert found.source_bytes.total == written["source_bytes"].sum()
    assert sum(found.actions.values()) == len(dataset)
    (reason,) = found.reasons
    assert reason.startswith("failed: ")
    assert json.loads(json.dumps(found.as_dict()))["complete"] is True
