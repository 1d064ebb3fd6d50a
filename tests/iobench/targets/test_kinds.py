"""Kinds of storage."""

from __future__ import annotations

from typing import get_args

from iobench.targets.kinds import KINDS, Reach, kind_name, reach


def test_each_has_words_of_its_own() -> None:
    """Two kinds that read alike would be one."""
    names = [kind.name for kind in KINDS.values()]
    assert len(set(names)) == len(names)
    assert {kind.reach for kind in KINDS.values()} == set(get_args(Reach))


def test_a_kind_of_a_newer_version_is_shown_as_it_is() -> None:
    """And nothing is said of it."""
    assert kind_name("holographic") == "holographic"
    assert reach("holographic") == "unknown"
    assert (kind_name("ebs"), reach("ebs")) == ("Amazon EBS", "network")
