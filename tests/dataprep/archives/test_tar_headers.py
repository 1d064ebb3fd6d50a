"""Tests of dataprep.archives.tar_headers."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.archives.tar_block import BLOCK, number
from dataprep.archives.tar_headers import FILE, FOLDER, SPARSE, UNMARKED, Members
from dataprep.archives.windows import Streamed
from dataprep.errors import CorruptArchive, TruncatedArchive
from tests.tars import members, pack, tar_of, windowed

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
NAMES = st.lists(
    st.binary(min_size=1, max_size=300).filter(
        lambda name: b"\0" not in name and not name.endswith(b"/")
    ),
    min_size=1,
    max_size=6,
)
FILES = {
    "a.jpg": b"a" * 511,
    "deep/" * 30 + "long.jpg": b"b" * 512,
    "x" * 240 + ".jpg": b"c" * 513,
    "new\nline\ttab.jpg": b"",
    "ümlaut 漢字.jpg": b"d",
    "bytes-\udcff\udcfe.jpg": b"ef",
}


def by_tarfile(data: bytes) -> list[tuple[bytes, int, int]]:
    """Name, offset and size of each member, as Python's own module finds them."""
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return [(os.fsencode(info.name), info.offset_data, info.size) for info in tar]


@given(names=NAMES, sizes=st.lists(st.integers(0, 1500), min_size=6, max_size=6))
@pytest.mark.parametrize("form", ["gnu", "pax"])
def test_members_are_those_of_tarfile(form: str, names: list[bytes], sizes: list[int]) -> None:
    """Names of any bytes and length, offsets and sizes are those that Python's tarfile finds."""
    files = {os.fsdecode(name): bytes(size) for name, size in zip(names, sizes, strict=False)}
    data = tar_of(files, FORMATS[form])
    assert [(m.name, m.offset, m.size) for m in members(data)] == by_tarfile(data)
    assert [m.name for m in members(data)] == [os.fsencode(name) for name in files]


@given(data=st.binary(max_size=3000), cut=st.integers(0, 20_000), place=st.integers(0, 20_000))
def test_damage_is_told_and_ends(data: bytes, cut: int, place: int) -> None:
    """An archive with bytes overwritten or cut off ends, or raises CorruptArchive, nothing else."""
    whole = tar_of({"a.jpg": bytes(700), "b" * 150: bytes(10)}, tarfile.PAX_FORMAT)
    place %= len(whole)
    damaged = (whole[:place] + data + whole[place + len(data) :])[: len(whole) - cut % len(whole)]
    try:
        found = members(damaged)
    except CorruptArchive:
        return
    assert all(0 <= m.offset <= m.offset + m.size <= len(damaged) for m in found)


@pytest.mark.parametrize("form", ["gnu", "pax"])
def test_odd_names_in_pythons_formats(form: str) -> None:
    """Long names, line feeds, and bytes that are not UTF-8 come out as they went in."""
    found = members(tar_of(FILES, FORMATS[form]))
    assert {os.fsdecode(m.name): m.size for m in found} == {k: len(v) for k, v in FILES.items()}


def test_ustar_splits_names() -> None:
    """A ustar name of two parts is put together."""
    name = "d" * 120 + "/" + "f" * 90
    (member,) = members(tar_of({name: b"x"}, tarfile.USTAR_FORMAT))
    assert member.name == name.encode()


@pytest.mark.parametrize(
    ("program", "form"),
    [("gnu", form) for form in ("v7", "ustar", "gnu", "pax", "oldgnu")]
    + [("bsd", form) for form in ("v7", "ustar", "gnutar", "pax")],
)
def test_archives_of_tar_programs(program: str, form: str, tmp_path: Path) -> None:
    """What GNU tar and bsdtar write in each of their formats has every file, where it lies."""
    short = form in ("v7", "ustar")
    files = {name: data for name, data in FILES.items() if not short or len(name) < 60}
    if program == "bsd" and form == "pax":
        files.pop("bytes-\udcff\udcfe.jpg")  # bsdtar itself cannot name it in UTF-8
    folder = tmp_path / "in"
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    data = pack(program, folder, tmp_path / "out.tar", f"--format={form}")
    found = {os.fsdecode(m.name): m for m in members(data) if m.kind == FILE}
    assert {n: data[m.offset : m.offset + m.size] for n, m in found.items()} == {
        f"./{name}": content for name, content in files.items()
    }
    assert any(m.kind == FOLDER for m in members(data))


@pytest.mark.parametrize("form", ["gnu", "0.0", "0.1", "1.0"])
def test_sparse_members_are_told(form: str, tmp_path: Path) -> None:
    """Sparse files of every kind that GNU tar writes are called so, and what follows is found."""
    folder = tmp_path / "in"
    folder.mkdir()
    with (folder / "holes.jpg").open("wb") as file:
        for i in range(40):  # more pieces than one header has room for
            file.seek(i * 1_000_000)
            file.write(b"x" * 4096)
        file.truncate(50_000_000)
    (folder / "zz.jpg").write_bytes(b"after")
    options = ["--format=gnu"] if form == "gnu" else ["--format=pax", f"--sparse-version={form}"]
    data = pack("gnu", folder, tmp_path / "s.tar", "--sort=name", "--sparse", *options)
    assert len(data) < 2_000_000, "the file system keeps no holes, so that this tests nothing"
    found = {m.name: m for m in members(data)}
    assert found[b"./holes.jpg"].kind == SPARSE
    after = found[b"./zz.jpg"]
    assert (after.kind, data[after.offset : after.offset + after.size]) == (FILE, b"after")


