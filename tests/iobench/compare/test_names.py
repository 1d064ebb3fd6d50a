"""Points in words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iobench.compare.names import key_of, named
from tests.iobench.compare.saved_runs import params

values = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
any_params = st.dictionaries(st.text(max_size=8), values, max_size=4)


def test_points_have_the_words_of_a_run() -> None:
    """As its progress calls them."""
    point = params("raw")
    assert named([("loader", point)]) == {
        key_of("loader", point): "loader raw shards@disk warm workers=2 batch=64"
    }


def test_what_the_words_leave_out_tells_points_apart() -> None:
    """Only where two would be called the same."""
    points = [params("raw", prefetch=2), params("raw", prefetch=4), params("null")]
    first, second, third = named([("loader", point) for point in points]).values()
    assert first == "loader raw shards@disk warm workers=2 batch=64 prefetch=2"
    assert second.endswith(" prefetch=4")
    assert "prefetch" not in third


def test_params_of_another_version_are_named_one_by_one() -> None:
    """Nothing is missed that words of today would ask for."""
    assert list(named([("disk", {"block": 4}), ("theirs", {"a": "x\ny"})]).values()) == [
        "disk block=4",
        r"theirs a=x\x0ay",
    ]


@given(st.lists(st.tuples(st.sampled_from(["loader", "disk", "x"]), any_params), max_size=6))
def test_any_points_have_names(points: list[tuple[str, dict[str, object]]]) -> None:
    """One each, on one line, whatever their params are."""
    found = named(points)
    assert set(found) == {key_of(kind, point) for kind, point in points}
    assert all(name and "\n" not in name for name in found.values())


@given(any_params)
def test_the_order_of_params_is_none(point: dict[str, object]) -> None:
    """A config that was written otherwise makes the same points."""
    turned = dict(reversed(point.items()))
    assert key_of("loader", point) == key_of("loader", turned)
    assert key_of("loader", point) != key_of("train", point)
