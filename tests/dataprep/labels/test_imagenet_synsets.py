"""The 1,000 synsets of ILSVRC2012."""

from __future__ import annotations

import hashlib

import pytest

from dataprep.labels.imagenet_synsets import difference, imagenet_synsets


def test_there_are_a_thousand() -> None:
    """The list has 1,000 synsets, sorted, tench first and toilet tissue last."""
    known = imagenet_synsets()
    assert len(set(known)) == 1000
    assert list(known) == sorted(known)
    assert (known[0], known[1], known[-1]) == ("n01440764", "n01443537", "n15075141")
    assert hashlib.sha256("\n".join(known).encode()).hexdigest()[:8] == "385e0240"


def test_nothing_differs() -> None:
    """Nothing is said of the 1,000, of classes that are no synsets, or of none at all."""
    assert difference(imagenet_synsets()) is None
    assert difference(["cat", "n01440764"]) is None
    assert difference([]) is None


@pytest.mark.parametrize(
    ("classes", "parts"),
    [
        (imagenet_synsets()[1:], ["999 classes", "1 of the 1,000 missing, such as n01440764"]),
        ((*imagenet_synsets(), "n00000001"), ["1,001 classes", "1 that ILSVRC2012 does not have"]),
        (
            ("n00000001",),
            ["synsets: 1 class; 1 that", "such as n00000001", "1,000 of the 1,000 missing"],
        ),
    ],
    ids=["one fewer", "one more", "another"],
)
def test_differences_are_counted(classes: tuple[str, ...], parts: list[str]) -> None:
    """Synsets that are missing or strange are counted, one of each named."""
    said = difference(classes) or ""
    assert said.startswith("these are not the 1,000 known synsets")
    assert all(part in said for part in parts)
