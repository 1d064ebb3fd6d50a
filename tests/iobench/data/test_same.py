"""No figures of two data sets under one name in one run."""

from __future__ import annotations

import pytest

from iobench.data.same import SameData
from iobench.trial import Place


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> dict[str, str | None]:
    """Fingerprints by place."""
    found: dict[str, str | None] = {"/a": "one", "/b": "two", "/c": None}
    monkeypatch.setattr("iobench.data.same.fingerprint", lambda place: found[place.uri])
    return found


def test_what_changes_is_named(told: dict[str, str | None]) -> None:
    """Each name for itself; what tells nothing is taken as it is."""
    places = {"shards@disk": Place("/a", "shards"), "shards-4MB@disk": Place("/b", "shards")}
    places["files@disk"] = Place("/c", "files")
    same = SameData({})
    assert same.made_anew(places) == same.made_anew(places) == ""
    assert same.fingerprints == {"shards@disk": "one", "shards-4MB@disk": "two"}
    told["/b"] = "three"
    assert same.made_anew(places).startswith("shards-4MB@disk (/b) were made anew")
    assert same.fingerprints["shards-4MB@disk"] == "two"
    told["/b"] = None  # away: the trial itself says so
    assert same.made_anew(places) == ""


def test_those_of_trials_before_count(told: dict[str, str | None]) -> None:
    """A run that is resumed."""
    known = {"shards@disk": "older"}
    assert SameData(known).made_anew({"shards@disk": Place("/a", "shards")})
    assert known == {"shards@disk": "older"}
