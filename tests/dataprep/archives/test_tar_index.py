"""Tests of dataprep.archives.tar_index."""

from __future__ import annotations

import io
import tarfile

import pytest

from dataprep.archives.tar_headers import UNMARKED, Member
from dataprep.archives.tar_index import Inner, Part, TarIndex, index_tar, refusal, tidy
from dataprep.archives.windows import Streamed
from dataprep.errors import CorruptArchive, TruncatedArchive
from tests.tars import nested, tar_of, windowed, zipped

TREE = {
    "n2/b.jpg": b"\xff\xd8b" * 300,
    "n1/a.jpg": b"\xff\xd8a",
    "n1/c.jpg": b"",
}


def index(data: bytes, *, threads: int = 0) -> TarIndex:
    """Indexed as a file is, where any part can be read."""

    def opened(part: Part) -> Inner:
        return Inner(windowed(data), part.start, part.start + part.bytes)

    return index_tar(windowed(data), Part(b"t.tar", 0, len(data), False), opened, threads)


def streamed(data: bytes) -> TarIndex:
    """Indexed as a stream is, once through."""
    return index_tar(Streamed(io.BytesIO(data)), Part(b"t.tar", 0, len(data), True), None)


def contents(found: TarIndex, data: bytes) -> dict[bytes, bytes]:
    """Part and name of each member to its bytes."""
    return {
        found.parts[part].name + b"|" + name: data[offset : offset + size]
        for part, name, offset, size in zip(
            found.part.tolist(),
            found.names,
            found.offsets.tolist(),
            found.sizes.tolist(),
            strict=True,
        )
    }


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_a_tar_of_tars(form: int) -> None:
    """Members of inner tars are found where they lie in the outer one, read anywhere or once."""
    data = nested(TREE, form=form)
    expected = {f"{n.replace('/', '.tar|')}".encode(): content for n, content in TREE.items()}
    for found in (index(data), index(data, threads=3), streamed(data)):
        assert contents(found, data) == expected
        assert not found.refused
        assert not found.remarks


def test_images_beside_inner_tars() -> None:
    """A tar may hold both: what is a tar is told by content, whatever it is called."""
    inner = tar_of({"in.jpg": b"\xff\xd8i"})
    data = tar_of({"x.jpg": b"\xff\xd8x", "called.jpg": inner, "no.tar": b"\xff\xd8n"})
    assert contents(index(data), data) == {
        b"t.tar|x.jpg": b"\xff\xd8x",
        b"called.jpg|in.jpg": b"\xff\xd8i",
        b"t.tar|no.tar": b"\xff\xd8n",
    }


def test_one_level_of_nesting() -> None:
    """A tar within an inner tar is a member like any other."""
    deepest = tar_of({"deep.jpg": b"d"})
    data = tar_of({"a.tar": tar_of({"b.tar": deepest})})
    assert contents(index(data), data) == {b"a.tar|b.tar": deepest}


def test_hostile_members_are_refused_by_name() -> None:
    """Paths that lead out, absolute ones, links, devices and FIFOs are listed with the reason."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as tar:
        for name in ("../../x", "/etc/passwd", "a/../../y", "a..b/ok.jpg"):
            tar.addfile(tarfile.TarInfo(name))
        for kind in (tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
            info = tarfile.TarInfo(f"kind{kind.decode()}")
            info.type, info.linkname = kind, "/etc/passwd"
            tar.addfile(info)
    for data in (sink.getvalue(), tar_of({"in.tar": sink.getvalue()})):
        found = index(data)
        assert {found.names[row]: reason for row, reason in found.refused.items()} == {
            b"../../x": "member whose path leads out of the archive",
            b"/etc/passwd": "member with an absolute path",
            b"a/../../y": "member whose path leads out of the archive",
            b"kind1": "hard link in the archive",
            b"kind2": "symbolic link in the archive",
            b"kind3": "character device in the archive",
            b"kind6": "FIFO in the archive",
        }
        assert b"a..b/ok.jpg" in found.names


def test_a_hostile_inner_tar_is_not_opened() -> None:
    """A tar whose own path leads out of the archive is refused as a whole."""
    data = tar_of({"../n1.tar": tar_of({"a.jpg": b"a"})})
    found = index(data)
    assert list(found.names) == [b"../n1.tar"]
    assert 0 in found.refused


@pytest.mark.parametrize(
    ("name", "tidied"),
    [(b"./a/b", b"a/b"), (b"a//./b", b"a/b"), (b"/a", b"/a"), (b".//", b""), (b"a./b", b"a./b")],
)
def test_names_are_tidied(name: bytes, tidied: bytes) -> None:
    """Dots and doubled slashes go; an absolute path stays one."""
    assert tidy(name) == tidied


def test_a_name_of_nothing_is_refused() -> None:
    """A member without a name is none."""
    assert refusal(Member(b"", "file", 0, 0)) == "member without a name"


def test_an_inner_tar_that_is_cut() -> None:
    """A truncated inner tar is named with the byte at which it ends, read anywhere or once."""
    data = tar_of({"n1.tar": tar_of({"a.jpg": bytes(5000)})[:2048]})
    for read in (index, streamed):
        with pytest.raises(TruncatedArchive, match=r"t\.tar: n1\.tar: ends at byte 2,560"):
            read(data)


def test_compressed_twice_is_refused() -> None:
    """Compressed tars within a compressed tar would need two inflations; it says what to do."""
    with pytest.raises(CorruptArchive, match="gunzip"):
        streamed(nested(TREE, packed=True))


@pytest.mark.parametrize("read", [index, streamed])
def test_compressed_members_that_hold_no_tar(read: object) -> None:
    """A gzip file of something else is a member; one of xz is refused with the program to use."""
    xz = b"\xfd7zXZ\x00" + bytes(100)
    data = tar_of({"notes.gz": zipped(b"notes " * 1000), "n1.tar.xz": xz})
    found = read(data)  # type: ignore[operator]
    assert list(found.names) == [b"notes.gz", b"n1.tar.xz"]
    assert "unxz" in found.refused[1]
    assert 0 not in found.refused


def test_missing_end_markers_are_told() -> None:
    """Archives that simply stop between members are named: they may lack some."""
    inner = tar_of({"a.jpg": b"a"})[:1024]
    assert index(tar_of({"n1.tar": inner})).remarks == {1: UNMARKED}


@pytest.mark.parametrize("read", [index, streamed])
def test_an_inner_tar_of_two_in_a_row(read: object) -> None:
    """What lies behind an end marker within the inner tar is an error, what lies behind it none."""
    one, two = tar_of({"a.jpg": b"a"}), tar_of({"b.jpg": b"b"})
    assert len(read(tar_of({"n1.tar": one, "n2.tar": two}))) == 2  # type: ignore[operator]
    with pytest.raises(CorruptArchive, match=r"t\.tar: n1\.tar: has a member at byte 10,752"):
        read(tar_of({"n1.tar": one + two}))  # type: ignore[operator]
