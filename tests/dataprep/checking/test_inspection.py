"""``dataprep inspect`` shows outputs, shards and records, including damaged ones."""

from __future__ import annotations

import html
import io
import json
import re
import secrets
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from typer.testing import CliRunner

import dataprep
from dataprep.checking.inspection import inspect
from dataprep.cli.main import app
from dataprep.errors import ConfigError, DatasetError, RecordError
from dataprep.formats.example import BytesList, Feature, FloatList, Int64List
from dataprep.formats.recordio import RecordIOWriter, pack_image_header
from dataprep.formats.tfrecord import TFRecordWriter
from dataprep.stores.memory import MemoryStore
from tests.dataprep.formats.examples import encode_example
from tests.strategies import examples, mutated

FORMATS = ["tfrecord", "recordio"]
COLOURS = [(200, 30, 30), (30, 200, 30), (30, 30, 200), (200, 200, 30), (30, 200, 200)]


@pytest.fixture(scope="module")
def output_folder(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Several shards in both formats, a validation split, and one failed file. Read only."""
    folder = tmp_path_factory.mktemp("inspected")
    source = Path(shutil.copytree(tree, folder / "photos"))
    broken = min(source.iterdir()) / "broken\x1b[31m.JPEG"
    broken.write_bytes(b"\xff\xd8\xff no image")
    config = {
        "source": str(source),
        "output": str(folder / "out"),
        "format": FORMATS,
        "image": {"size": 256},
        "shard_size": "1.2MB",
        "validation": "20%",
        "max_failures": 1,
        "dask": {"workers": 2, "processes": False},
    }
    dataprep.shard(dataprep.ShardConfig.model_validate(config))
    return folder / "out"


@pytest.fixture
def folder(output_folder: Path, tmp_path: Path) -> Path:
    """A copy of the output that a test may change."""
    return Path(shutil.copytree(output_folder, tmp_path / "out"))


@pytest.fixture(params=FORMATS)
def form(request: pytest.FixtureRequest) -> str:
    """Each format."""
    return str(request.param)


@pytest.fixture
def shard(folder: Path, form: str) -> Path:
    """The first shard of the output."""
    return min((folder / form).glob("train-*"))


def run(*arguments: object) -> tuple[int, str, str]:
    """Run ``dataprep inspect``.

    Return exit code, stdout and stderr, which never has a traceback.
    """
    result = CliRunner().invoke(app, ["inspect", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stdout, result.stderr


def text(*arguments: object, code: int = 0) -> str:
    """The text that ``dataprep inspect`` prints."""
    ended, out, err = run(*arguments)
    assert (ended, err) == (code, "")
    return out


def as_json(*arguments: object, code: int = 0) -> Any:
    """The object that ``dataprep inspect --json`` prints."""
    return json.loads(text(*arguments, "--json", code=code))


def refused(*arguments: object, code: int = 2) -> str:
    """The error line of a refused request."""
    ended, out, err = run(*arguments)
    assert (ended, out, err.count("\n")) == (code, "", 1)
    return err


def record_ranges(shard: Path) -> list[tuple[int, int]]:
    """Offset and length of each record, in bytes."""
    records = dataprep.inspect(shard).content["records"]
    return [(record["offset"], record["length"]) for record in records]


def flip(shard: Path, at: int) -> None:
    """Invert the bits of one byte."""
    data = bytearray(shard.read_bytes())
    data[at] ^= 0xFF
    shard.write_bytes(data)


def framed(path: Path, form: str, *payloads: bytes) -> Path:
    """A shard of these payloads, whose name does not show its format."""
    with path.open("wb") as file:
        writer = TFRecordWriter(file) if form == "tfrecord" else RecordIOWriter(file)
        for payload in payloads:
            writer.write(payload)
    return path


def example(path: Path, **features: Feature) -> Path:
    """A TFRecord shard of one Example."""
    named = {name.replace("__", "/"): feature for name, feature in features.items()}
    return framed(path, "tfrecord", encode_example(named))


def encoded(container: str, mode: str = "RGB", **options: object) -> bytes:
    """An image of 37 x 23 pixels."""
    pixels = np.random.default_rng(0).integers(0, 256, (23, 37, 3), np.uint8)
    sink = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(sink, container, **options)
    return sink.getvalue()


class TestOutput:
    def test_text(self, output_folder: Path) -> None:
        """Each split has a paragraph with a table of sizes, labels and failures."""
        out, count = text(output_folder), len(dataprep.open(output_folder))
        assert out.startswith(f"train: {count:,} of {count + 1:,} samples, made ")
        for part in ("tfrecord, labels from 1: shards", "\n  reasons: failed: ", "\nvalidation: "):
            assert part in out
        assert re.search(r"\n  classes +6 ", out)

    def test_json(self, output_folder: Path) -> None:
        """--json has the figures of the manifest and of the table of samples."""
        (content,) = as_json(output_folder, "--split", "train")["splits"]
        dataset = dataprep.open(output_folder)
        lengths, widths = dataset.written["tfrecord_length"], dataset.written["width"]
        assert (content["split"], content["complete"]) == ("train", True)
        assert (content["samples"]["written"], content["samples"]["failed"]) == (len(dataset), 1)
        assert [entry["name"] for entry in content["formats"]] == FORMATS
        assert content["formats"][0]["records"]["total"] == lengths.sum()
        assert content["formats"][0]["shards"]["count"] == len(dataset.shards())
        assert (content["classes"]["count"], content["classes"]["total"]) == (6, len(dataset))
        assert (content["width"]["least"], content["width"]["most"]) == (widths.min(), widths.max())
        assert content["width"]["median"] in set(widths)
        assert np.isclose(content["width"]["mean"], widths.mean())
        assert sum(content["actions"].values()) == len(dataset)
        assert [reason.partition(":")[0] for reason in content["reasons"]] == ["failed"]

    def test_unfinished(self, folder: Path) -> None:
        """A split without a manifest is listed with the number of its finished shards."""
        (folder / "train.manifest.json").unlink()
        min(folder.glob("receipts/train-*")).unlink()
        train, validation = dataprep.inspect(folder).content["splits"]
        assert (train["complete"], validation["complete"]) == (False, True)
        assert "2 of 3 shards are finished; run the same dataprep shard again" in train["why"]
        assert f"train: not complete: {train['why']}" in run(folder)[1]
        assert run(folder, "--split", "train")[0] == 2

    @pytest.mark.parametrize("content", [None, b"PAR1", "validation"])
    def test_a_wrong_table(self, folder: Path, content: bytes | str | None) -> None:
        """A table that is missing, damaged or of another split is an error that names it."""
        table = folder / "train.samples.parquet"
        table.unlink()
        if content == "validation":
            shutil.copy(folder / "validation.samples.parquet", table)
        elif isinstance(content, bytes):
            table.write_bytes(content)
        with pytest.raises(DatasetError, match=r"train\.samples\.parquet"):
            dataprep.inspect(folder)

    @pytest.mark.parametrize("kind", ["missing", "empty", "other"])
    def test_no_output(self, tmp_path: Path, kind: str) -> None:
        """Without a data set the exit code is 2, and the error says so."""
        path = tmp_path / "out"
        if kind != "missing":
            path.mkdir()
        if kind == "other":
            (path / "notes.txt").write_text("x")
        err = refused(path)
        assert err.startswith("dataprep: no data set in ")
        assert "dataprep has stored nothing there" in err


class TestShard:
    def test_json(self, folder: Path, shard: Path, form: str) -> None:
        """Each record has its position, label, names and size as stored, as a line of text."""
        content = as_json(shard)
        rows = dataprep.open(folder, format=form).written.query("shard == 0")
        tfrecord = form == "tfrecord"
        assert (content["format"], content["fault"]) == (form, None)
        assert content["bytes"] == shard.stat().st_size
        assert len(text(shard).splitlines()) == 2 + len(rows)
        for line, (_, row) in zip(content["records"], rows.iterrows(), strict=True):
            assert (line["offset"], line["length"]) == (
                row[f"{form}_offset"],
                row[f"{form}_length"],
            )
            assert line["labels"] == [row["label"] + tfrecord]
            assert (line["width"], line["height"]) == (row["width"], row["height"])
            names = [row["synset"], row["source"].rpartition("/")[2]] if tfrecord else ["", ""]
            assert [line["format"], line["synset"], line["filename"]] == ["JPEG", *names]
        store = MemoryStore(f"memory://{secrets.token_hex(6)}")
        store.put("x", shard.read_bytes())
        assert as_json(f"{store.uri}/x")["records"] == content["records"]

    @pytest.mark.parametrize("number", [3, -1])
    def test_damaged_framing(self, shard: Path, number: int) -> None:
        """Records before the damage are shown, then the damage; the exit code is 1."""
        before = record_ranges(shard)
        number %= len(before)
        offset = before[number][0]
        flip(shard, offset)
        last = text(shard, code=1).splitlines()[-1]
        assert last.startswith(f"fault: {shard}: record {number} at byte {offset}: ")
        content = as_json(shard, code=1)
        assert (content["fault_offset"], len(content["records"])) == (offset, number)
        flip(shard, 0)  # nothing shows that this is a shard
        assert "not a shard of a known format" in refused(shard)

    def test_cut_short(self, shard: Path) -> None:
        """A shard that ends inside a record has the records before it."""
        offset = record_ranges(shard)[4][0]
        shard.write_bytes(shard.read_bytes()[: offset + 100])
        content = as_json(shard, code=1)
        assert (len(content["records"]), content["fault_offset"]) == (4, offset)

    def test_damaged_payload(self, folder: Path) -> None:
        """A record whose checksum does not match is marked, and the table goes on."""
        shard = min((folder / "tfrecord").glob("train-*"))
        before = record_ranges(shard)
        flip(shard, before[2][0] + 500)
        records = as_json(shard, code=1)["records"]
        assert [n for n, line in enumerate(records) if line["damaged"]] == [2]
        assert len(records) == len(before)
        assert "checksum" in records[2]["problem"]

    def test_features_of_other_types(self, tmp_path: Path) -> None:
        """A label that is a text, or a name that is a number, is left out of the table."""
        label, name = BytesList([b"cat"]), Int64List([10**15, -1])
        (line,) = as_json(example(tmp_path / "x", label=label, image__filename=name))["records"]
        assert (line["labels"], line["filename"]) == ([], "")

    @pytest.mark.parametrize("content", [b"", b"hello, world, this is text", b"0 28952\n"])
    def test_no_shard(self, tmp_path: Path, content: bytes) -> None:
        """Any other file gives exit code 2 and an error that shows how the file begins."""
        (tmp_path / "x").write_bytes(content)
        err = refused(tmp_path / "x")
        assert "not a shard of a known format" in err
        assert repr(content[:12]) in err

    def test_a_hostile_name(self, shard: Path, tmp_path: Path) -> None:
        """Control characters and undecodable bytes of a path are printed escaped."""
        path = tmp_path / "x\x1b[31m\udcff.rec"
        shutil.copy(shard, path)
        flip(path, record_ranges(shard)[2][0])
        for options in ([], ["--record", 1], ["--contact-sheet", tmp_path / "a.png"]):
            _, out, _ = run(path, *options)
            assert "\\x1b[31m" in out
            assert "\x1b" not in out

    @given(st.lists(mutated(examples.map(encode_example)), max_size=3), st.sampled_from(FORMATS))
    def test_any_payload(self, payloads: list[bytes], form: str) -> None:
        """All records of a valid shard are shown, with any content."""
        store = MemoryStore(f"memory://{secrets.token_hex(6)}")
        sink = io.BytesIO()
        writer = TFRecordWriter(sink) if form == "tfrecord" else RecordIOWriter(sink)
        written = [writer.write(payload) for payload in (b"first", *payloads)]
        store.put("x", sink.getvalue())
        inspection = dataprep.inspect(f"{store.uri}/x")
        assert inspection.ok
        assert [
            (line["offset"], line["length"]) for line in inspection.content["records"]
        ] == written


class TestRecord:
    def test_of_an_output(self, folder: Path, form: str) -> None:
        """A record is shown with its features, its position and its row of the table of samples."""
        dataset = dataprep.open(folder, format=form)
        number = dataset.shards()[1].samples.start
        out = text(folder, "--record", number, "--format", form)
        key, offset, length = dataset.place(number)
        row = dataset.written.iloc[number]
        assert out.startswith(f"record 0 of {folder / key}\n")
        assert f"bytes={offset}-{offset + length - 1}" in out
        for name in ("source", "label", "synset", "source_sha256"):
            assert f"  {name} of sample {number}: {row[name]}\n" in out
        assert f"image: JPEG of {row['width']} x {row['height']}" in out
        assert ("image/class/synset" in out) == (form == "tfrecord")
        inspection = dataprep.inspect(folder, record=number, format=form)
        assert inspection.ok
        assert str(inspection) == inspection.text == out.rstrip("\n")

    def test_save(self, folder: Path, shard: Path, tmp_path: Path) -> None:
        """--save stores the image as it is in the record, and --json names the file."""
        path = tmp_path / "x.jpg"
        for source in (folder, shard):
            path.unlink(missing_ok=True)
            assert f"stored as {path}" in text(source, "--record", 5, "--save", path)
            assert path.read_bytes() == dataprep.open(folder)[5].image
        content = as_json(folder, "--record", 5, "--save", path)
        assert (content["saved"], content["sample"], content["number"]) == (str(path), 5, 5)
        assert content["known"]["label"] == dataprep.open(folder).labels[5]
        assert {field["name"] for field in content["fields"]} > {"image/encoded", "image/height"}
        assert content["facts"]["container"] == "JPEG"

    def test_an_example(self, tmp_path: Path) -> None:
        """Each feature is shown with its type, its number of values and the first values."""
        jpeg = encoded("JPEG")
        path = example(
            tmp_path / "x",
            box=FloatList([0.25, 1.0]),
            empty=Int64List([]),
            image__class__text=BytesList([b"tench, \x1b[31m\xff"]),
            image__encoded=BytesList([jpeg]),
            long=BytesList([b"x" * 500]),
            many=Int64List(range(1000)),
        )
        content = dataprep.inspect(path, record=0).content
        assert [tuple(field.values()) for field in content["fields"]] == [
            ("box", "float", 2, "0.25, 1"),
            ("empty", "int64", 0, ""),
            ("image/class/text", "bytes", 1, "'tench, \\x1b[31m\\xff'"),
            ("image/encoded", "bytes", 1, f"JPEG, {len(jpeg):,} bytes"),
            ("long", "bytes", 1, f"'{'x' * 60}…', 500 bytes"),
            ("many", "int64", 1000, "0, 1, 2, 3, 4, 5, 6, 7, …"),
        ]

    def test_an_image_record(self, tmp_path: Path) -> None:
        """An image record is shown with the fields of its header and with its image."""
        payload = pack_image_header([1.0, 2.5], 9, 4) + encoded("JPEG")
        path = framed(tmp_path / "x", "recordio", payload)
        content = dataprep.inspect(path, record=0, save=tmp_path / "x.jpg").content
        shown_fields = {field["name"]: field["shown"] for field in content["fields"]}
        image = shown_fields.pop("image")
        assert shown_fields == {"flag": "2", "label": "1, 2.5", "id": "9", "id2": "4"}
        assert image.startswith("JPEG, ")
        assert (tmp_path / "x.jpg").read_bytes() == encoded("JPEG")

    def test_an_image_of_another_name(self, tmp_path: Path) -> None:
        """The largest byte string is the image if no key has a customary name."""
        large = encoded("PNG")
        path = example(tmp_path / "x", a=BytesList([b"abc"]), b=BytesList([large]))
        dataprep.inspect(path, record=0, save=tmp_path / "image")
        assert (tmp_path / "image").read_bytes() == large

    def test_a_payload_of_something_else(self, tmp_path: Path, form: str) -> None:
        """Any other payload is shown with its position and its first bytes."""
        path = framed(tmp_path / "x", form, b"\xffhello", bytes(5000))
        records = as_json(path)["records"]
        assert [line["problem"] for line in records] == ["no image that can be read"] * 2
        content = as_json(path, "--record", 0)
        assert [field["name"] for field in content["fields"]] == ["payload"]
        assert content["facts"] is None

    @pytest.mark.parametrize(
        ("container", "mode", "options", "text"),
        [
            ("JPEG", "RGB", {"progressive": True}, "JPEG of 37 x 23, RGB"),
            ("JPEG", "CMYK", {}, "JPEG of 37 x 23, CMYK"),
            ("JPEG", "L", {"icc_profile": b"x" * 200}, "JPEG of 37 x 23, L"),
            ("PNG", "RGB", {}, "PNG of 37 x 23, RGB"),
            ("GIF", "P", {}, "GIF of 37 x 23, P"),
            ("WEBP", "RGB", {"lossless": True}, "WEBP of 37 x 23, RGB"),
        ],
    )  # fmt: skip
    def test_facts(
        self, tmp_path: Path, container: str, mode: str, options: dict[str, object], text: str
    ) -> None:
        """The header of the image is shown as it is stored."""
        image = encoded(container, mode, **options)
        path = example(tmp_path / "x", image__encoded=BytesList([image]))
        assert f"image: {text}" in dataprep.inspect(path, record=0).text.splitlines()[-1]

    def test_of_a_split(self, folder: Path) -> None:
        """--split chooses a split.

        Without it and without a split ``train``, the request is wrong.
        """
        text(folder, "--split", "validation", "--record", 0)
        for path in (*folder.glob("train.*"), *folder.glob("receipts/train-*")):
            path.rename(path.with_name(path.name.replace("train", "test")))
        err = refused(folder, "--record", 0)
        assert "no complete split 'train'" in err
        assert "it has 'test' and 'validation'" in err

    def test_damaged(self, folder: Path, form: str) -> None:
        """A damaged record ends with 1 and its position."""
        key, offset, _ = dataprep.open(folder, format=form).place(3)
        flip(folder / key, offset)
        err = refused(folder, "--record", 3, "--format", form, code=1)
        assert f"{folder / key}: record 3 at byte {offset}: " in err

    def test_behind_damage(self, shard: Path, tmp_path: Path) -> None:
        """Records before damaged framing are shown and drawn. The damage ends with exit code 1."""
        offset = record_ranges(shard)[6][0]
        flip(shard, offset)
        text(shard, "--record", 5)
        assert f"record 6 at byte {offset}" in refused(shard, "--record", 7, code=1)
        sheet = tmp_path / "sheet.png"
        out = text(shard, "--contact-sheet", sheet, code=1)
        assert f"{sheet}: 6 of 6 records" in out
        assert f"fault: {shard}: record 6 at byte {offset}: " in out
        assert sheet.exists()


class TestContactSheet:
    """``--contact-sheet`` draws the images of an output or a shard."""

    @pytest.mark.parametrize(("suffix", "kind"), [(".png", "PNG"), (".JPG", "JPEG")])
    @pytest.mark.parametrize("target", ["output", "shard"])
    def test_a_picture(
        self, folder: Path, shard: Path, target: str, suffix: str, kind: str, tmp_path: Path
    ) -> None:
        """The file has the format of its suffix and the requested number of images."""
        sheet = tmp_path / f"sheet{suffix}"
        path = folder if target == "output" else shard
        assert f"{sheet}: 5 of " in text(path, "--contact-sheet", sheet, "--images", 5)
        with Image.open(sheet) as image:
            assert (image.format, image.width > 3 * 176) == (kind, True)

    def test_every_image_is_on_it(self, tmp_path: Path) -> None:
        """Each image is on the sheet once, in reading order."""
        payloads = []
        for colour in COLOURS:
            sink = io.BytesIO()
            Image.new("RGB", (300, 200), colour).save(sink, "PNG")
            payloads.append(encode_example({"image": BytesList([sink.getvalue()])}))
        sheet = tmp_path / "sheet.png"
        dataprep.inspect(framed(tmp_path / "x", "tfrecord", *payloads), contact_sheet=sheet)
        pixels = np.asarray(Image.open(sheet))
        corners = []
        for colour in COLOURS:
            rows, columns = np.nonzero((pixels == colour).all(axis=2))
            assert len(rows) > 10_000
            corners.append((rows.min(), columns.min()))
        assert corners == sorted(corners)
        assert len({row for row, _ in corners}) == 2

    def test_captions(self, tmp_path: Path) -> None:
        """Sheets of records that differ in the label differ only below the image."""
        sheets = []
        for label in (7, 8):
            sheets.append(tmp_path / f"{label}.png")
            image = BytesList([encoded("JPEG")])
            path = example(tmp_path / "x", label=Int64List([label]), image=image)
            dataprep.inspect(path, contact_sheet=sheets[-1])
        first_sheet, two = (np.asarray(Image.open(sheet), np.int16) for sheet in sheets)
        rows, _ = np.nonzero((first_sheet - two).any(axis=2))
        assert len(rows)
        assert rows.min() > 176

    @pytest.mark.parametrize("image", [b"\xff\xd8\xff broken", b"", encoded("JPEG")[:300]])
    def test_no_image(self, tmp_path: Path, image: bytes) -> None:
        """Instead of an image that cannot be decoded, the sheet shows the reason in red."""
        path = example(tmp_path / "x", image=BytesList([image]))
        dataprep.inspect(path, contact_sheet=tmp_path / "sheet.png")
        pixels = np.asarray(Image.open(tmp_path / "sheet.png"))
        assert (pixels == (255, 0, 0)).all(axis=2).any()

    def test_evenly_spread(self, folder: Path, tmp_path: Path) -> None:
        """--json has the numbers of the records, which are evenly spread, or all records if few."""
        request = ("--contact-sheet", tmp_path / "sheet.png")
        count = len(dataprep.open(folder))
        content = as_json(folder, *request, "--images", 4)["records"]
        assert content == [(2 * i + 1) * count // 8 for i in range(4)]
        few = len(dataprep.open(folder, "validation"))
        assert f"{few} of {few} records" in text(folder, "--split", "validation", *request)

    def test_a_damaged_record(self, folder: Path, tmp_path: Path, form: str) -> None:
        """A damaged sample of an output is named, and the others are drawn."""
        key, offset, _ = dataprep.open(folder, format=form).place(2)
        flip(folder / key, offset)
        arguments = ("--format", form, "--images", 1000, "--contact-sheet", tmp_path / "sheet.png")
        assert f"{folder / key}: record 2 at byte {offset}: " in text(folder, *arguments, code=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--save", "x.jpg"], "--save needs --record N"),
        (["--record", "99999"], "counted from 0"),
        (["--record", "-1"], "--record -1"),
        (["--record", "1", "--contact-sheet", "x.png"], "give one of"),
        (["--record", "1", "--html", "x.html"], "give one of"),
        (["--html", "x.png"], "ends in .html"),
        (["--contact-sheet", "x.gif"], "ends in .png or .jpg"),
        (["--record", "1", "--format", "webdataset"], "it has tfrecord, recordio"),
        (["--record", "1", "--save", "no/such/folder/x.jpg"], "No such file or directory"),
        (["--format", "recordio"], "need --record, --contact-sheet or --html"),
        (["--images", "5"], "need --record, --contact-sheet or --html"),
    ],
)
def test_wrong_requests(output_folder: Path, arguments: list[str], message: str) -> None:
    """A wrong request ends with 2 and one line that says what to do."""
    assert message in refused(output_folder, *arguments)


@pytest.mark.parametrize("images", [0, -1])
def test_no_images(output_folder: Path, tmp_path: Path, images: int) -> None:
    """A number of images below 1 is refused, and no file is written."""
    for name in ("contact_sheet", "html"):
        with pytest.raises(ConfigError, match=f"--images {images}: give a number of at least 1"):
            inspect(output_folder, images=images, **{name: tmp_path / "file.html"})  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that does not answer ends with 2, like any target that cannot be reached."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    few = ("--set", "store.max_attempts=1", "--endpoint-url", "http://127.0.0.1:9")
    assert "http://127.0.0.1:9" in refused("s3://bucket/out", *few)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *(
            ([option, "train", *more], "--split and --format choose within an output: {} is one")
            for option in ("--split", "--format")
            for more in ([], ["--record", "1"])
        ),
        (["--html", "x.html"], "--html is a page about an output: {} is one shard"),
        (["--record", -1], "--record -1: "),
        (["--record", 10_000], "counted from 0"),
    ],
)
def test_wrong_requests_of_a_shard(output_folder: Path, arguments: list[str], message: str) -> None:
    """Options that choose a split of an output, and numbers beyond the records, are refused."""
    shard = min((output_folder / "tfrecord").glob("train-*"))
    assert message.format(shard) in refused(shard, *arguments)


def test_nothing_to_show(tmp_path: Path) -> None:
    """If there are no images, no image to save or only damaged records, there is an error."""
    path = example(tmp_path / "x", label=Int64List([7]))
    with pytest.raises(ConfigError, match="no image to store"):
        dataprep.inspect(path, record=0, save=tmp_path / "x.jpg")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ConfigError, match=r"no records.*record 0 at byte 0"):
        dataprep.inspect(path, contact_sheet=tmp_path / "x.png")
    with pytest.raises(RecordError, match="record 0 at byte 0"):
        dataprep.inspect(path, record=0)


def page(target: object, path: Path, *arguments: object) -> str:
    """The page that ``--html`` writes about an output."""
    assert text(target, "--html", path, *arguments) == f"{path}: a page about {target}\n"
    return path.read_text()


class TestPage:
    def test_content(self, output_folder: Path, tmp_path: Path) -> None:
        """The page shows images, classes, sizes, notes and missing files of each split."""
        page_text = page(output_folder, tmp_path / "x.html", "--images", 5)
        assert page_text.count('src="data:image/jpeg;base64,') == 2 * 5
        dataset = dataprep.open(output_folder)
        for label in dataset.label_space.labels:
            assert page_text.count(f'<th scope="row">{label.synset} {label.text}</th>') == 2
        failed_sample = dataset.samples.query("status == 'failed'").iloc[0]
        count = as_json(output_folder)["splits"][0]["quirks"]["smaller_than_target"]
        visible_text = html.unescape(re.sub(r"<[^>]+>", " ", page_text))
        assert re.search(rf"smaller than target +{count} ", visible_text)
        for part in (
            failed_sample["source"],
            failed_sample["reason"],
            "Records of recordio, bytes",
            "1 failed",
        ):
            assert part in visible_text

    def test_shards_have_no_share_of_the_files(self, tree: Path, tmp_path: Path) -> None:
        """The number of shards outside the bounds is not among the shares of source files."""
        config = {
            "source": str(tree),
            "output": str(tmp_path / "out"),
            "image": {"size": 64, "upscale": False},
            "dask": {"workers": 1, "processes": False},
        }
        dataprep.shard(dataprep.ShardConfig.model_validate(config))
        quirks = as_json(tmp_path / "out")["splits"][0]["quirks"]
        assert quirks["shards_out_of_bounds"] == 1
        page_text = page(tmp_path / "out", tmp_path / "x.html")
        assert "shards out of bounds" not in page_text

    def test_one_file(self, output_folder: Path, tmp_path: Path) -> None:
        """The page loads nothing: it refers only to itself and to the data in it."""
        page_text = page(output_folder, tmp_path / "x.htm", "--split", "train")
        addresses = re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?([^"')\s]*)""", page_text)
        assert len(addresses) > 20
        assert all(location.startswith(("data:", "#")) for location in addresses)
        assert not re.search(r"https?:|<script|@import", page_text)

    def test_many_classes_with_hostile_names(self, tmp_path: Path) -> None:
        """Of many classes, the page names the largest and smallest. Markup in names is text."""
        hostile, plain = "<script>alert('x')<&\"\u202e", [f"class{n:02}" for n in range(40)]
        for name in (hostile, *plain):
            (tmp_path / "photos" / name).mkdir(parents=True)
            (tmp_path / "photos" / name / f"{name}.jpg").write_bytes(encoded("JPEG"))
        (tmp_path / "photos" / hostile / "second.jpg").write_bytes(encoded("JPEG"))
        config = {"source": str(tmp_path / "photos"), "output": str(tmp_path / "out")}
        dataprep.shard(dataprep.ShardConfig.model_validate(config))
        page_text = page(tmp_path / "out", tmp_path / "x.html")
        assert "<script" not in page_text
        assert "41 classes of 1 to 2 samples, median 1" in page_text
        named = [html.unescape(name) for name in re.findall(r'"row">(.*?)</th>', page_text)]
        assert named[:20] == [hostile, *plain[:9], *plain[-10:]]


