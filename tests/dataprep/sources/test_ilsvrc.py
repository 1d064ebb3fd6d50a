"""Archives are read as class folders are, in every shape, and damaged ones are refused."""

from __future__ import annotations

import bz2
import io
import os
import pickle
import random
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from dataprep.errors import (
    CorruptArchive,
    NotAnArchive,
    SourceChanged,
    SourceError,
    SourceNotFound,
    TruncatedArchive,
)
from dataprep.sources.ilsvrc import ILSVRC
from dataprep.sources.imagefolder import ImageFolder
from dataprep.sources.options import ILSVRCOptions
from dataprep.sources.protocol import Listing
from dataprep.stores import StoreOptions
from dataprep.stores.s3 import S3Store
from iobench.servers.moto_server import MotoServer
from tests.permissions import reachable_folder, unprivileged
from tests.tars import nested, tar_of, zipped

pytestmark = pytest.mark.usefixtures("own_cache")

TREE = {
    "n01443537/n01443537_2.JPEG": b"\xff\xd8second" * 4000,
    "n01440764/n01440764_10.JPEG": b"\xff\xd8ten",
    "n01440764/n01440764_1.JPEG": b"\xff\xd8one" * 9,
    "n01440764/odd\n\udcff name.JPEG": b"\xff\xd8odd",
    "n01440764/.DS_Store": b"clutter",
    "n01440764/empty.JPEG": b"",
}


def shuffled(tree: Mapping[str, bytes], seed: int) -> dict[str, bytes]:
    """The same files in another order."""
    items = list(tree.items())
    random.Random(seed).shuffle(items)
    return dict(items)


def below(folder: str, tree: Mapping[str, bytes]) -> dict[str, bytes]:
    """The same files, below another folder."""
    return {f"{folder}/{name}": data for name, data in tree.items()}


def doubled(tree: Mapping[str, bytes]) -> dict[str, bytes]:
    """The same files, with the class folder in the inner tar as well."""
    return {f"{name.split('/')[0]}/{name}": data for name, data in tree.items()}


SHAPES: dict[str, Callable[[], bytes]] = {
    "tar of tars": lambda: nested(TREE),
    "tar of tars in pax": lambda: nested(TREE, form=tarfile.PAX_FORMAT),
    "in another order": lambda: nested(shuffled(TREE, 3)),
    "with folders in the inner tars": lambda: nested(doubled(TREE)),
    "a tree in a tar": lambda: tar_of(shuffled(TREE, 4)),
    "a tree below ./": lambda: tar_of(below(".", TREE)),
    "gzipped": lambda: zipped(nested(TREE)),
    "a gzipped tree": lambda: zipped(tar_of(TREE)),
}


def put(folder: Path, data: bytes, name: str = "archive") -> str:
    """Write an archive to a file whose name does not show its format."""
    path = folder / name
    path.write_bytes(data)
    return str(path)


@pytest.fixture
def tar_folder(tmp_path: Path) -> Path:
    """An empty folder for tars."""
    folder = tmp_path / "tars"
    folder.mkdir()
    return folder


def contents(source: ILSVRC, listing: Listing) -> dict[str, bytes]:
    """The bytes of each sample by name."""
    rows = (row for row in range(len(listing)) if row not in listing.problems)
    return {listing.names[row]: source.read(listing.located(row)) for row in rows}


def without_locations(listing: Listing) -> tuple[object, ...]:
    """The part of a listing that class folders have as well."""
    return (
        list(listing.names),
        listing.sizes.tolist(),
        list(listing.classes),
        dict(sorted(listing.problems.items())),
    )


@pytest.fixture
def folders(tmp_path: Path) -> Listing:
    """The listing of class folders with the same files."""
    for name, data in TREE.items():
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return ImageFolder(str(tmp_path / "photos")).list()


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_lists_as_class_folders_do(
    shape: str, tmp_path: Path, folders: Listing
) -> None:
    """Names, sizes, classes and problems are those of class folders, and every byte is read."""
    source = ILSVRC(put(tmp_path, SHAPES[shape]()))
    listing = source.list()
    assert without_locations(listing) == without_locations(folders)
    assert listing.sizes.dtype == listing.offsets.dtype == np.int64
    expected = {name: data for name, data in TREE.items() if "DS_Store" not in name}
    assert contents(source, listing) == expected
    copy = pickle.loads(pickle.dumps(source))
    assert contents(copy, listing) == expected


