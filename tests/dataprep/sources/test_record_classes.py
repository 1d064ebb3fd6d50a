"""Tests of dataprep.sources.record_classes; more of them go through test_records."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dataprep.labels import LabelSpace
from dataprep.sources.record_classes import Scanned, classes_of, sample_names

scanned = st.builds(
    Scanned,
    shard=st.sampled_from(["a-00000-of-00002", "a-00001-of-00002"]),
    number=st.integers(0, 99),
    offset=st.integers(0, 99),
    labels=st.lists(st.sampled_from([-1.0, 0.0, 1.0, 2.0, 2.5, 7.0, float("nan")]), max_size=2).map(
        tuple
    ),
    synset=st.sampled_from(["", "n01", "n02", "\udcff"]),
    text=st.sampled_from(["", "a", "b"]),
    filename=st.sampled_from(["", "1.jpg", "2.jpg", "k/1.jpg"]),
    problem=st.sampled_from(["", "", "", "damaged"]),
)


@given(
    records=st.lists(scanned, max_size=8, unique_by=lambda record: (record.shard, record.number)),
    offset=st.sampled_from([None, 0, 1]),
    background=st.booleans(),
    given_names=st.sampled_from([None, LabelSpace.of("xyz")]),
)
def test_every_record_has_a_class_of_the_space_or_a_reason(
    records: list[Scanned], offset: int | None, background: bool, given_names: LabelSpace | None
) -> None:
    """Whatever records say, nothing crashes and nothing goes without one or the other."""
    found = classes_of(records, offset, background, given_names)
    assert len(found.names) == len(records)
    for row, name in enumerate(found.names):
        if row in found.problems:
            assert not name
        else:
            assert found.space is not None
            assert name in found.space.index
    if found.space is not None:
        assert [label.index for label in found.space.labels] == list(range(len(found.space.labels)))
    names = sample_names(records, found.names)
    assert len(set(names)) == len(names) == len(records)


def test_names_against_numbers_are_said() -> None:
    """Two numbers of one class: names count, and a note tells so."""
    records = [Scanned("a", i, i, labels=(float(i),), synset="n01") for i in range(2)]
    found = classes_of(records, 0, False, None)
    assert found.names == ["n01", "n01"]
    assert any("do not fit each other" in note for note in found.notes)
