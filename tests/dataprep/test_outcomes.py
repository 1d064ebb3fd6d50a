"""Tests of dataprep.outcomes."""

from __future__ import annotations

import hashlib

import pytest

from dataprep.errors import CorruptImage, ImageTooLarge, SourceChanged
from dataprep.image import Converted, ImagePolicy
from dataprep.outcomes import convert_sample, outcomes
from dataprep.sources import Located
from tests.dataprep.test_worker import Files, jpeg

FILES = {f"a/{shade}.JPEG": jpeg(shade) for shade in range(0, 200, 20)}


def located(files: dict[str, bytes]) -> list[Located]:
    """Each as planned."""
    return [Located(name, len(data)) for name, data in files.items()]


@pytest.mark.parametrize("threads", [0, 1, 4])
def test_outcomes_stand_in_order(threads: int) -> None:
    """An image or an error each, with the hash of its file; a file too large is not read."""
    files = {**FILES, "a/cut.JPEG": jpeg(7)[:100], "a/large.JPEG": jpeg(9) + bytes(5_000)}
    policy = ImagePolicy(size=24, max_source_bytes=5_000)
    found = list(outcomes(Files(files), located(files), policy, threads))
    assert [one.sha256 for one in found[:-1]] == [
        hashlib.sha256(data).hexdigest() for data in list(files.values())[:-1]
    ]
    assert all(isinstance(one.converted, Converted) for one in found[:-2])
    assert isinstance(found[-2].converted, CorruptImage)
    assert isinstance(found[-1].converted, ImageTooLarge)
    assert found[-1].sha256 == ""


@pytest.mark.parametrize("threads", [0, 3])
def test_a_changed_file_ends_them(threads: int) -> None:
    """What no longer is what was planned is no outcome."""
    items = [*located(FILES), Located("a/0.JPEG", 1)]
    with pytest.raises(SourceChanged, match="a/0"):
        list(outcomes(Files(FILES), items, ImagePolicy(), threads))


def test_an_error_in_place_of_bytes() -> None:
    """It is raised as it is."""
    error = CorruptImage("empty")
    with pytest.raises(CorruptImage) as raised:
        convert_sample(error, ImagePolicy())
    assert raised.value is error