@pytest.mark.parametrize("shape", SHAPES)
def test_on_s3(
    shape: str, tmp_path: Path, bucket: str, s3_server: MotoServer, folders: Listing
) -> None:
    """On S3 every shape is listed and read as on disk, with many reads in flight."""
    options = StoreOptions(endpoint_url=s3_server.url)
    S3Store(f"s3://{bucket}/deep", options).put("archive", SHAPES[shape]())
    source = ILSVRC(f"s3://{bucket}/deep/archive", options)
    listing = source.list()
    assert without_locations(listing) == without_locations(folders)
    assert contents(source, listing)["n01440764/n01440764_10.JPEG"] == b"\xff\xd8ten"
    assert source.concurrency > 4
    assert pickle.loads(pickle.dumps(source)).read(listing.located(1)) is not None


@pytest.mark.parametrize("ending", ["", ".tar", ".tar.gz", ".tgz", ".TAR"])
def test_a_folder_of_tars(ending: str, tar_folder: Path, folders: Listing) -> None:
    """If only the outer tar was unpacked, its folder of inner tars is the source."""
    for group in ("n01440764", "n01443537"):
        data = tar_of({n[10:]: d for n, d in TREE.items() if n.startswith(group)})
        put(tar_folder, zipped(data) if "gz" in ending else data, group + ending)
    put(tar_folder, b"d41d8cd9  n01440764.tar", "MD5SUMS")
    source = ILSVRC(str(tar_folder))
    listing = source.list()
    assert listing.names[0] == "MD5SUMS"
    assert listing.problems[0].status == "skipped"
    assert list(listing.names[1:]) == list(folders.names)
    assert list(listing.classes[1:]) == list(folders.classes)
    assert contents(source, listing)["n01440764/n01440764_10.JPEG"] == b"\xff\xd8ten"


