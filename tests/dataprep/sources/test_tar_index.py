"""Tars of every tar program are indexed, and damaged ones are refused."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import CorruptArchive, NotAnArchive, StoreUnreachable, TruncatedArchive
from dataprep.sources.ilsvrc import ILSVRC
from dataprep.sources.options import ILSVRCOptions
from dataprep.sources.tar_archive import Archive, container_of
from dataprep.sources.tar_index import index_tar, paths_in_folder
from dataprep.stores import Store
from dataprep.stores.local import LocalStore
from dataprep.stores.memory import MemoryStore
from tests.tars import nested, pack, tar_of, zipped

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
FILES = {
    "a.jpg": b"a" * 511,
    "deep/" * 30 + "long.jpg": b"b" * 512,
    "x" * 240 + ".jpg": b"c" * 513,
    "new\nline\ttab.jpg": b"",
    "ümlaut 漢字.jpg": b"d",
    "bytes-\udcff\udcfe.jpg": b"ef",
}


class Indexed(NamedTuple):
    """The content of members by name, those that must not be opened, and notes."""

    files: Mapping[str, bytes]
    refused: Mapping[str, str]
    notes: list[str]


def indexed(data: bytes, tar: str = "") -> Indexed:
    """The members that the index of an archive in memory gives."""
    store = MemoryStore("memory://indexed")
    store.put("t.tar", data)
    notes: list[str] = []
    with tempfile.TemporaryDirectory() as cache:
        archive = Archive.of(store, "t.tar", cache)
        table = index_tar(archive, tar, notes.append)
        files, refused = {}, {}
        for row in table.to_pylist():
            name, container = os.fsdecode(row["name"]), os.fsdecode(row["container"])
            if row["problem"]:
                refused[name] = row["problem"]
            else:
                location = container_of(container, archive)
                files[name] = location.read(row["offset"], row["bytes"])
    return Indexed(files, refused, notes)


READ = {"plain": lambda data: data, "gzipped": zipped}
"""An archive is read at any offset, or once from its beginning."""


@pytest.fixture(params=READ)
def packed(request: pytest.FixtureRequest) -> Callable[[bytes], bytes]:
    """Whether an archive can be read at any offset, or only once from the beginning."""
    return READ[request.param]


LONG = {"d" * 120 + "/" + "f" * 90: b"x"}


@pytest.mark.parametrize(("form", "files"), [("gnu", FILES), ("pax", FILES), ("ustar", LONG)])
def test_odd_names(form: str, files: dict[str, bytes], packed: Callable[[bytes], bytes]) -> None:
    """Long names, line feeds, and bytes that are not UTF-8 are read unchanged."""
    assert indexed(packed(tar_of(files, FORMATS[form]))).files == files


@given(
    names=st.sets(st.binary(min_size=1, max_size=300), min_size=1, max_size=4),
    sizes=st.lists(st.integers(0, 1500), min_size=4, max_size=4),
)
@pytest.mark.parametrize("form", ["gnu", "pax"])
def test_names_of_any_bytes(form: str, names: set[bytes], sizes: list[int]) -> None:
    """Members have their names and contents, with any bytes in the names."""
    plain = [os.fsdecode(name.replace(b"\0", b"").replace(b"/", b"") + b"!") for name in names]
    files = {name: bytes(size) for name, size in zip(plain, sizes, strict=False)}
    assert indexed(tar_of(files, FORMATS[form])).files == files


@pytest.mark.parametrize(
    ("program", "form"),
    [("gnu", form) for form in ("v7", "ustar", "gnu", "pax", "oldgnu")]
    + [("bsd", form) for form in ("v7", "ustar", "gnutar", "pax")],
)
def test_archives_of_tar_programs(program: str, form: str, tmp_path: Path) -> None:
    """GNU tar and bsdtar, in each of their formats, write files that are found."""
    short = form in ("v7", "ustar")
    files = {name: data for name, data in FILES.items() if not short or len(name) < 60}
    if program == "bsd" and form == "pax":
        files.pop("bytes-\udcff\udcfe.jpg")  # bsdtar itself cannot name it in UTF-8
    folder = tmp_path / "in"
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    index = indexed(pack(program, folder, tmp_path / "out.tar", f"--format={form}"))
    assert (index.files, index.refused, index.notes) == (files, {}, [])


@pytest.mark.parametrize("form", ["gnu", "0.0", "0.1", "1.0"])
def test_sparse_members_are_refused(form: str, tmp_path: Path) -> None:
    """Sparse files of GNU tar are named, and the members behind them are found."""
    folder = tmp_path / "in"
    folder.mkdir()
    with (folder / "holes.jpg").open("wb") as file:
        for i in range(40):  # more pieces than one header can have
            file.seek(i * 1_000_000)
            file.write(b"x" * 4096)
        file.truncate(50_000_000)
    (folder / "zz.jpg").write_bytes(b"after")
    options = ["--format=gnu"] if form == "gnu" else ["--format=pax", f"--sparse-version={form}"]
    data = pack("gnu", folder, tmp_path / "s.tar", "--sort=name", "--sparse", *options)
    assert len(data) < 2_000_000, "the file system keeps no holes, so that this tests nothing"
    index = indexed(data)
    assert index.refused == {"holes.jpg": "sparse file in the archive"}
    assert index.files == {"zz.jpg": b"after"}


def odd_members(names: tuple[str, ...], kinds: tuple[bytes, ...]) -> bytes:
    """A tar of empty members with these names and kinds."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as tar:
        for name in names:
            tar.addfile(tarfile.TarInfo(name))
        for kind in kinds:
            info = tarfile.TarInfo(f"kind {kind.decode()}")
            info.type, info.linkname = kind, "/etc/passwd"
            tar.addfile(info)
    return sink.getvalue()


