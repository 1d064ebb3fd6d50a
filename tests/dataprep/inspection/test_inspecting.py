"""``dataprep inspect``, as people run it."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

import dataprep
from dataprep.cli.main import app
from dataprep.errors import ConfigError
from dataprep.stores.memory import MemoryStore


def run(*arguments: object) -> tuple[int, str, str]:
    """Exit code, stdout, stderr; nothing a user can cause is a traceback."""
    result = CliRunner().invoke(app, ["inspect", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stdout, result.stderr


def damage(shard: Path, record: int) -> int:
    """Change the first byte of a record; where that is."""
    offset = int(json.loads(run(shard, "--json")[1])["records"][record]["offset"])
    data = bytearray(shard.read_bytes())
    data[offset] ^= 0xFF
    shard.write_bytes(data)
    return offset


class TestOutput:
    def test_in_words(self, folder: Path) -> None:
        """A paragraph a split: shards, labels, sizes, sources, failures."""
        code, out, err = run(folder)
        assert (code, err) == (0, "")
        dataset = dataprep.open(folder)
        assert out.startswith(
            f"train: {len(dataset):,} of {len(dataset) + 1:,} samples in 2 shards"
        )
        assert "\nvalidation: " in out
        assert "labels in records from 1" in out
        assert "labels: 6 classes of " in out
        assert "1 x failed: " in out

    def test_as_json(self, folder: Path) -> None:
        """--json has the same figures."""
        code, out, _ = run(folder, "--split", "train", "--json")
        (split,) = json.loads(out)["splits"]
        assert code == 0
        assert split["samples"]["written"] == len(dataprep.open(folder))
        assert split["classes"]["count"] == 6

    def test_in_memory(self, memory: MemoryStore) -> None:
        """An output in memory is looked into like any other, within its process."""
        assert dataprep.inspect(memory.uri).content["splits"][0]["split"] == "train"

    @pytest.mark.parametrize("kind", ["missing", "empty", "other"])
    def test_nothing(self, tmp_path: Path, kind: str) -> None:
        """Where no data set lies, it ends with 2 and one line that says what lies there."""
        path = tmp_path / "out"
        if kind != "missing":
            path.mkdir()
        if kind == "other":
            (path / "notes.txt").write_text("x")
        code, out, err = run(path)
        assert (code, out) == (2, "")
        assert err.startswith("dataprep: no data set in ")
        assert err.count("\n") == 1
        assert ("notes.txt" in err) == (kind == "other")


class TestShard:
    def test_a_table(self, shard: Path) -> None:
        """A line a record; names cannot do anything to a terminal."""
        code, out, err = run(shard)
        assert (code, err) == (0, "")
        assert len(out.splitlines()) == 3 + len(dataprep.open(shard.parents[1]).shards()[0])
        assert "\x1b" not in out

    def test_as_json(self, stray: Path) -> None:
        """--json has a record an entry."""
        code, out, _ = run(stray, "--json")
        found = json.loads(out)
        assert code == 0
        assert found["records"][0]["offset"] == 0
        assert found["records"][1]["offset"] == found["records"][0]["length"]
        assert found["fault"] is None

    def test_damaged(self, stray: Path) -> None:
        """A damaged shard: the records before the damage, then the damage, and exit code 1."""
        records = json.loads(run(stray, "--json")[1])["records"]
        offset = records[3]["offset"]
        data = bytearray(stray.read_bytes())
        data[offset] ^= 0xFF
        stray.write_bytes(data)
        code, out, err = run(stray)
        assert (code, err) == (1, "")
        assert out.splitlines()[-1].startswith(f"fault: {stray}: record 3 at byte {offset}: ")
        assert len(out.splitlines()) == 3 + 3 + 1
        code, out, _ = run(stray, "--json")
        assert code == 1
        assert json.loads(out)["fault_offset"] == offset

    def test_something_else(self, tmp_path: Path) -> None:
        """A file of another kind ends with 2, and says how it begins."""
        (tmp_path / "x").write_bytes(b"hello, world, this is text")
        code, out, err = run(tmp_path / "x")
        assert (code, out) == (2, "")
        assert "neither TFRecord nor RecordIO: it begins with b'hello" in err

    def test_a_hostile_name(self, shard: Path, tmp_path: Path) -> None:
        """A path with control characters and bytes that are no text is printed escaped."""
        path = tmp_path / "x\x1b[31m\udcff.rec"
        shutil.copy(shard, path)
        code, out, _ = run(path)
        assert code == 0
        assert "\\x1b[31m" in out
        assert "\x1b" not in out


class TestRecord:
    def test_of_an_output(self, folder: Path, form: str) -> None:
        """All that a sample's record holds, and where it lies."""
        code, out, err = run(folder, "--record", 3, "--format", form)
        row = dataprep.open(folder, format=form).written.iloc[3]
        assert (code, err) == (0, "")
        offset, length = row[f"{form}_offset"], row[f"{form}_length"]
        assert f"Range: bytes={offset}-{offset + length - 1}" in out
        assert f"label {row['label']}, counted from 0: {row['synset']}" in out
        assert row["source_sha256"] in out
        assert f"image: JPEG of {row['width']} x {row['height']}" in out
        assert ("image/class/synset" in out) == (form == "tfrecord")

    @pytest.mark.parametrize("kind", ["folder", "shard", "stray"])
    def test_save(self, folder: Path, shard: Path, stray: Path, kind: str, tmp_path: Path) -> None:
        """--save stores the image byte for byte as it lies in the record."""
        path = {"folder": folder, "shard": shard, "stray": stray}[kind]
        code, out, _ = run(path, "--record", 5, "--save", tmp_path / "x.jpg")
        assert code == 0
        assert f"stored as {tmp_path / 'x.jpg'}" in out
        assert (tmp_path / "x.jpg").read_bytes() == dataprep.open(folder)[5].image

    def test_as_json(self, folder: Path, tmp_path: Path) -> None:
        """--json has the record's features, its place, and what was stored."""
        path = tmp_path / "x.jpg"
        code, out, _ = run(folder, "--record", 5, "--save", path, "--json")
        found = json.loads(out)
        assert code == 0
        assert found["saved"] == str(path)
        assert found["sample"] == 5
        assert {field["name"] for field in found["fields"]} > {"image/encoded", "image/height"}

    def test_of_a_split(self, folder: Path) -> None:
        """--split says of which; with no train among several, it has to."""
        assert run(folder, "--split", "validation", "--record", 0)[0] == 0
        for path in (*folder.glob("train.*"), *folder.glob("receipts/train-*")):
            path.rename(path.with_name(path.name.replace("train", "test")))
        code, _, err = run(folder, "--record", 0)
        assert code == 2
        assert "has test, validation: say which" in err

    def test_damaged(self, folder: Path, form: str) -> None:
        """A damaged record ends with 1 and its place."""
        row = dataprep.open(folder, format=form).written.iloc[3]
        shard = sorted((folder / form).glob("train-*"))[0]
        data = bytearray(shard.read_bytes())
        data[row[f"{form}_offset"]] ^= 0xFF
        shard.write_bytes(data)
        code, out, err = run(folder, "--record", 3, "--format", form)
        assert (code, out) == (1, "")
        assert f"record 3 at byte {row[f'{form}_offset']}: " in err

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--save", "x.jpg"], "--save needs --record N"),
            (["--record", "99999"], "counted from 0"),
            (["--record", "-1"], "--record -1"),
            (["--record", "1", "--contact-sheet", "x.png"], "exclude each other"),
            (["--contact-sheet", "x.gif"], "ends in .png or .jpg"),
            (["--record", "1", "--format", "webdataset"], "it has tfrecord, recordio"),
            (["--record", "1", "--save", "no/such/folder/x.jpg"], "cannot be written"),
            (["--format", "recordio"], "--format recordio needs --record or --contact-sheet"),
            (["--images", "5"], "--images needs --contact-sheet"),
            (["--images", "5", "--record", "1"], "--images needs --contact-sheet"),
        ],
    )
    def test_wrong_requests(self, folder: Path, arguments: list[str], said: str) -> None:
        """What cannot be is refused with 2 and one line that says what to do."""
        code, out, err = run(folder, *arguments)
        assert (code, out) == (2, "")
        assert said in err
        assert err.count("\n") == 1

    @pytest.mark.parametrize("more", [[], ["--record", "1"]])
    @pytest.mark.parametrize("option", ["--split", "--format"])
    def test_a_shard_has_neither(self, shard: Path, option: str, more: list[str]) -> None:
        """What chooses within an output is refused for a shard, not passed over."""
        code, out, err = run(shard, option, "train", *more)
        assert (code, out) == (2, "")
        assert f"{option} train: {shard} is one shard" in err
        assert err.count("\n") == 1