class TestWhere:
    """``--where`` counts and shows the samples that match a query."""

    def test_the_first_rows(self, output_folder: Path) -> None:
        """The output has the number of matches and a table of the first ones with numbers."""
        written = dataprep.open(output_folder).written
        rows = written[written["label"] >= 2]
        code, text, _ = run(output_folder, "--where", "label >= 2")
        assert code == 0
        first, header, *lines = text.splitlines()
        assert first == f"train: {len(rows)} of {len(written)} samples where label >= 2"
        assert header.split()[:3] == ["number", "label", "synset"]
        assert [int(line.split()[0]) for line in lines[:-1]] == rows.index[:20].tolist()
        assert [line.split()[-1] for line in lines[:-1]] == rows["source"][:20].tolist()
        assert lines[-1].strip() == f"and {len(rows) - 20} more; --json prints all numbers"

    def test_json(self, output_folder: Path) -> None:
        """The JSON has the count and the numbers, which ``select`` takes, of the named split."""
        dataset = dataprep.open(output_folder, "validation")
        code, text, _ = run(
            output_folder,
            "--where",
            "label < 5",
            "--split",
            "validation",
            "--json",
            "--format",
            "recordio",
        )
        content = json.loads(text)
        assert code == 0
        part = dataset.where("label < 5")
        assert dataset.select(content["numbers"]).subset == part.subset
        assert content == {
            "output": str(output_folder),
            "split": "validation",
            "where": "label < 5",
            "count": len(part),
            "of": len(dataset),
            "numbers": part.numbers.tolist(),
        }

    def test_no_match(self, output_folder: Path) -> None:
        """A query without matches counts 0, and is no error."""
        code, text, _ = run(output_folder, "--where", "label < 0")
        assert (code, text.count("\n")) == (0, 1)
        assert ": 0 of " in text

    def test_contact_sheet(self, output_folder: Path, tmp_path: Path, form: str) -> None:
        """Only the matching samples are drawn, with their own labels."""
        path = tmp_path / "sheet.png"
        options = ("--contact-sheet", path, "--format", form, "--images", 3, "--json")
        code, text, _ = run(output_folder, "--where", "label == 3", *options)
        content = json.loads(text)
        numbers = dataprep.open(output_folder).matching("label == 3").tolist()
        assert (code, content["count"], content["of"]) == (0, len(numbers), len(numbers))
        assert len(content["records"]) == 3
        assert set(content["records"]) <= set(numbers)
        with Image.open(path) as sheet:
            assert sheet.size == (2 * 188, 2 * 222)  # the sheet has four cells
        _, line, _ = run(output_folder, "--where", "label == 3", "--contact-sheet", path)
        assert line.strip().endswith(f"records of train in {output_folder} where label == 3")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (("--where", "labell < 3"), "no column 'labell': the table has source, label"),
            (("--where", "print(label)"), "is not allowed"),
            (("--where", "label <"), "cannot be parsed"),
            (("--where", ""), "is empty"),
            (("--where", "label < 3", "--record", 0), "without --record and --html"),
            (("--where", "label < 3", "--html", "page.html"), "without --record and --html"),
            (("--where", "label < 3", "--images", 3), "--images needs --contact-sheet"),
            (("--where", "label < 0", "--contact-sheet", "sheet.png"), "no sample to draw"),
            (("--where", "label < 3", "--split", "nothing"), "no complete split 'nothing'"),
        ],
        ids=str,
    )
    def test_refused(
        self,
        output_folder: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        options: tuple[object, ...],
        message: str,
    ) -> None:
        """A wrong query gives exit code 2 and the reason, and writes no file."""
        monkeypatch.chdir(tmp_path)
        code, text, error = run(output_folder, *options)
        assert (code, text) == (2, "")
        assert message in error
        assert list(tmp_path.iterdir()) == []

    def test_a_shard_has_no_table(self, shard: Path) -> None:
        """A query needs an output, because a shard has no table."""
        code, _, error = run(shard, "--where", "label < 3")
        assert code == 2
        assert "--where is a query over the table of samples of an output" in error

    def test_an_output_without_its_table(self, folder: Path) -> None:
        """Without the table the exit code is 2, and the error has the command that restores it."""
        (folder / "train.samples.parquet").unlink()
        code, _, error = run(folder, "--where", "label < 3")
        assert code == 2
        assert "dataprep finalize" in error
