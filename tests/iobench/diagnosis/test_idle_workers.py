"""Workers that take memory and bring no rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iobench.diagnosis.idle_workers import findings
from iobench.result import Finding
from iobench.trial import Trial
from tests.iobench.summary.made import one

MB = 1_000_000
Points = Mapping[int, Sequence[tuple[float, float]]]


def trials(points: Points, loader: str = "torch-map", counted: str = "PSS") -> list[Trial]:
    """By workers: samples/s and megabytes of each repeat."""
    made = []
    for workers, repeats in points.items():
        params = {
            "loader": loader,
            "data": "shards@disk",
            "cache": "warm",
            "batch_size": 64,
            "workers": workers,
        }
        for repeat, (rate, size) in enumerate(repeats):
            use = {"memory_bytes": size * MB, "memory_counted": counted}
            made.append(one("loader", params, repeat=repeat, samples_per_s=rate, **use))
    return made


def found(*given: list[Trial]) -> list[Finding]:
    """Of all of them."""
    return list(findings([trial for part in given for trial in part]))


def test_more_memory_for_the_same_rate() -> None:
    """Told with both intervals, of pairs."""
    (finding,) = found(
        trials({2: [(1000, 500), (900, 510)], 4: [(1000, 800), (909, 830)]}),
    )
    assert finding.code == "workers-for-nothing"
    assert finding.evidence == (
        "loader torch-map shards@disk warm workers=2 batch=64: 4 workers take 310 MB more memory "
        "(300 to 320) and give 1.005 times the rate (1.000 to 1.010)"
    )


def test_a_rate_that_grows_is_worth_its_memory() -> None:
    """Nor is a gain of some per cent called nothing."""
    assert found(trials({1: [(1000, 500)] * 3, 2: [(1900, 800)] * 3})) == []
    assert found(trials({1: [(1000, 500)] * 3, 2: [(1030, 800)] * 3})) == []


def test_what_cannot_be_told_is_not() -> None:
    """A rate that scatters above, memory that may be less."""
    assert found(trials({1: [(1000, 500)] * 2, 2: [(900, 800), (1300, 800)]})) == []
    assert found(trials({1: [(1000, 500)] * 2, 2: [(1000, 490), (1000, 800)]})) == []


def test_only_neighbours_that_differ_in_workers_alone() -> None:
    """Another loader's workers are not compared; the dearest step is told, others counted."""
    flat: Points = {1: [(1000, 300)], 2: [(1000, 400)], 4: [(1000, 900)]}
    assert found(trials({1: [(1000, 300)]}), trials({2: [(1000, 900)]}, "torch-iterable")) == []
    (finding,) = found(trials(flat), trials(flat, "torch-iterable"))
    assert "workers=2 batch=64: 4 workers take 500 MB more" in finding.evidence
    assert finding.evidence.endswith("; so it is in 3 more steps of workers")


def test_memory_that_was_counted_in_two_ways_is_not_compared() -> None:
    """RSS holds shared pages many times."""
    mixed = [
        *trials({1: [(1000, 300)]}),
        *trials({2: [(1000, 900)]}, counted="RSS"),
    ]
    assert list(findings(mixed)) == []


def test_runs_without_memory_say_nothing() -> None:
    """Those of before."""
    params = {"loader": "raw", "data": "shards@disk", "cache": "warm", "batch_size": 64}
    plain = [one("loader", {**params, "workers": n}, samples_per_s=10.0) for n in (1, 2)]
    assert list(findings(plain)) == []