@pytest.mark.parametrize("inner", [False, True])
def test_members_that_must_not_be_opened(inner: bool) -> None:
    """Paths that leave the archive, absolute ones, links, devices and FIFOs have a reason."""
    names = ("../../x", "/etc/passwd", "a/../../y", "a..b/ok.jpg", ".//ok//2.jpg")
    data = odd_members(names, (b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"Q", b"V"))
    index = indexed(tar_of({"in.tar": data}) if inner else data)
    before = "in/" if inner else ""
    leads_out = "member whose path leads out of the archive"
    assert index.refused == {
        f"{before}../../x": leads_out,
        f"{before}/etc/passwd": leads_out,
        f"{before}../y": leads_out,
        f"{before}kind 1": "hard link in the archive",
        f"{before}kind 2": "symbolic link in the archive",
        f"{before}kind 3": "character device in the archive",
        f"{before}kind 4": "block device in the archive",
        f"{before}kind 6": "FIFO in the archive",
        f"{before}kind Q": "member of unknown type 'Q' in the archive",
    }
    assert index.files.keys() == {f"{before}{n}" for n in ("a..b/ok.jpg", "ok/2.jpg", "kind 7")}


def test_sizes_of_pax_headers_win() -> None:
    """A size in a pax header counts instead of that in the member's own header."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("a")
        info.size = 700
        info.pax_headers = {"size": "700", "comment": "x"}
        tar.addfile(info, io.BytesIO(bytes(700)))
        tar.addfile(tarfile.TarInfo("b"))
    data = bytearray(sink.getvalue())
    set_size(data, data.index(b"a\0", 1024), b"00000000000\0")
    assert indexed(bytes(data)).files == {"a": bytes(700), "b": b""}


def set_size(data: bytearray, header: int, field: bytes) -> None:
    """Write a size into a header, and the checksum of the new header."""
    data[header + 124 : header + 124 + len(field)] = field
    data[header + 148 : header + 156] = b" " * 8
    data[header + 148 : header + 156] = b"%06o\0 " % sum(data[header : header + 512])


@pytest.mark.parametrize("field", [b"\xff" * 12, b"12x4567", b"-0000000001\0"])
def test_numbers_that_are_none(field: bytes) -> None:
    """A size that is no number, or negative, belongs to a damaged archive."""
    data = bytearray(tar_of({"a": b"x", "b": b"y"}))
    set_size(data, 1024, field)
    with pytest.raises(CorruptArchive, match=r"t\.tar: .* at byte 1,024"):
        indexed(bytes(data))


def test_a_member_of_ten_gigabytes() -> None:
    """A size in base 256, beyond octal digits, is read. The archive is then too short for it."""
    info = tarfile.TarInfo("big")
    info.size = 10 * 2**30
    with pytest.raises(TruncatedArchive, match=r"t\.tar: ends at byte 512 inside 'big'"):
        indexed(info.tobuf(tarfile.GNU_FORMAT))


@pytest.mark.parametrize("cut", [1700, 2100, 2559, 2560 + 1000, 4700])
def test_cut_archives_are_refused(cut: int, packed: Callable[[bytes], bytes]) -> None:
    """An archive that ends inside a member is refused with the member's name."""
    data = tar_of({"a.jpg": bytes(2000), "b.jpg": bytes(2000)})
    name = "a.jpg" if cut < 2560 else "b.jpg"
    with pytest.raises(TruncatedArchive, match=f"ends.* inside '{name}'.*truncated"):
        indexed(packed(data[:cut]))
    inner = tar_of({"n1.tar": data[: cut // 512 * 512]})
    with pytest.raises(TruncatedArchive, match=rf"t\.tar: n1\.tar: ends.* inside '{name}'"):
        indexed(packed(inner))


def test_a_missing_end_marker_is_noted(packed: Callable[[bytes], bytes]) -> None:
    """An archive that ends between members is read with a note, because it may lack some."""
    data = tar_of({"a.jpg": b"a"})[:1024]
    for archive, title in ((data, "t.tar"), (tar_of({"n1.tar": data}), "t.tar: n1.tar")):
        index = indexed(packed(archive))
        assert [*index.files.values()] == [b"a"]
        assert f"{title}: no end marker" in index.notes[-1]


@pytest.mark.parametrize("tail", [b"junk", bytes(5000) + tar_of({"b.jpg": b"b"})])
def test_what_follows_the_end_marker_is_refused(
    tail: bytes, packed: Callable[[bytes], bytes]
) -> None:
    """Tar programs stop at the end marker, so that a second archive behind it would be lost."""
    data = tar_of({"a.jpg": b"a"})
    assert indexed(packed(data + bytes(5000))).files == {"a.jpg": b"a"}
    for archive in (data + tail, tar_of({"n1.tar": data + tail, "n2.tar": data})):
        with pytest.raises(CorruptArchive, match=r"end marker at byte [\d,]+:.*--ignore-zeros"):
            indexed(packed(archive))
    both = indexed(packed(tar_of({"n1.tar": data, "n2.tar": data})))
    assert both.files == {"n1/a.jpg": b"a", "n2/a.jpg": b"a"}


@given(data=st.binary(max_size=3000), cut=st.integers(0, 20_000), position=st.integers(0, 20_000))
def test_damage_ends_in_an_error_of_the_archive(data: bytes, cut: int, position: int) -> None:
    """An archive with overwritten or missing bytes is read, or refused as an archive."""
    archive = tar_of({"a.jpg": bytes(700), "b" * 150: bytes(10)}, tarfile.PAX_FORMAT)
    position %= len(archive)
    damaged = (archive[:position] + data + archive[position + len(data) :])[
        : len(archive) - cut % len(archive)
    ]
    with contextlib.suppress(CorruptArchive, NotAnArchive):
        assert all(len(content) <= len(damaged) for content in indexed(damaged).files.values())


def test_the_content_says_what_is_a_tar(packed: Callable[[bytes], bytes]) -> None:
    """The name of the file does not matter, and one level of nested tars is read."""
    deepest = tar_of({"deep.jpg": b"d"})
    inner = tar_of({"in.jpg": b"\xff\xd8i", "b.tar": deepest})
    data = tar_of(
        {"x.jpg": b"\xff\xd8x", "called.jpg": inner, "no.tar": b"n", "a.gz": zipped(b"a")}
    )
    assert indexed(packed(data)).files == {
        "x.jpg": b"\xff\xd8x",
        "called.jpg/in.jpg": b"\xff\xd8i",
        "called.jpg/b.tar": deepest,
        "no.tar": b"n",
        "a.gz": zipped(b"a"),
    }


def test_other_compressions_are_refused_with_the_program_to_use() -> None:
    """Other compressions are refused, also in an inner tar."""
    index = indexed(tar_of({"n1.tar.xz": b"\xfd7zXZ\x00" + bytes(100)}))
    assert "unxz" in index.refused["n1.tar.xz"]
    inside = nested({"n1/a.jpg": b"a"}, packed=True)
    for archive in (inside, zipped(inside)):
        (reason,) = indexed(archive).refused.values()
        assert "unpack the outer tar" in reason


@pytest.mark.parametrize("ending", ["", ".tar", ".tar.gz", ".tgz", ".TAR", ".Tar.GZ"])
def test_members_are_called_as_if_unpacked_into_a_folder(ending: str) -> None:
    """The tar's name without its ending is the folder, unless all members are in that folder."""
    assert paths_in_folder(f"n1{ending}", ["a", "b/c"]) == ["n1/a", "n1/b/c"]
    assert paths_in_folder(f"train/n1{ending}", ["a"]) == ["train/n1/a"]
    assert paths_in_folder(f"train/n1{ending}", ["n1/a", "n1/b"]) == ["train/n1/a", "train/n1/b"]
    assert paths_in_folder(f"n1{ending}", ["n1/a", "b"]) == ["n1/n1/a", "n1/b"]


class Counted(MemoryStore):
    """A store that records the requested ranges, and fails beyond a byte."""

    def __init__(self, uri: str, fails_at: int = 2**63) -> None:
        super().__init__(uri)
        self.asked: list[tuple[int, int]] = []
        self._fails_at = fails_at

    def get_versioned(self, key: str, offset: int = 0, length: int | None = None) -> object:  # type: ignore[override]
        """Read as the memory store does."""
        self.asked.append((offset, length or 0))
        if offset + (length or 0) > self._fails_at:
            raise StoreUnreachable("no answer")
        return super().get_versioned(key, offset, length)


def test_of_large_members_headers_alone_are_read(tmp_path: Path) -> None:
    """Members above a window are skipped, small ones are read together, and nothing twice."""
    for size, count in ((8_000_000, 8), (1000, 4000)):
        store = Counted(f"memory://counted-{size}")
        tree = {f"n{i % 2}/{i}.jpg": b"\xff\xd8" + bytes(size) for i in range(count)}
        data = nested(tree)
        store.put("t.tar", data)
        table = index_tar(Archive.of(store, "t.tar", str(tmp_path / str(size))), "", print)
        assert len(table) == count
        fetched = sum(length for _, length in store.asked)
        assert fetched < (len(data) / 2 if size > 10**6 else 3 * len(data))
        assert len(store.asked) < 40


@pytest.mark.parametrize("packed", [False, True])
def test_a_store_that_gives_up_is_not_a_damaged_archive(packed: bool, tmp_path: Path) -> None:
    """An error of the store is raised unchanged, even from within decompression."""
    rng = np.random.default_rng(0)
    data = nested({f"n1/{i}.jpg": rng.bytes(900_000) for i in range(8)})
    store = Counted(f"memory://giving-up-{packed}", fails_at=4_000_000)
    store.put("t.tar", zipped(data) if packed else data)
    with pytest.raises(StoreUnreachable, match="no answer"):
        index_tar(Archive.of(store, "t.tar", str(tmp_path)), "", print)


def noise(count: int) -> bytes:
    """Compressible data whose blocks begin at any bit."""
    rng = np.random.default_rng(0)
    chunks = [rng.bytes(int(n)) for n in rng.integers(1, 12, 500)]
    return b"".join(chunks[i] for i in rng.integers(0, 500, count // 5))[:count]


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store of each kind that reads differently."""
    if request.param == "file":
        local = LocalStore(str(tmp_path / "store"))
        local.prepare()
        return local
    return MemoryStore(f"memory://{tmp_path.name}")


def test_gzip_content_is_read_at_any_place(store: Store, tmp_path: Path) -> None:
    """Threads and copies in workers read it by ranges of the gzip file only."""
    content = noise(6_000_000)
    packed = zipped(tar_of({"n1/a.jpg": content, "n1/b.jpg": b"b"}))
    store.put("key!gzip@", packed)
    source = ILSVRC(f"{store.uri}/key!gzip@", None, ILSVRCOptions(cache=str(tmp_path / "c")))
    listing = source.list()
    member = listing.located(listing.names.index("n1/a.jpg"))
    rng = np.random.default_rng(1)
    ranges = [(int(rng.integers(len(content))), int(rng.integers(0, 9) ** 6)) for _ in range(40)]
    ranges += [(0, 10), (len(content) - 3, 3), (0, len(content)), (7, 0)]
    copy = pickle.loads(pickle.dumps(source))

    def same(position: tuple[int, int]) -> bool:
        at, length = position[0], min(position[1], len(content) - position[0])
        item = member._replace(offset=member.offset + at, bytes=length)
        return bool(copy.read(item) == content[at : at + length])

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(same, ranges))


def test_damage_in_gzip_data_is_found_when_it_is_indexed() -> None:
    """Indexing compares the checksum of the complete data."""
    data = bytearray(zipped(tar_of({"a.jpg": bytes(range(256)) * 2000})))
    data[-6] ^= 1
    with pytest.raises(CorruptArchive, match="damaged or truncated"):
        indexed(bytes(data))


@pytest.mark.parametrize("packed", [False, True])
def test_a_relative_path_is_another_archive_elsewhere(
    packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cached index of a relative path counts only for the file in its own folder."""
    twins = {"one": {"n1/a.jpg": b"\xff\xd8aaa"}, "two": {"n2/b.jpg": b"\xff\xd8bbb"}}
    for folder, tree in twins.items():
        path = tmp_path / folder / "X.tar"
        path.parent.mkdir()
        path.write_bytes(zipped(nested(tree)) if packed else nested(tree))
        os.utime(path, ns=(1, 1))
    for folder, tree in twins.items():
        monkeypatch.chdir(tmp_path / folder)
        source = ILSVRC("X.tar", None, ILSVRCOptions(cache=str(tmp_path / "cache")))
        listing = source.list()
        assert {listing.names[0]: source.read(listing.located(0))} == tree