def folder_alone() -> bytes:
    """A tar of a folder without files."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as tar:
        folder = tarfile.TarInfo("n01440764")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
    return sink.getvalue()


NO_CLASS_TARS: dict[str, tuple[bytes, str]] = {
    "of no bytes": (b"", "no tar archive"),
    "zeros of a download that was not filled": (bytes(2_000_000), "no tar archive"),
    "garbage": (b"garbage" * 3000, "no tar archive"),
    "of gzip": (zipped(tar_of({"n2.JPEG": b"\xff\xd8"})), "unpack the outer tar"),
    "of bzip2": (bz2.compress(tar_of({"n2.JPEG": b"\xff\xd8"})), "bunzip2 --keep"),
    "a damaged header": (b"?" + tar_of({"x.JPEG": b"\xff\xd8"})[1:], "no tar header at byte"),
}


@pytest.mark.parametrize("shape", ["folder", "tar", "gzipped"])
@pytest.mark.parametrize("what", NO_CLASS_TARS)
def test_no_class_vanishes(what: str, shape: str, tar_folder: Path) -> None:
    """A tar among class tars that gives no sample is an error with its name."""
    data, message = NO_CLASS_TARS[what]
    if what == "of gzip" and shape == "folder":
        pytest.skip("a folder may contain compressed tars")
    tars = {"n01440764.tar": tar_of({"n1.JPEG": b"\xff\xd8"}), "n01443537.TAR": data}
    for name, content in tars.items():
        put(tar_folder, content, name)
    path = str(tar_folder)
    if shape != "folder":
        packed = tar_of(tars)
        path = put(tar_folder.parent, zipped(packed) if shape == "gzipped" else packed)
    with pytest.raises(SourceError, match=message) as caught:
        ILSVRC(path).list()
    lines = [path, "n01443537.TAR"]
    if "damaged" not in what:
        lines += [
            "A class would be missing",
            "move it els" if shape == "folder" else "tar --delete",
        ]
    assert all(part in str(caught.value) for part in lines)


EMPTY_TARS = {
    "an end marker": bytes(10_240),
    "only a folder": folder_alone(),
    "no images": tar_of({"readme.txt": b"words"}),
    "system files": tar_of({".DS_Store": b"x", "@eaDir/1.jpg": b"x"}),
}


@pytest.mark.parametrize("shape", ["folder", "tar", "gzipped"])
@pytest.mark.parametrize("what", EMPTY_TARS)
def test_an_empty_class_tar_is_named_and_no_class(what: str, shape: str, tar_folder: Path) -> None:
    """The other classes are listed, and nothing fails."""
    tars = {"n01440764.tar": tar_of({"n1.JPEG": b"\xff\xd8"}), "n01443537.TAR": EMPTY_TARS[what]}
    for name, content in tars.items():
        put(tar_folder, content, name)
    path = str(tar_folder)
    if shape != "folder":
        packed = tar_of(tars)
        path = put(tar_folder.parent, zipped(packed) if shape == "gzipped" else packed)
    listing = ILSVRC(path).list()
    assert {*listing.classes} - {""} == {"n01440764"}
    assert {problem.status for problem in listing.problems.values()} == {"skipped"}
    assert listing.notes == ("1 archive without images, which make no class: 'n01443537.TAR'",)


def test_odd_files_in_a_folder_of_tars(tar_folder: Path) -> None:
    """Of other entries, those named like a tar are an error, and the others fail by name."""
    put(tar_folder, tar_of({"n1.JPEG": b"\xff\xd8"}), "n01440764.tar")
    put(tar_folder, b"d41d8cd9  n01443537.tar", "n01443537.tar.md5")
    put(tar_folder, b"clutter", "._n01440764.tar")
    os.mkfifo(tar_folder / "pipe")
    (tar_folder / "loop").symlink_to("loop")
    listing = ILSVRC(str(tar_folder)).list()
    assert {listing.names[row]: problem for row, problem in listing.problems.items()} == {
        "._n01440764.tar": ("skipped", "hidden or system file"),
        "loop": ("failed", "broken symlink"),
        "n01443537.tar.md5": ("skipped", "no tar archive: its content begins otherwise"),
        "pipe": ("failed", "not a regular file"),
    }
    (tar_folder / "pipe").rename(tar_folder / "n01443537.tar")
    with pytest.raises(SourceError, match=r"n01443537\.tar: not a regular file\. A class"):
        ILSVRC(str(tar_folder)).list()
    (tar_folder / "loop").rename(tar_folder / "a.tgz")
    with pytest.raises(SourceError, match=r"a\.tgz: broken symlink \(and 1 more\)\. A class"):
        ILSVRC(str(tar_folder)).list()


def test_a_tar_that_may_not_be_read() -> None:
    """An unreadable tar is an error of the source with its name, alone and in a folder."""
    with reachable_folder() as folder:
        put(folder, tar_of({"n1.JPEG": b"\xff\xd8"}), "n01440764.tar")
        put(folder, tar_of({"n2.JPEG": b"\xff\xd8"}), "n01443537.tar")
        (folder / "n01443537.tar").chmod(0)
        section = ILSVRCOptions(cache=str(folder / "cache"))
        with unprivileged():
            with pytest.raises(SourceError, match=r"permission denied: '.*n01443537\.tar'"):
                ILSVRC(str(folder), None, section).list()
            with pytest.raises(SourceError, match=r"permission denied: '.*n01443537\.tar'"):
                ILSVRC(str(folder / "n01443537.tar"), None, section).list()


def test_a_tar_beside_its_compressed_self(tar_folder: Path) -> None:
    """The files that bunzip2 --keep and gunzip --keep leave do not remove a class."""
    data = tar_of({"n1.JPEG": b"\xff\xd8"})
    for ending, content in (("", data), (".bz2", bz2.compress(data)), (".gz", zipped(data))):
        put(tar_folder, content, f"n01440764.tar{ending}")
    listing = ILSVRC(str(tar_folder)).list()
    samples = [name for row, name in enumerate(listing.names) if row not in listing.problems]
    assert samples == ["n01440764/n1.JPEG"]


def test_a_tar_beside_class_folders_is_no_class(tmp_path: Path) -> None:
    """Beside class folders, a tar of other files is skipped."""
    path = put(tmp_path, tar_of({**TREE, "notes.tar": b"", "xml.tar": tar_of({"a.xml": b""})}))
    listing = ILSVRC(path).list()
    problems = {listing.names[row]: problem.status for row, problem in listing.problems.items()}
    assert problems["notes.tar"] == problems["xml/a.xml"] == "skipped"


def test_kaggles_archive_by_folder(tmp_path: Path, folders: Listing) -> None:
    """One folder of an archive of everything can be read as a source."""
    everything = {
        **below("ILSVRC/Data/CLS-LOC/train", TREE),
        "ILSVRC/Data/CLS-LOC/val/ILSVRC2012_val_00000001.JPEG": b"\xff\xd8v1",
        "ILSVRC/Data/CLS-LOC/test/ILSVRC2012_test_00000001.JPEG": b"\xff\xd8t1",
        "ILSVRC/ImageSets/CLS-LOC/train_cls.txt": b"n01440764/n01440764_10 1",
    }
    path = put(tmp_path, tar_of(everything))
    with pytest.raises(SourceError, match=r"--set ilsvrc\.folder=ILSVRC/Data/CLS-LOC/train"):
        ILSVRC(path).list()
    train = ILSVRC(path, None, ILSVRCOptions(folder="ILSVRC/Data/CLS-LOC/train")).list()
    assert without_locations(train) == without_locations(folders)
    for folder in ("./ILSVRC/Data//CLS-LOC/train/.", "/ILSVRC/./Data/CLS-LOC/train/"):
        same = ILSVRC(path, None, ILSVRCOptions(folder=folder)).list()
        assert same.digest() == train.digest()
    val = ILSVRC(path, None, ILSVRCOptions(folder="/ILSVRC/Data/CLS-LOC/val/")).list()
    assert (list(val.names), list(val.classes)) == (["ILSVRC2012_val_00000001.JPEG"], [""])
    with pytest.raises(SourceNotFound, match="nothing is below 'nowhere'"):
        ILSVRC(path, None, ILSVRCOptions(folder="nowhere")).list()


@pytest.mark.parametrize("folder", ["", "val/", "./ILSVRC/Data/val/"])
def test_flat_tars_have_no_classes(folder: str, tmp_path: Path) -> None:
    """Validation images have no class, and are sorted by name."""
    names = [f"ILSVRC2012_val_{i:08}.JPEG" for i in (3, 1, 2)]
    files = {folder + name: b"\xff\xd8" + name.encode() for name in names}
    source = ILSVRC(put(tmp_path, tar_of({**files, f"{folder}readme.txt": b"words"})))
    listing = source.list()
    prefix = folder.removeprefix("./")
    assert list(listing.names) == [*sorted(prefix + n for n in names), f"{prefix}readme.txt"]
    assert set(listing.classes) == {""}
    assert {row: problem.status for row, problem in listing.problems.items()} == {3: "skipped"}
    assert contents(source, listing)[prefix + names[0]] == b"\xff\xd8" + names[0].encode()


def test_the_last_of_equal_names_counts(tmp_path: Path) -> None:
    """A later member replaces an earlier one, as in unpacking. The earlier one is skipped."""
    first = tar_of({"n01440764/x.JPEG": b"\xff\xd8old", "n01440764/y.JPEG": b"\xff\xd8y"})
    path = put(tmp_path, first)
    with tarfile.open(path, "a") as tar:
        (tmp_path / "new").write_bytes(b"\xff\xd8brand new")
        tar.add(tmp_path / "new", "./n01440764/x.JPEG")
    source = ILSVRC(path)
    listing = source.list()
    assert contents(source, listing) == {
        "n01440764/x.JPEG": b"\xff\xd8brand new",
        "n01440764/y.JPEG": b"\xff\xd8y",
    }
    assert list(listing.names).count("n01440764/x.JPEG") == 2
    (problem,) = listing.problems.values()
    assert (problem.status, "same name" in problem.reason) == ("skipped", True)


def test_hostile_members_fail_by_name(tmp_path: Path) -> None:
    """Links and paths that leave the archive fail with a reason, and do not affect a class."""
    hostile = ["../../n09999999/evil.JPEG", "/etc/cron.d/x.JPEG"]
    files = {**TREE, **dict.fromkeys(hostile, b"\xff\xd8")}
    path = put(tmp_path, tar_of(files, links={"n01440764/link.JPEG": "/etc/passwd"}))
    listing = ILSVRC(path).list()
    failed = {
        listing.names[r]: p.reason for r, p in listing.problems.items() if p.status == "failed"
    }
    assert failed.keys() == {*hostile, "n01440764/link.JPEG"}
    assert failed["n01440764/link.JPEG"] == "symbolic link in the archive"
    assert set(listing.classes) == {"n01440764", "n01443537", ""}
    assert not any(path.name == "evil.JPEG" for path in tmp_path.rglob("*"))


def listed(path: str) -> tuple[Listing, list[str]]:
    """A listing by a new source, and its messages."""
    lines: list[str] = []
    source = ILSVRC(path)
    source.announce_to(lines.append)
    return source.list(), lines


def test_what_decompression_costs_is_said_once(tar_folder: Path) -> None:
    """One line has the cost of all compressed tars in a folder, and later runs print none."""
    for group in range(5):
        put(tar_folder, zipped(tar_of({"x.JPEG": b"\xff\xd8%d" % group})), f"n{group:08}.tar.gz")
    (line,) = listed(str(tar_folder))[1]
    assert "decompressed once" in line
    assert "up to 1 MB before it" in line
    assert listed(str(tar_folder))[1] == []


class TestCache:
    def test_an_index_is_made_once(self, tmp_path: Path) -> None:
        """A second source finds the index, and reads no part of a compressed archive to list it."""
        path = put(tmp_path, zipped(nested(TREE)))
        first, (message,) = listed(path)
        assert "decompressed once" in message
        again, silent = listed(path)
        assert (silent, again.digest()) == ([], first.digest())

    def test_a_stale_index_is_made_anew(self, tmp_path: Path) -> None:
        """An archive of another size or time is indexed again."""
        path = put(tmp_path, nested(TREE))
        before = listed(path)[0].digest()
        put(tmp_path, nested({**TREE, "n01440764/more.JPEG": b"\xff\xd8"}))
        assert "n01440764/more.JPEG" in listed(path)[0].names
        changed = nested({**TREE, "n01440764/mooo.JPEG": b"\xff\xd8"})
        put(tmp_path, changed)
        os.utime(path, ns=(1, 1))
        assert "n01440764/mooo.JPEG" in listed(path)[0].names
        put(tmp_path, nested(TREE))
        assert listed(path)[0].digest() == before

    @pytest.mark.parametrize("packed", [False, True])
    def test_a_corrupt_index_is_made_anew(self, packed: bool, tmp_path: Path) -> None:
        """With any content in the cache, the listing and the bytes are right."""
        data = nested(TREE)
        path = put(tmp_path, zipped(data) if packed else data)
        digest = listed(path)[0].digest()
        index_files = [
            file for file in (tmp_path / "cache" / "dataprep").iterdir() if file.stat().st_size
        ]
        assert len(index_files) == 1 + packed
        for damage in (b"", b"PAR1 nonsense", index_files[0].read_bytes()[:-9]):
            for file in index_files:
                file.write_bytes(damage)
            source = ILSVRC(path)
            listing = source.list()
            assert listing.digest() == digest
            assert contents(source, listing)["n01440764/n01440764_10.JPEG"] == b"\xff\xd8ten"

    def test_a_cache_that_cannot_be_written(self, tmp_path: Path) -> None:
        """Without a stored index a plain tar only takes time, and a compressed one is refused."""
        blocked = tmp_path / "a file"
        blocked.write_bytes(b"")
        section = ILSVRCOptions(cache=str(blocked / "cache"))
        path = put(tmp_path, nested(TREE))
        assert len(ILSVRC(path, None, section).list()) == len(TREE)
        with pytest.raises(ValueError, match=r"--set ilsvrc\.cache"):
            ILSVRC(put(tmp_path, zipped(nested(TREE))), None, section).list()

    def test_a_worker_without_the_cache_finds_the_points_itself(self, tmp_path: Path) -> None:
        """Missing access points are found again from the archive."""
        source = ILSVRC(put(tmp_path, zipped(nested(TREE))))
        listing = source.list()
        for file in (tmp_path / "cache" / "dataprep").iterdir():
            file.unlink()
        copy = pickle.loads(pickle.dumps(source))
        assert contents(copy, listing)["n01440764/n01440764_10.JPEG"] == b"\xff\xd8ten"

    def test_a_worker_in_another_folder_has_the_same_archive_and_cache(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Paths are made absolute in the driver, so that no second cache is made."""
        put(tmp_path, zipped(nested(TREE)), "all.tar.gz")
        monkeypatch.chdir(tmp_path)
        source = ILSVRC("all.tar.gz", None, ILSVRCOptions(cache="points"))
        listing = source.list()
        packed = pickle.dumps(source)
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        copy = pickle.loads(packed)
        assert contents(copy, listing)["n01440764/n01440764_10.JPEG"] == b"\xff\xd8ten"
        assert [*(tmp_path / "elsewhere").iterdir()] == []
        assert copy.uri == str(tmp_path / "all.tar.gz")