def test_kinds_are_told() -> None:
    """Links, devices and FIFOs are called what they are, and take up no data."""
    sink = io.BytesIO()
    kinds = {
        tarfile.LNKTYPE: "hard link",
        tarfile.SYMTYPE: "symbolic link",
        tarfile.CHRTYPE: "character device",
        tarfile.BLKTYPE: "block device",
        tarfile.FIFOTYPE: "FIFO",
        tarfile.DIRTYPE: FOLDER,
        tarfile.CONTTYPE: FILE,
        b"Q": "member of unknown type 'Q'",
    }
    with tarfile.open(fileobj=sink, mode="w") as tar:
        for kind in kinds:
            info = tarfile.TarInfo(f"member-{kind.decode()}")
            info.type = kind
            tar.addfile(info)
    assert [m.kind for m in members(sink.getvalue())] == list(kinds.values())


def test_sizes_of_pax_headers_win() -> None:
    """A size in a pax header is believed, one in a global header too, until the next says else."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("a")
        info.size = 700
        info.pax_headers = {"size": "700", "comment": "x"}
        tar.addfile(info, io.BytesIO(bytes(700)))
    data = bytearray(sink.getvalue())
    header = data.index(b"a\0", 2 * BLOCK)
    data[header + 124 : header + 136] = b"00000000000\0"
    data[header + 148 : header + 156] = b"%06o\0 " % (
        sum(data[header : header + 148]) + 256 + sum(data[header + 156 : header + BLOCK])
    )
    assert [m.size for m in members(bytes(data))] == [700]


def test_a_member_of_ten_gigabytes() -> None:
    """A size in base 256, past what octal digits hold, is read; the archive is too short for it."""
    info = tarfile.TarInfo("big")
    info.size = 10 * 2**30
    data = info.tobuf(tarfile.GNU_FORMAT)
    with pytest.raises(TruncatedArchive, match=r"test\.tar: ends at byte 512 inside 'big'"):
        members(data)
    assert number(data[124:136]) == 10 * 2**30


@pytest.mark.parametrize("field", [b"\xff" * 12, b"12x4567", b"-0000000001\0"])
def test_numbers_that_are_none(field: bytes) -> None:
    """A size that is no number, or below zero, is a damaged archive."""
    data = bytearray(tar_of({"a": b"x"}))
    data[124 : 124 + len(field)] = field
    data[148:156] = b"%06o\0 " % (sum(data[:148]) + 256 + sum(data[156:BLOCK]))
    with pytest.raises(CorruptArchive, match="tar header at byte 0"):
        members(bytes(data))


def test_cut_archives_are_told() -> None:
    """An archive cut inside a member or a header says where; the whole one has its end marker."""
    data = tar_of({"a.jpg": bytes(2000), "b.jpg": bytes(2000)})
    whole = Members(windowed(data), "test.tar")
    assert len(list(whole)) == 2
    assert not whole.remark
    for cut in (2559, 2560 + 100, 2560 + 512, 4000):
        with pytest.raises(TruncatedArchive, match=rf"test\.tar: ends at byte {cut:,}"):
            members(data[:cut])
    bare = Members(windowed(data[: 2 * 2560]), "test.tar")
    assert len(list(bare)) == 2
    assert bare.remark == UNMARKED


@pytest.mark.parametrize("behind", [0, 512, 1 << 20, (1 << 20) - 1024])
def test_archives_in_a_row_are_refused(behind: int) -> None:
    """A header behind an end marker, or a lone block of zeros, is an error with both places."""
    one, two = tar_of({"a.jpg": b"a"})[:1024], tar_of({"b.jpg": b"b"})
    data = one + bytes(512 + behind) + two
    for source in (windowed(data), Streamed(io.BytesIO(data), 1000)):
        found = Members(source, "test.tar")
        if behind == 1 << 20:
            assert len(list(found)) == 1
            assert "more than padding follows its end marker at byte 1,024" in found.remark
            continue
        with pytest.raises(CorruptArchive, match="--ignore-zeros") as caught:
            list(found)
        assert f"test.tar: has a member at byte {1536 + behind:,}" in str(caught.value)
        assert "end marker at byte 1,024" in str(caught.value)


def test_what_follows_an_archive() -> None:
    """Any tail but zeros, and not too many of them, is remarked on; it hides no member."""
    data = tar_of({"a.jpg": b"a"})
    for tail, odd in ((b"", False), (bytes(5000), False), (b"junk", True), (bytes(1 << 20), True)):
        found = Members(windowed(data + tail), "test.tar")
        assert len(list(found)) == 1
        assert bool(found.remark) == odd


def test_cut_streams_are_told() -> None:
    """A stream, whose size nobody knows beforehand, that ends inside a member says so."""
    data = tar_of({"a.jpg": bytes(2000), "b.jpg": bytes(2000)})
    assert len(list(Members(Streamed(io.BytesIO(data)), "test.tar"))) == 2
    for cut in (2400, 2560 + 100, 4000):
        with pytest.raises(TruncatedArchive, match="truncated"):
            list(Members(Streamed(io.BytesIO(data[:cut])), "test.tar"))


def test_names_without_end_take_no_memory() -> None:
    """A header that announces a name of a gigabyte is refused before anything is read."""
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 2**30
    with pytest.raises(CorruptArchive, match="1,073,741,824"):
        members(info.tobuf(tarfile.GNU_FORMAT) + bytes(BLOCK))
