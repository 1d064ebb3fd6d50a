"""Tests of dataprep.sources.tar_names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.sources.tar_names import in_name_order, is_called_tar, unpacked, without_ending


@pytest.mark.parametrize("ending", [b"", b".tar", b".tar.gz", b".tgz", b".TAR", b".Tar.GZ"])
def test_members_are_called_as_if_unpacked_into_a_folder(ending: bytes) -> None:
    """The tar's name without its ending is the folder, with what stands before it."""
    assert without_ending(b"n1" + ending) == b"n1"
    assert unpacked(b"n1" + ending, [b"a", b"b/c"]) == [b"n1/a", b"n1/b/c"]
    assert unpacked(b"train/n1" + ending, [b"a"]) == [b"train/n1/a"]


@pytest.mark.parametrize(
    ("name", "promised"),
    [(b"a/n1.tar", True), (b"n1.TGZ", True), (b"n1.tar.Z", True), (b"n1.tar.part", True)]
    + [(name, False) for name in (b"n1", b"n1.tar.md5", b"tar", b"n1.tar/x.JPEG", b"guitar")],
)
def test_names_promise_tars(name: bytes, promised: bool) -> None:
    """The last ending decides: a checksum beside a tar is none."""
    assert is_called_tar(name) == promised


def test_a_folder_is_not_doubled() -> None:
    """Where every member lies in a folder of the tar's name already, that is the folder."""
    assert unpacked(b"n1.tar", [b"n1/a", b"n1/b"]) == [b"n1/a", b"n1/b"]
    assert unpacked(b"train/n1.tar", [b"n1/a"]) == [b"train/n1/a"]
    assert unpacked(b"n1.tar", [b"n1/a", b"b"]) == [b"n1/n1/a", b"n1/b"]
    assert unpacked(b"n1.tar", []) == []


@given(st.lists(st.sampled_from([b"a", b"b", b"c", b"\xff"]), max_size=12))
def test_the_last_of_equal_names_is_not_replaced(names: list[bytes]) -> None:
    """Rows come in the order of names, and for each name exactly its last row is left."""
    order, replaced = in_name_order(names)
    assert [names[row] for row in order] == sorted(names)
    left = {row for row in order if row not in set(replaced)}
    assert left == {max(row for row, n in enumerate(names) if n == name) for name in set(names)}
