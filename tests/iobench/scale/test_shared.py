"""Processes on one machine, beside one alone."""

from __future__ import annotations

import pytest

from iobench.diagnosis.processes import findings
from iobench.scale import shared
from tests.iobench.scale.made import loader


def test_half_is_half() -> None:
    """Four together give what two alone would."""
    trials = [
        *(loader(100.0, repeat=repeat) for repeat in range(3)),
        *(loader(200.0, repeat=repeat, processes=4) for repeat in range(3)),
    ]
    one, four = shared(trials)
    assert (one["processes"], one["efficiency"]["median"]) == (1, 1.0)
    assert (four["processes"], four["efficiency"]["median"]) == (4, 0.5)
    assert four["workers"] == 2


def test_ratios_are_of_one_round() -> None:
    """A machine that got slower between rounds is none that shares."""
    trials = [loader(100.0), loader(50.0, repeat=1)]
    trials += [loader(200.0, processes=2), loader(100.0, repeat=1, processes=2)]
    found = shared(trials)[1]["efficiency"]
    assert (found["low"], found["high"]) == pytest.approx((1.0, 1.0))


def test_other_settings_are_other_points() -> None:
    """Nothing is held against a loader with other workers, nor where one alone was not measured."""
    assert shared([loader(1.0, workers=1), loader(1.0, processes=2)]) == []
    assert shared([loader(1.0)]) == []


def test_processes_that_share_are_found() -> None:
    """By what they give together; where they share nothing, nothing is said."""
    trials = [
        *(loader(100.0, repeat=repeat) for repeat in range(6)),
        *(loader(150.0, repeat=repeat, processes=2) for repeat in range(6)),
        *(loader(160.0, repeat=repeat, processes=4) for repeat in range(6)),
    ]
    (found,) = findings(shared(trials))
    assert found.code == "processes-share"
    assert found.evidence == (
        "torch-map from shards@disk, 2 workers each: 4 processes give 1.60 times what one gives "
        "(1.60 to 1.60)"
    )
    assert list(findings(shared([loader(100.0), loader(190.0, processes=2)]))) == []
