"""A source of another kind than the requested one is refused with the right kind."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.commandline import in_process
from tests.tars import tar_of


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    """A folder of Parquet files with images, as on data set hubs."""
    folder = tmp_path / "parquet"
    folder.mkdir()
    image = pa.array([{"bytes": b"\xff\xd8\xff\xe0", "path": "a.jpg"}])
    table = pa.table({"image": image, "label": pa.array([0])})
    pq.write_table(table, folder / "train-00000-of-00001.parquet")
    return folder


def refused(source: Path, kind: str, output: Path) -> str:
    """The error line of a refused job. Nothing is written."""
    done = in_process("shard", "--source", source, "--kind", kind, "--output", output, code=2)
    assert not output.exists()
    (line,) = done.complaints
    return line


@pytest.mark.parametrize("kind", ["imagefolder", "flat", "ilsvrc", "listing", "records"])
def test_parquet_with_images_is_no_other_kind(parquet: Path, tmp_path: Path, kind: str) -> None:
    """With any other kind, the error names a Parquet file and the kind that reads it."""
    line = refused(parquet, kind, tmp_path / "out")
    assert "--kind parquet reads images in Parquet" in line


def test_a_parquet_file_with_images_is_no_listing(parquet: Path, tmp_path: Path) -> None:
    """The Parquet file itself is refused with the kind that reads it."""
    (file,) = parquet.iterdir()
    line = refused(file, "listing", tmp_path / "out")
    assert "column 'image' has images, not paths: read it with --kind parquet" in line


def test_webdataset_is_no_class_tars(tmp_path: Path) -> None:
    """WebDataset tars are not read as class tars: the message names the right kind."""
    (tmp_path / "tars").mkdir()
    for name in ("train-000000.tar", "train-000001.tar"):
        (tmp_path / "tars" / name).write_bytes(tar_of({"0.jpg": b"\xff\xd8", "0.cls": b"3"}))
    line = refused(tmp_path / "tars", "ilsvrc", tmp_path / "out")
    assert f"read it with --source {tmp_path}/tars --kind webdataset" in line


@pytest.mark.parametrize(
    ("file", "advice"),
    [
        ("n01440764.tar", "--kind ilsvrc"),
        ("0.tar", "--kind webdataset"),
        ("train_0.rec", "--kind records"),
    ],
)
@pytest.mark.parametrize("kind", ["imagefolder", "flat"])
def test_files_of_another_kind_are_named(tmp_path: Path, file: str, advice: str, kind: str) -> None:
    """For a folder without images, the error names the kind for its files."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / file).write_bytes(b"content")
    line = refused(tmp_path / "files", kind, tmp_path / "out")
    assert repr(file) in line
    assert advice in line
