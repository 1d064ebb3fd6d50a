"""What other packages bring is made, and held against what is asked of it."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.consumers import Consumer
from iobench.errors import TrialFailed, Unavailable
from iobench.extensions import made, origins, parts, passed_over
from iobench.loaders import LOADERS, Loader
from iobench.loaders.null import NullLoader
from iobench.others import clashes, others
from iobench.probes.object_store.clients import ObjectClient
from iobench.trial import TrialSpec
from tests.iobench.small_runs import ThirdParty


def test_parts_are_those_of_the_protocol() -> None:
    """Attributes, properties and methods, and nothing of Python's own."""
    assert parts(Loader) == ["close", "epoch", "framework", "notes", "reads"]
    assert "retries" in parts(ObjectClient)
    assert {"emulated", "compute_s", "warm_up"} <= set(parts(Consumer))


def test_this_packages_own_is_taken_at_its_word() -> None:
    """What it raises is raised."""

    def broken() -> Any:
        raise LookupError("x")

    with pytest.raises(LookupError):
        made(LOADERS, "null", Loader, broken)


class TestOthers:
    def test_what_is_whole_is_given_back(self, third_party: ThirdParty) -> None:
        """As it was made."""
        found = object.__new__(NullLoader)
        assert made(LOADERS, "odd-steady", Loader, lambda: found) is found

    def test_what_it_needs_may_be_missing(self, third_party: ThirdParty) -> None:
        """Its own words stand."""

        def missing() -> Any:
            raise Unavailable("pip install it")

        with pytest.raises(Unavailable, match=r"^pip install it$"):
            made(LOADERS, "odd-steady", Loader, missing)

    def test_what_raises_or_lacks_a_part_is_named(self, third_party: ThirdParty) -> None:
        """With package and entry point."""

        def broken() -> Any:
            raise LookupError("two\nlines")

        whose = r"loader 'odd-steady' of odd-loaders 1\.0 \(tests\.iobench\.odd_loaders:Steady\)"

        def half() -> Any:
            return object()

        with pytest.raises(TrialFailed, match=f"{whose} cannot be made: LookupError: two lines"):
            made(LOADERS, "odd-steady", Loader, broken)
        with pytest.raises(TrialFailed, match=f"{whose} has no close, epoch, framework, notes"):
            made(LOADERS, "odd-steady", Loader, half)

    def test_who_brings_what(self, third_party: ThirdParty) -> None:
        """Each once, this package's own not at all; unknown names are somebody else's error."""
        names = ["odd-steady", "null", "odd-steady", "no-such"]
        assert dict(origins(LOADERS, names)) == {"loader odd-steady": "odd-loaders 1.0"}
        assert list(passed_over(LOADERS, names)) == []
        specs = [TrialSpec("loader", {"loader": name}) for name in names]
        assert others(specs) == {"loader odd-steady": "odd-loaders 1.0"}
        assert clashes(specs) == []
