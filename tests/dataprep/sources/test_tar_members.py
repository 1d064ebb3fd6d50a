"""Tests of dataprep.sources.tar_members."""

from __future__ import annotations

import numpy as np

from dataprep.archives.tar_index import Part, TarIndex
from dataprep.sources.protocol import Problem
from dataprep.sources.tar_members import TarMembers


def index(names: list[bytes], refused: dict[int, str] | None = None) -> TarIndex:
    """Members of ten bytes each, one after the other."""
    rows = np.arange(len(names), dtype=np.int64)
    return TarIndex(
        parts=(Part(b"t.tar", 0, 1000, False),),
        part=np.zeros(len(names), np.int32),
        names=names,
        offsets=rows * 10,
        sizes=np.full(len(names), 10, np.int64),
        refused=refused or {},
        remarks={},
    )


def added(
    names: list[bytes], *, tar: str = "", refused: dict[int, str] | None = None
) -> TarMembers:
    """Members of one archive."""
    members = TarMembers()
    members.add(names, index(names, refused), slice(0, len(names)), "t.tar", tar)
    return members


def test_rows_follow_each_other() -> None:
    """Each archive's members come behind those before, with their own problems."""
    members = added([b"a", b"b"], refused={1: "hard link in the archive"})
    members.add_stray("c", Problem("skipped", "words"))
    more = [b"x/d", b"x/e"]
    members.add(more[1:], index(more, {1: "FIFO in the archive"}), slice(1, 2), "x.tar", "x.tar")
    assert members.names == [b"a", b"b", b"c", b"x/e"]
    assert members.offsets == [0, 10, 0, 10]
    assert members.sizes == [10, 10, 0, 10]
    assert members.containers == ["t.tar", "t.tar", "", "x.tar"]
    assert members.tars == ["", "", "", "x.tar"]
    assert members.problems == {
        1: ("failed", "hard link in the archive"),
        2: ("skipped", "words"),
        3: ("failed", "FIFO in the archive"),
    }


def test_a_folder_is_taken_alone() -> None:
    """Below a folder names are shorter, and only its own tars can be missed."""
    members = added([b"in/a", b"out/b", b"in/c", b"in/x.tar", b"out/y.tar"], refused={2: "why"})
    part = members.below(b"in/")
    assert part.names == [b"a", b"c", b"x.tar"]
    assert part.offsets == [0, 20, 30]
    assert part.problems == {1: ("failed", "why")}
    assert list(part.unread) == ["in/x.tar"]


def test_tars_that_give_nothing() -> None:
    """Where one tar has samples the others must: unread ones, empty ones, those of other files."""
    members = added([b"n1/a"], tar="n1.tar")
    assert members.lost(()) == {}
    members.add([b"n2/b"], index([b"n2/b"]), slice(0, 1), "t.tar", "n2.tar")
    members.add([], index([]), slice(0, 0), "t.tar", "n3.tar")
    members.add_stray("n4.tar", Problem("skipped", "words"))
    members.add_stray("MD5SUMS", Problem("skipped", "words"))
    members.add_stray("n1.tar.xz", Problem("skipped", "compressed"))
    beside = [b"n5.tar", b"._n6.tar", b"n7.tar"]
    members.add(beside, index(beside, {2: "hard link in the archive"}), slice(0, 3), "t.tar")
    assert members.lost({1}) == {
        "n2.tar": "holds no images",
        "n3.tar": "holds no files",
        "n4.tar": "words",
        "n5.tar": "no tar archive: its content, from byte 0 on, begins otherwise",
        "n7.tar": "hard link in the archive",
    }
    assert members.lost({0, 1}) == {}