class TestContactSheet:
    @pytest.mark.parametrize("suffix", [".png", ".jpg"])
    @pytest.mark.parametrize("kind", ["folder", "shard", "stray"])
    def test_a_picture(
        self, folder: Path, shard: Path, stray: Path, kind: str, suffix: str, tmp_path: Path
    ) -> None:
        """A picture of as many as were asked for, of an output and of any shard."""
        path = {"folder": folder, "shard": shard, "stray": stray}[kind]
        sheet = tmp_path / f"sheet{suffix}"
        code, out, _ = run(path, "--contact-sheet", sheet, "--images", 5)
        assert code == 0
        assert f"{sheet}: 5 of " in out
        with Image.open(sheet) as image:
            assert image.width > 3 * 176

    def test_which(self, folder: Path, tmp_path: Path) -> None:
        """--json says which records are on it: evenly spread."""
        sheet = tmp_path / "sheet.png"
        code, out, _ = run(folder, "--contact-sheet", sheet, "--images", 4, "--json")
        count = len(dataprep.open(folder))
        assert code == 0
        assert json.loads(out)["records"] == [(2 * i + 1) * count // 8 for i in range(4)]

    def test_fewer_than_asked_for(self, folder: Path, tmp_path: Path) -> None:
        """Where there are fewer, all of them are on it."""
        sheet = tmp_path / "sheet.png"
        _, out, _ = run(folder, "--split", "validation", "--contact-sheet", sheet)
        count = len(dataprep.open(folder, "validation"))
        assert f"{count} of {count} records" in out

    def test_one_is_damaged(self, shard: Path, tmp_path: Path) -> None:
        """A damaged record has its place on the sheet, is named, and ends it with 1."""
        offset = damage(shard, 2)
        sheet = tmp_path / "sheet.png"
        code, out, _ = run(shard, "--contact-sheet", sheet, "--images", 1000)
        assert code == 1
        assert f"record 2 at byte {offset}" in out
        assert sheet.exists()

    def test_damaged_framing(self, stray: Path, tmp_path: Path) -> None:
        """Of a shard that ends in damage, what comes before is drawn, and the damage named."""
        offset = damage(stray, 6)
        sheet = tmp_path / "sheet.png"
        code, out, _ = run(stray, "--contact-sheet", sheet)
        assert code == 1
        assert f"{sheet}: 6 of 6 records" in out
        assert f"fault: {stray}: record 6 at byte {offset}: " in out
        assert sheet.exists()
        assert run(stray, "--record", 5)[0] == 0
        code, _, err = run(stray, "--record", 7)
        assert code == 1
        assert f"record 6 at byte {offset}" in err


def test_no_images_at_all(folder: Path) -> None:
    """Nothing is no number of images, by the library's way in too."""
    with pytest.raises(ConfigError, match="--images 0"):
        dataprep.inspect(folder, contact_sheet="x.png", images=0)


def test_the_library_gives_the_same(folder: Path, tmp_path: Path) -> None:
    """What the command prints is what the function returns."""
    found = dataprep.inspect(folder, record=3, save=str(tmp_path / "x.jpg"))
    assert found.ok
    assert (
        str(found)
        == found.text
        == run(folder, "--record", 3, "--save", tmp_path / "x.jpg")[1].rstrip("\n")
    )
    assert Image.open(io.BytesIO((tmp_path / "x.jpg").read_bytes())).format == "JPEG"
