"""The same loader over the same images in two forms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from iobench.report.model.data_pairs import data_pairs
from iobench.report.model.shapes import Table, Words
from tests.iobench.report.results import PROVED, UNPROVED, WARM, Run

CONFIG = {"data": {"size": 256, "quality": 90, "shards": None}}


def measured(run: Run, data: str, *rates: float, cold: Any = WARM, **changed: Any) -> None:
    """torch-map over it, with a rate each repeat; a sample has 42 kB."""
    params = {"loader": "torch-map", "workers": 2, **changed}
    cache = "cold" if cold in (PROVED, UNPROVED) else "warm"
    workers = params.pop("workers")
    before = len(run.trials)
    run._loader(params["loader"], data, cache, cold, workers, 64, 1.0)
    kept = run.trials[before : before + len(rates)]
    del run.trials[before:]
    for trial, rate in zip(kept, rates, strict=True):
        metrics = {**trial.metrics, "samples_per_s": rate, "mb_per_s": rate * 0.042}
        run.trials.append(replace(trial, metrics=metrics))


def tables(run: Run, config: dict[str, Any] | None = None) -> dict[str, Table]:
    """By title."""
    blocks = data_pairs(run.result(config=CONFIG if config is None else config))
    return {block.title: block for block in blocks if isinstance(block, Table)}


def texts(table: Table) -> list[list[str]]:
    """Of all cells."""
    return [[entry.text for entry in row] for row in table.rows]


def test_ratios_are_of_pairs() -> None:
    """Two rounds, of which the second was slow for both: the ratio does not scatter."""
    run = Run(repeats=2)
    measured(run, "originals@disk", 200.0, 100.0)
    measured(run, "shards@disk", 600.0, 300.0)
    table = tables(run)["Resized beforehand"]
    (row,) = texts(table)
    assert row == [
        *("torch-map", "originals@disk", "shards@disk", "warm"),
        *("150", "450", "3 ×", "42.0", "42.0"),
    ]
    assert table.rows[0][6].note == "3 to 3, 2 rounds"


def test_repeats_without_a_partner_are_left_out() -> None:
    """One of the two failed in the second round."""
    run = Run(repeats=2)
    measured(run, "photos@disk", 200.0, 1.0)
    measured(run, "files@disk", 600.0)
    (row,) = texts(tables(run)["Resized beforehand"])
    assert row[6] == "3 ×"


def test_shards_of_a_size_have_partners_of_that_size() -> None:
    """On the same storage."""
    run = Run(repeats=1)
    for name in ("originals-4MB@s3", "shards-4MB@s3", "shards-16MB@s3", "shards-4MB@disk"):
        measured(run, name, 100.0)
    assert [row[1:3] for row in texts(tables(run)["Resized beforehand"])] == [
        ["originals-4MB@s3", "shards-4MB@s3"]
    ]


def test_pixels_are_set_beside_their_shards() -> None:
    """That is another question, and another table."""
    run = Run(repeats=1)
    for name, rate in (("shards@disk", 500.0), ("pixels@disk", 2000.0)):
        measured(run, name, rate)
    found = tables(run)
    assert list(found) == ["Compressed or decoded"]
    assert texts(found["Compressed or decoded"])[0][4:7] == ["500", "2\u202f000", "4 ×"]


def test_trials_that_differ_in_more_are_no_pair() -> None:
    """In loader, settings, or what the cache was shown to hold."""
    run = Run(repeats=1)
    measured(run, "originals@disk", 100.0, cold=PROVED)
    measured(run, "shards@disk", 100.0, cold=UNPROVED)
    measured(run, "shards@disk", 100.0, loader="torch-iterable")
    measured(run, "shards@disk", 100.0, workers=4)
    assert tables(run) == {}


def test_what_differs_between_pairs_is_named() -> None:
    """Workers here; what all share is not."""
    run = Run(repeats=1)
    for workers in (1, 2):
        for name in ("photos@disk", "files@disk"):
            measured(run, name, 100.0 * workers, workers=workers)
    found = texts(tables(run)["Resized beforehand"])
    assert [row[4] for row in found] == ["1 worker", "2 workers"]


def test_of_given_shards_nobody_knows_the_source() -> None:
    """So they are no pair with a source; their pixels are."""
    run = Run(repeats=1)
    for name in ("originals@disk", "shards@disk", "pixels@disk"):
        measured(run, name, 100.0)
    assert list(tables(run)) == ["Resized beforehand", "Compressed or decoded"]
    given = {"data": {**CONFIG["data"], "shards": "/data/out"}}
    assert list(tables(run, given)) == ["Compressed or decoded"]


def test_it_is_said_what_was_done_beforehand() -> None:
    """As far as the config tells."""
    run = Run(repeats=1)
    for name in ("photos@disk", "files@disk"):
        measured(run, name, 100.0)
    words = next(b for b in data_pairs(run.result(config=CONFIG)) if isinstance(b, Words))
    assert "resized beforehand to 256 pixels, quality 90." in words.lines[0]
    words = next(b for b in data_pairs(run.result(config={})) if isinstance(b, Words))
    assert "resized beforehand." in words.lines[0]


def test_other_runs_have_none() -> None:
    """Nor have names that somebody else made."""
    assert data_pairs(Run(repeats=2).loaders().shard_sizes().result()) == ()
