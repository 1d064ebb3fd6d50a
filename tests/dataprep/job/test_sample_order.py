"""Samples are assigned to splits and ordered by their names and by seeds."""

from __future__ import annotations

import hashlib
from collections import Counter
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dataprep.job.sample_order import shuffled, validation_mask
from dataprep.name_encoding import to_bytes
from tests.strategies import distinct_names

seeds = st.integers(-(2**63), 2**63 - 1)


def rows(names: list[str]) -> NDArray[np.int64]:
    """Every row."""
    return np.arange(len(names), dtype=np.int64)


def order(names: list[str], seed: int) -> list[str]:
    """The names in shuffled order."""
    return [names[row] for row in shuffled(names, rows(names), seed).tolist()]


@given(names=distinct_names, seed=seeds, data=st.data())
def test_order_depends_on_seed_and_names_alone(
    names: list[str], seed: int, data: st.DataObject
) -> None:
    """However the source was listed, the order is the same permutation of its names."""
    relisted = data.draw(st.permutations(names))
    assert order(names, seed) == order(relisted, seed)
    assert sorted(order(names, seed)) == sorted(names)


@given(names=distinct_names, seed=seeds)
def test_an_added_sample_moves_no_other(names: list[str], seed: int) -> None:
    """The other samples keep their relative order if any one sample is left out."""
    *rest, added = names
    assert [name for name in order(names, seed) if name != added] == order(rest, seed)


def test_the_order_is_the_documented_hash() -> None:
    """The order is that of keyed BLAKE2b hashes, so that other programs can compute it too."""
    names = [f"n{i}" for i in range(50)]

    def digest(name: str) -> bytes:
        key = (7).to_bytes(8, "little", signed=True)
        return hashlib.blake2b(to_bytes(name), digest_size=16, key=key, person=b"order").digest()

    assert order(names, 7) == sorted(names, key=digest)
    assert order(names, 7) != order(names, 8)
    assert order(names, 7) != names


def test_only_the_given_rows_are_shuffled() -> None:
    """Only the given rows appear in the order."""
    chosen = np.array([5, 1, 3], np.int64)
    assert sorted(shuffled([f"n{i}" for i in range(9)], chosen, 0).tolist()) == [1, 3, 5]
    assert shuffled([], np.array([], np.int64), 0).tolist() == []


@st.composite
def labelled(draw: st.DrawFn) -> tuple[list[str], NDArray[np.int32]]:
    """Names with a label for each."""
    names = draw(distinct_names)
    labels = draw(st.lists(st.integers(0, 4), min_size=len(names), max_size=len(names)))
    return names, np.array(labels, np.int32)


shares = st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=100)


@given(sample=labelled(), share=shares, seed=seeds)
def test_every_class_gives_its_share(
    sample: tuple[list[str], NDArray[np.int32]], share: Fraction, seed: int
) -> None:
    """Each class gives its share, with halves rounded up, and keeps at least one sample.

    It gives at least one if it has two.
    """
    names, labels = sample
    mask = validation_mask(names, labels, rows(names), share, seed)
    taken_by_class = Counter(labels[mask].tolist())
    for label, count in Counter(labels.tolist()).items():
        rounded = int(count * share + Fraction(1, 2))
        assert taken_by_class[label] == min(max(rounded, 1), count - 1)


@given(sample=labelled(), share=shares, seed=seeds, data=st.data())
def test_the_split_depends_on_seed_and_names_alone(
    sample: tuple[list[str], NDArray[np.int32]],
    share: Fraction,
    seed: int,
    data: st.DataObject,
) -> None:
    """The same samples are held out for any order of the source's listing."""
    names, labels = sample
    again = np.array(data.draw(st.permutations(range(len(names)))), np.int64)
    relisted = [names[row] for row in again.tolist()]
    before = validation_mask(names, labels, rows(names), share, seed)
    after = validation_mask(relisted, labels[again], rows(names), share, seed)
    assert after.tolist() == before[again].tolist()


@given(sample=labelled(), share=shares, seed=seeds)
def test_an_added_sample_moves_at_most_one_other_to_the_other_split(
    sample: tuple[list[str], NDArray[np.int32]], share: Fraction, seed: int
) -> None:
    """If one sample is removed, at most one other, of its class, changes its split."""
    names, labels = sample
    with_it = validation_mask(names, labels, rows(names), share, seed)[:-1]
    without = validation_mask(names, labels, rows(names)[:-1], share, seed)
    moved = np.flatnonzero(with_it != without)
    assert len(moved) <= 1
    assert (labels[moved] == labels[-1]).all()
