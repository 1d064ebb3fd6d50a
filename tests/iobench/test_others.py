"""Which trials other packages take part in: loaders, consumers and clients alike."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from iobench.others import clashes, others
from iobench.trial import TrialSpec
from tests.installed import Package, pyproject

GROUPS = {
    "iobench.loaders": {"mine": "mine:Loader", "raw": "mine:Raw"},
    "iobench.consumers": {"mine": "mine:Consumer"},
    "iobench.clients": {"mine": "mine:Client"},
}
SPECS = [
    TrialSpec("disk", {"target": "here"}),
    TrialSpec("loader", {"loader": "raw"}),
    TrialSpec("train", {"loader": "mine", "consumer": "null"}),
    TrialSpec("train", {"loader": "mine", "consumer": "mine"}, 1),
    TrialSpec("object", {"client": "mine"}),
]


def test_each_is_named_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its package; what is passed over, only where the name is used."""
    Package(tmp_path, {"pyproject.toml": pyproject("mine-all-mine", GROUPS, "3.1")})
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert others(SPECS) == {
        "loader mine": "mine-all-mine 3.1",
        "consumer mine": "mine-all-mine 3.1",
        "object-store client mine": "mine-all-mine 3.1",
    }
    assert clashes(SPECS) == [
        "loader 'raw' of mine-all-mine 3.1 is passed over: the name is this package's own"
    ]
    assert clashes(SPECS[2:]) == []


def test_this_packages_own_are_not_named() -> None:
    """Nor names that nobody knows."""
    specs = [TrialSpec("loader", {"loader": "raw"}), TrialSpec("loader", {"loader": "none such"})]
    assert others(specs) == {}
    assert clashes(specs) == []
