"""Samples of equal content."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations, product

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from dataprep.verification.duplicates import Named, between, within

rows = st.lists(
    st.tuples(
        st.sampled_from(["written", "written", "written", "failed"]),
        st.sampled_from(["a", "b", "c", "d", None]),
        st.integers(0, 2),
    ),
    max_size=12,
)


def table(content: list[tuple[str, str | None, int]], prefix: str = "x") -> pd.DataFrame:
    """A table of samples."""
    return pd.DataFrame(
        {
            "source": [f"{prefix}{i}" for i in range(len(content))],
            "label": [label for _, _, label in content],
            "status": [status for status, _, _ in content],
            "source_sha256": pd.Series([digest for _, digest, _ in content], dtype=object),
        }
    )


def contents(content: list[tuple[str, str | None, int]]) -> list[str]:
    """Digests of those that were written and have one."""
    return [digest for status, digest, _ in content if status == "written" and digest]


@given(rows)
def test_within(content: list[tuple[str, str | None, int]]) -> None:
    """Pairs are those that comparing each with each would find; nothing else is in a group."""
    found = within("train", table(content))
    digests = contents(content)
    assert found.pairs == sum(a == b for a, b in combinations(digests, 2))
    repeated = {digest: count for digest, count in Counter(digests).items() if count > 1}
    assert {group.sha256: len(group.samples) for group in found.groups} == repeated
    assert bool(found) == bool(repeated)


@given(rows, rows)
def test_between(
    content: list[tuple[str, str | None, int]], other: list[tuple[str, str | None, int]]
) -> None:
    """Pairs are those of one split with the other; repeats within either make no leak."""
    found = between("train", table(content), "test", table(other, "y"))
    mine, theirs = contents(content), contents(other)
    assert found.pairs == sum(a == b for a, b in product(mine, theirs))
    assert {group.sha256 for group in found.groups} == set(mine) & set(theirs)
    assert found.samples == sum(digest in theirs for digest in mine)
    for group in found.groups:
        assert all(named.source.startswith("x") for named in group.samples)
        assert all(named.source.startswith("y") for named in group.others)


def test_in_words() -> None:
    """How many, some names, and contents with more than one label."""
    content = [("written", "a", 0), ("written", "a", 1), ("written", "a", 0), ("written", "b", 0)]
    lines = within("train", table(list(content))).lines()
    assert lines == [
        "3 samples of equal content in 1 group, 3 pairs, such as x0 = x1 = x2",
        "1 content with more than one label, such as x0 (0) = x1 (1) = x2 (0)",
    ]
    leak = between("train", table(list(content)), "test", table([("written", "b", 0)], "y"))
    assert str(leak) == (
        "leakage: 1 sample of train is in test too (1 sample there, 1 pair), such as x3 = y0"
    )
    none = between("train", table(list(content)), "test", table([]))
    assert str(none) == "train against test: no sample of one is in the other"


def test_json_has_all() -> None:
    """Every group stands in the JSON, with names and labels."""
    content: list[tuple[str, str | None, int]] = [
        ("written", str(i // 2), i % 2) for i in range(100)
    ]
    found = json.loads(json.dumps(within("train", table(content)).as_dict()))
    assert (found["pairs"], found["samples"], len(found["groups"])) == (50, 100, 50)
    assert found["groups"][0] == {
        "sha256": "0",
        "labels_differ": True,
        "samples": [Named("x0", 0)._asdict(), Named("x1", 1)._asdict()],
        "others": [],
    }
