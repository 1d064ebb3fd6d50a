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
        (imagenet_synsets()[1:], ["999 of ImageNet's 1,000 classes: labels", "=ilsvrc2012 keeps"]),
        ((*imagenet_synsets(), "n00000001"), ["1,000 of", " and 1 other, such as n00000001: "]),
        (("n00000001", "n00000002"), ["0 of", " and 2 others, such as n00000001: labels differ"]),
    ],
    ids=["one fewer", "one more", "others"],
)
def test_differences_are_counted(classes: tuple[str, ...], parts: list[str]) -> None:
    """Synsets of ImageNet and others are counted, one of the others is named."""
    said = difference(classes) or ""
    assert all(part in said for part in parts)
