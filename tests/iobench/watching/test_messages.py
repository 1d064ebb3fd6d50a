"""Messages survive being cut anywhere."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from iobench.watching.messages import Inbox, message

HEADS = st.dictionaries(st.sampled_from(["steps", "open", "name"]), st.integers() | st.text())
DOUBLES = st.lists(st.floats(allow_nan=False), max_size=20)


@given(st.lists(st.tuples(HEADS, DOUBLES), max_size=6), st.integers(1, 40))
def test_what_is_sent_arrives(sent: list[tuple[dict[str, object], list[float]]], cut: int) -> None:
    """In pieces of any size: heads, and the doubles behind them."""
    data = b"".join(message(head, array("d", doubles).tobytes()) for head, doubles in sent)
    inbox = Inbox()
    pieces = [data[start : start + cut] for start in range(0, len(data), cut)]
    found = [taken for piece in pieces for taken in inbox.taken(piece)]
    assert [list(taken.doubles) for taken in found] == [doubles for _, doubles in sent]
    heads = [{k: v for k, v in taken.head.items() if k != "bytes"} for taken in found]
    assert heads == [head for head, _ in sent]


def test_a_message_that_is_cut_off_is_none() -> None:
    """The script was killed in the middle of it."""
    whole = message({"steps": 0}, array("d", [1.0, 2.0]).tobytes())
    assert list(Inbox().taken(whole[:-1])) == []