class TestRefused:
    @pytest.mark.parametrize("cut", [0.3, 0.6, 0.95])
    @pytest.mark.parametrize("packed", [False, True])
    def test_truncated(self, cut: float, packed: bool, tmp_path: Path) -> None:
        """A truncated archive is refused by name, and for a plain one with the byte of its end."""
        noise = np.random.default_rng(0).bytes(300_000)
        data = nested({**TREE, "n01443537/noise.JPEG": noise, "n01440764/noise.JPEG": noise})
        data = zipped(data) if packed else data
        path = put(tmp_path, data[: int(len(data) * cut)])
        with pytest.raises(CorruptArchive, match="truncated") as caught:
            ILSVRC(path).list()
        assert path in str(caught.value)
        if not packed:
            assert isinstance(caught.value, TruncatedArchive)
            assert f"byte {int(len(data) * cut):,}" in str(caught.value)

    @pytest.mark.parametrize(
        ("data", "text"),
        [
            (b"PK\x03\x04 a zip file" * 100, "no tar archive"),
            (b"", "no tar archive"),
            (zipped(b"text " * 1000), "no tar archive"),
            (bz2.compress(bytes(1000)), "bunzip2"),
            (b"\xfd7zXZ\x00" + bytes(600), "unxz"),
            (b"\x28\xb5\x2f\xfd" + bytes(600), "unzstd"),
        ],
        ids=["zip", "empty", "text.gz", "bzip2", "xz", "zstd"],
    )
    def test_no_tars(self, data: bytes, text: str, tmp_path: Path) -> None:
        """A file that is no tar by its content is refused, with a remedy."""
        with pytest.raises(NotAnArchive, match=text):
            ILSVRC(put(tmp_path, data, "train.tar")).list()

    def test_nothing_there(self, tar_folder: Path) -> None:
        """A missing file, an empty folder, and a folder of other files have a remedy each."""
        with pytest.raises(SourceNotFound, match="no such file or directory"):
            ILSVRC(str(tar_folder / "nowhere.tar")).list()
        with pytest.raises(SourceNotFound, match="no archive at"):
            ILSVRC(str(tar_folder)).list()
        put(tar_folder, b"\xff\xd8", "a.jpg")
        with pytest.raises(SourceNotFound, match="for class folders leave --kind out"):
            ILSVRC(str(tar_folder)).list()
        put(tar_folder, nested(TREE), "ILSVRC2012_img_train.tar")
        with pytest.raises(SourceError, match=r"--source .*/tars/ILSVRC2012_img_train\.tar"):
            ILSVRC(str(tar_folder)).list()

    @pytest.mark.parametrize("shape", ["tar of tars", "gzipped"])
    def test_an_archive_changed_between_listing_and_reading(
        self, shape: str, tmp_path: Path
    ) -> None:
        """A worker that finds another archive than was listed stops."""
        data = SHAPES[shape]()
        source = ILSVRC(put(tmp_path, data))
        listing = source.list()
        item = listing.located(listing.names.index("n01440764/n01440764_1.JPEG"))
        frozen = pickle.dumps(source)
        put(tmp_path, data)  # the same bytes with another time
        for _ in range(2):
            with pytest.raises(SourceChanged, match="was changed or removed since"):
                pickle.loads(frozen).read(item)
            (tmp_path / "archive").unlink(missing_ok=True)


@pytest.mark.parametrize("packed", [False, True])
def test_many_archives_share_few_descriptors(packed: bool, tar_folder: Path) -> None:
    """More archives than may be open at once can be read, and are closed."""
    for i in range(150):
        data = tar_of({"x.JPEG": b"\xff\xd8%d" % i})
        put(tar_folder, zipped(data) if packed else data, f"n{i:08}.tar")
    source = ILSVRC(str(tar_folder))
    listing = source.list()
    for _ in range(2):
        assert len(contents(source, listing)) == 150
    assert len(list(Path("/proc/self/fd").iterdir())) < 150
