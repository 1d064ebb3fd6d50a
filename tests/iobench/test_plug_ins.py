"""Objects of other packages are created and checked against their Protocol."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from iobench.config.plan import from_other_packages, name_clashes
from iobench.consumers import Consumer
from iobench.errors import TrialFailed, Unavailable
from iobench.loaders import LOADERS, Loader
from iobench.loaders.null import NullLoader
from iobench.plug_ins import create, members
from iobench.probes.object_store.clients import ObjectClient
from iobench.results.trial import TrialSpec
from tests.installed import Package, pyproject
from tests.iobench.small_runs import ThirdParty


def test_parts_are_those_of_the_protocol() -> None:
    """They are attributes, properties and methods, without Python's own."""
    assert members(Loader) == ["close", "epoch", "framework", "notes", "reads"]
    assert "retries" in members(ObjectClient)
    assert {"emulated", "compute_s", "warm_up"} <= set(members(Consumer))


def test_this_packages_own_is_taken_at_its_word() -> None:
    """An error of this package's own plug-in is raised as it is."""

    def broken() -> Any:
        raise LookupError("x")

    with pytest.raises(LookupError):
        create(LOADERS, "null", Loader, broken)


class TestOthers:
    """Plug-ins of other packages."""

    def test_a_whole_plug_in_is_returned(self, third_party: ThirdParty) -> None:
        """The object comes back as it was made."""
        loader_object = object.__new__(NullLoader)
        assert create(LOADERS, "odd-steady", Loader, lambda: loader_object) is loader_object

    def test_a_plug_in_may_lack_a_package(self, third_party: ThirdParty) -> None:
        """The plug-in's own message says what is missing."""

        def missing() -> Any:
            raise Unavailable("pip install it")

        with pytest.raises(Unavailable, match=r"^pip install it$"):
            create(LOADERS, "odd-steady", Loader, missing)

    def test_a_faulty_plug_in_is_named(self, third_party: ThirdParty) -> None:
        """The error has the package and the entry point."""

        def broken() -> Any:
            raise LookupError("two\nlines")

        whose = r"loader 'odd-steady' of odd-loaders 1\.0 \(tests\.iobench\.odd_loaders:Steady\)"

        def half() -> Any:
            return object()

        with pytest.raises(TrialFailed, match=f"{whose} cannot be created: LookupError: two lines"):
            create(LOADERS, "odd-steady", Loader, broken)
        with pytest.raises(TrialFailed, match=f"{whose} has no close, epoch, framework, notes"):
            create(LOADERS, "odd-steady", Loader, half)


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
    """Each plug-in is named with its package, and an ignored one only if its name is used."""
    Package(tmp_path, {"pyproject.toml": pyproject("mine-all-mine", GROUPS, "3.1")})
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert from_other_packages(SPECS) == {
        "loader mine": "mine-all-mine 3.1",
        "consumer mine": "mine-all-mine 3.1",
        "object-store client mine": "mine-all-mine 3.1",
    }
    assert name_clashes(SPECS) == [
        "loader 'raw' of mine-all-mine 3.1 is ignored: this package has the same name"
    ]
    assert name_clashes(SPECS[2:]) == []


def test_this_packages_own_are_not_named() -> None:
    """Neither this package's own names nor unknown ones are listed."""
    specs = [TrialSpec("loader", {"loader": "raw"}), TrialSpec("loader", {"loader": "none such"})]
    assert from_other_packages(specs) == {}
    assert name_clashes(specs) == []
