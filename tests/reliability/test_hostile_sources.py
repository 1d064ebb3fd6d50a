"""Hostile images in other kinds of sources: a few of each, and that the checks can fail."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.reliability.hostile_sources import JOBS, tried, unaccounted
from tests.reliability.images.corpus import corpus
from tests.reliability.images.tree import name_of, write

SEED = int(os.environ.get("DATAPREP_SEED", "20"))
EACH = 1


@pytest.mark.parametrize(("what", "engine"), JOBS, ids=[what for what, _ in JOBS])
def test_every_file_is_accounted_for(what: str, engine: str, tmp_path: Path) -> None:
    """Once, as it may be, with a reason; a table that lacks one, or has one twice, is found."""
    print(f"DATAPREP_SEED={SEED}")  # noqa: T201
    cases = corpus(SEED, EACH, large=False)
    named = {name_of(number, case): case for number, case in enumerate(cases)}
    write(cases, tmp_path / "tree")
    row, wrong = tried(what, engine, named, tmp_path)
    assert (row.lost, wrong) == (0, [])
    (table,) = tmp_path.glob("output*/train.samples.parquet")
    rows = pq.read_table(table)
    by_number = what in ("TFRecord", "RecordIO")
    pq.write_table(rows.slice(1), table)
    assert list(unaccounted(table.parent, named, by_number=by_number))
    pq.write_table(rows.take([0, 0, *range(2, len(rows))]), table)
    assert list(unaccounted(table.parent, named, by_number=by_number))
