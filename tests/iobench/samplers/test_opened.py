"""Which samplers this machine has."""

from __future__ import annotations

from typing import Any

import pytest

from dataprep.errors import ConfigError
from iobench.samplers import opened
from tests.iobench.samplers.odd_samplers import Broken, Counting, Missing

KINDS: dict[str, Any] = {"count": Counting, "missing": Missing, "broken": Broken}


class Registered:
    """A registry of the odd ones."""

    def load(self, name: str) -> Any:
        """Their class."""
        if name not in KINDS:
            raise ConfigError(f"no sampler {name!r}")
        return KINDS[name]


def test_what_is_not_to_be_had_is_said_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that a sampler does at its making stops what is measured."""
    monkeypatch.setattr(opened, "SAMPLERS", Registered())
    found, notes = opened.opened(["missing", "count", "broken", "unknown"], 1)
    assert list(found) == ["count"]
    assert notes == [
        "no such thing: buy one",
        "no series broken: KeyError: 'x'",
        "no sampler 'unknown'",
        "a count",
    ]


def test_all_are_closed_whatever_one_does() -> None:
    """The others must not keep what they hold."""

    class Stuck(Counting):
        def close(self) -> None:
            raise OSError("stuck")

    last = Counting()
    opened.close({"stuck": Stuck(), "last": last})
    assert last.closed
