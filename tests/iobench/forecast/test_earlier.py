"""What was measured before stands in place of what is assumed."""

from __future__ import annotations

from typing import Any

from iobench.forecast import Predicted
from iobench.forecast.bounds import Bounds
from iobench.forecast.earlier import Earlier
from iobench.trial import Trial, TrialSpec

PARAMS = {"loader": "raw", "data": "shards@disk", "workers": 2, "seconds": 3.0}


def trial(seconds: float, repeat: int = 0, status: Any = "done", **changed: Any) -> Trial:
    """One that took so long, of which three seconds were measured."""
    params = {**PARAMS, **changed}
    return Trial("id", "loader", params, repeat, status, {"seconds": 3.0}, seconds=seconds)


def told(earlier: list[Trial], **changed: Any) -> Predicted:
    """What is said of a point after ``earlier``."""
    before = Predicted(Bounds(0, 9), 99.0, unknown=("how long it takes", "why"), assumed=("x",))
    return Earlier(earlier).told(TrialSpec("loader", {**PARAMS, **changed}, 5), before)


def test_the_same_point_tells() -> None:
    """The median of its trials that are done."""
    found = told([trial(4.0), trial(9.0, 1), trial(5.0, 2), trial(500.0, 3, "failed")])
    assert found.likely_s == 5.0
    assert found.unknown == ("why",)
    assert found.assumed == ("trials that were measured before take as long again",)


def test_one_like_it_tells_how_long_it_starts() -> None:
    """With other workers, the same loader and storage."""
    assert told([trial(4.5, workers=8)], seconds=10.0).likely_s == 11.5
    assert told([trial(4.5, data="shards@s3")], seconds=10.0).likely_s == 99.0


def test_nothing_tells_nothing() -> None:
    """The assumption stands."""
    assert told([]).likely_s == 99.0
    assert told([trial(4.0, status="skipped")]).assumed == ("x",)
