"""Hostile files, the short form: every reader, a few inputs each; a failure says its seed."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from tests.reliability.hostile import FAMILIES, mutations
from tests.reliability.hostile.bounds import TooSlow, bounded_time
from tests.reliability.hostile.fuzz import NAME, Target, fuzz
from tests.reliability.hostile.parsers import FUZZED, IMAGES, TRUSTED, parsing
from tests.reliability.hostile_records import family

SEED = int(os.environ.get("DATAPREP_SEED", "20261122"))
INPUTS = {"records": 300, "tables": 200, "listings": 150, "archives": 200, "configs": 80}
FEW = 60


@pytest.mark.parametrize("name", FAMILIES)
def test_no_reader_fails_in_other_words_than_its_own(name: str, tmp_path: Path) -> None:
    """Right, or an error of the product with its place; in bounds of memory and time."""
    found = list(family(name, SEED, inputs=INPUTS.get(name, FEW), keep=tmp_path))
    assert found
    assert {one.name: list(one.faults) for one in found if one.faults} == {}, f"seed {SEED}"
    assert all(one.inputs for one in found)


def _target(read: object) -> Target:
    return Target("broken", "none", lambda: [b"sound"], mutations.bytes_at_random, read, ())  # type: ignore[arg-type]


@pytest.mark.parametrize("what", [KeyError("x"), MemoryError(), ValueError("no place")])
def test_a_reader_that_fails_otherwise_is_found(what: Exception) -> None:
    """Whatever else it raises is a fault, once for each place in the code."""

    def read(data: bytes) -> None:
        if data != b"sound":
            raise what

    found = fuzz(_target(read), SEED, inputs=30)
    assert len(found.faults) == 1
    assert type(what).__name__ in next(iter(found.faults))


def test_an_error_without_its_place_is_found() -> None:
    """An error of the product has to name the file."""
    from dataprep.errors import DataprepError

    def read(data: bytes) -> None:
        raise DataprepError("something is wrong" if data != b"sound" else NAME)

    found = fuzz(_target(read), SEED, inputs=30)
    assert (found.read, found.refused > 0, len(found.faults)) == (0, True, 1)
    assert "no place" in next(iter(found.faults))


def test_a_reader_that_never_ends_is_found() -> None:
    """It is ended by the clock of the processor."""

    def for_ever() -> None:
        with bounded_time(0.05):
            while True:
                pass

    with pytest.raises(TooSlow):
        for_ever()


@pytest.mark.parametrize("name", ["json_tree", "yaml_text", "cells", "xml_text", "tar_header"])
def test_the_same_seed_draws_the_same_inputs(name: str) -> None:
    """So that a failure can be repeated."""
    mutate = mutations.stacked(getattr(mutations, name))
    seeds = [b'{"a": [1, 2]}', b"a: 1\nb: 2\n", b"x,y\n1,2\n"]
    one, other = ([mutate(data, Random(7)) for data in seeds] for _ in range(2))
    assert one == other
    assert one != seeds


def test_checksums_are_made_right_again() -> None:
    """A changed payload passes the framing, so that what is behind it is reached."""
    from dataprep.formats.tfrecord import read_tfrecords

    data = mutations.tfrecords([b"one", b"two"])
    assert [bytes(record.payload) for record in read_tfrecords(data)] == [b"one", b"two"]
    changed = mutations.inside(
        mutations.tfrecord_payloads, mutations.tfrecords, lambda payload, _: payload + b"!"
    )(data, Random(1))
    assert len(list(read_tfrecords(changed))) == 2
    assert changed != data


def test_every_module_that_parses_is_fuzzed_or_has_its_reason() -> None:
    """A new reader of bytes has to be given hostile ones, or a word of why not."""
    found = {*parsing(Path(__file__).parents[2])}
    assert found - FUZZED.keys() - TRUSTED.keys() == set(), "parse, and stand in no list"
    assert FUZZED.keys() | TRUSTED.keys() == found, "stand in a list, and parse nothing"
    assert not FUZZED.keys() & TRUSTED.keys()
    assert {family for families in FUZZED.values() for family in families} <= {*FAMILIES, IMAGES}


def test_a_module_that_parses_is_found(tmp_path: Path) -> None:
    """Also one that unpacks by a structure of its own."""
    for package in ("dataprep", "iobench"):
        (tmp_path / package).mkdir()
    (tmp_path / "dataprep/a.py").write_text("x = _HEAD.unpack_from(data, 3)\n")
    (tmp_path / "dataprep/b.py").write_text("x = json.dumps(data)\n")
    (tmp_path / "iobench/c.py").write_text("x = json.loads(data)\n")
    assert [*parsing(tmp_path)] == ["dataprep/a.py", "iobench/c.py"]
