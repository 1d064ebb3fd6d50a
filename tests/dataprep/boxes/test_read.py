"""Annotations from wherever they lie."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from dataprep.boxes import BoxOptions
from dataprep.boxes.read import read_annotations
from dataprep.boxes.voc import LARGEST_BYTES
from dataprep.errors import SourceError, SourceNotFound
from dataprep.stores import StoreOptions, open_store
from iobench.s3_server import MotoServer

FILES = {
    f"Annotation/n0000000{i % 3}/n0000000{i % 3}_{i}.xml": (
        f"<annotation><size><width>{20 + i}</width><height>30</height></size><object><name>c</name>"
        f"<bndbox><xmin>{i}</xmin><ymin>2</ymin><xmax>9</xmax><ymax>10</ymax></bndbox></object>"
        "</annotation>"
    ).encode()
    for i in range(7)
}


def tar_of(files: dict[str, bytes], mode: str = "w") -> bytes:
    """A tar of them, with folders."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode=mode) as tar:  # type: ignore[call-overload]
        folder = tarfile.TarInfo("Annotation")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return sink.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Annotations as files, among clutter."""
    for name, data in FILES.items():
        path = tmp_path / "boxes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (tmp_path / "boxes" / "README").write_text("boxes")
    (tmp_path / "boxes" / "Annotation" / "._n00000000_0.xml").write_bytes(b"\0\5\x16\7")
    return tmp_path / "boxes"


def keyed(source: str | Path, options: StoreOptions | None = None) -> dict[bytes, int]:
    """What was read: key to width."""
    table = read_annotations(BoxOptions(source=str(source)), options)
    assert table["problem"].null_count == len(table)
    return dict(zip(table["key"].to_pylist(), table["width"].to_pylist(), strict=True))


WANTED = {name.removesuffix(".xml").encode(): 20 + i for i, name in enumerate(FILES)}


def test_a_folder(folder: Path) -> None:
    """XML files below it, whatever else lies there."""
    assert keyed(folder) == WANTED
    assert keyed(f"{folder}/") == WANTED


@pytest.mark.parametrize(
    ("name", "mode"), [("b.tar", "w"), ("b.tar.gz", "w:gz"), ("b.tgz", "w:gz")]
)
def test_a_tar(tmp_path: Path, name: str, mode: str) -> None:
    """As image-net.org gives them, and unpacked of its gzip."""
    (tmp_path / name).write_bytes(tar_of(FILES, mode))
    assert keyed(tmp_path / name) == WANTED


def test_a_tar_of_tars(tmp_path: Path) -> None:
    """The older archives hold one for each synset."""
    names = sorted({name.split("/")[1] for name in FILES})
    inner = {
        f"Annotation/{n}.tar.gz": tar_of({k: v for k, v in FILES.items() if n in k}, "w:gz")
        for n in names
    }
    (tmp_path / "b.tar").write_bytes(tar_of(inner))
    assert keyed(tmp_path / "b.tar") == WANTED


def test_s3(tmp_path: Path, folder: Path, bucket: str, s3_server: MotoServer) -> None:
    """Objects below a prefix, or one archive, with the endpoint of the images."""
    options = StoreOptions(endpoint_url=s3_server.url)
    store = open_store(f"s3://{bucket}/x", options)
    for name, data in FILES.items():
        store.put(name, data)
    store.put("boxes.tar", tar_of(FILES))
    assert keyed(f"s3://{bucket}/x/Annotation", options).keys() == {
        key.removeprefix(b"Annotation/") for key in WANTED
    }
    assert keyed(f"s3://{bucket}/x/boxes.tar", options) == WANTED


@pytest.mark.parametrize("name", ["b.csv", "b.csv.gz"])
def test_a_csv_file(tmp_path: Path, name: str) -> None:
    """Its name tells it; packed or not."""
    data = b"a.jpg,0,0,1,1\n"
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert keyed(tmp_path / name) == {b"a": 1}


def test_a_csv_file_of_another_name(tmp_path: Path) -> None:
    """The config may tell."""
    (tmp_path / "boxes.dat").write_bytes(b"a.jpg,0,0,1,1\n")
    table = read_annotations(BoxOptions(source=str(tmp_path / "boxes.dat"), format="csv"))
    assert table["key"].to_pylist() == [b"a"]


def test_processes_read_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many files are parsed by several processes, in their order."""
    (tmp_path / "b.tar").write_bytes(tar_of(FILES))
    monkeypatch.setattr("dataprep.boxes.read._BATCH", 2)
    options = BoxOptions(source=str(tmp_path / "b.tar"))
    assert read_annotations(options, workers=2).equals(read_annotations(options, workers=1))


def test_broken_files_say_why(folder: Path) -> None:
    """A file that cannot be read has no boxes, a mark and a reason; the others are read."""
    (folder / "bad.xml").write_bytes(b"<annotation>")
    (folder / "huge.xml").write_bytes(b" " * (LARGEST_BYTES + 1))
    table = read_annotations(BoxOptions(source=str(folder)))
    problems = {row["key"]: row["problem"] for row in table.to_pylist() if row["problem"]}
    assert problems.keys() == {b"bad", b"huge"}
    assert "not XML" in problems[b"bad"]
    assert len(table) == len(FILES) + 2
    assert table["width"].to_pylist().count(-1) == 2


def test_nothing_there(tmp_path: Path) -> None:
    """A folder without XML, no folder and no file are said to have no boxes."""
    for name in ("", "none", "none.csv", "none.tar"):
        with pytest.raises(SourceNotFound, match="no boxes at"):
            read_annotations(BoxOptions(source=str(tmp_path / name)))


@pytest.mark.parametrize("damage", ["cut", "other"])
def test_a_damaged_archive(tmp_path: Path, damage: str) -> None:
    """It is named, not taken for a smaller one."""
    data = tar_of(FILES, "w:gz")
    path = tmp_path / "b.tar.gz"
    path.write_bytes(data[: len(data) // 2] if damage == "cut" else b"no archive" * 100)
    with pytest.raises(SourceError, match="is not a whole archive"):
        read_annotations(BoxOptions(source=str(path)))
