"""Every kind of damage is found, with its place, at the depth that can see it."""

from __future__ import annotations

import hashlib
import io
import json
import secrets
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from crc32c import crc32c
from typer.testing import CliRunner

import dataprep
from dataprep.cli.main import app
from dataprep.errors import ManifestMissing
from dataprep.formats.crc import masked_crc32c
from dataprep.stores import StoreOptions
from dataprep.stores.memory import MemoryStore
from dataprep.stores.s3 import S3Store
from dataprep.verification import Depth, verify
from iobench.s3_server import MotoServer

if TYPE_CHECKING:
    from tests.dataprep.verification.conftest import Output

DEPTHS: tuple[Depth, ...] = ("quick", "full", "deep")
SHARDS = {
    "tfrecord": "tfrecord/train-{:05}-of-00003",
    "recordio": "recordio/train-{:05}-of-00003.rec",
}
RECEIPT = "receipts/train-{:05}-of-00003.json"
MANIFEST, TABLE, PLAN = "train.manifest.json", "train.samples.parquet", "train.plan.parquet"


def flip(offset: int) -> Callable[[bytearray], None]:
    """Turn every bit of one byte."""

    def edit(data: bytearray) -> None:
        data[offset] ^= 0xFF

    return edit


class TestClean:
    @pytest.mark.parametrize("depth", DEPTHS)
    def test_nothing_to_say(self, output: Output, depth: Depth) -> None:
        """A clean output is clean at every depth, and everything in it was counted."""
        found = output.verify(depth)
        assert found.ok
        assert found.faults == ()
        assert found.remarks == ()
        assert (found.split, found.depth) == ("train", depth)
        assert (found.shards, found.samples) == (3, 120)
        stored = [key for key in output.store.list() if key.key.startswith(("tfrecord", "record"))]
        assert found.bytes == sum(info.bytes for info in stored)

    @pytest.mark.parametrize("depth", DEPTHS)
    def test_on_disk(self, reference_of_verify: Path, depth: Depth) -> None:
        """The same on a disk."""
        (found,) = verify(str(reference_of_verify), depth=depth)
        assert found.faults == ()

    def test_quick_reads_no_shard(self, output: Output, monkeypatch: pytest.MonkeyPatch) -> None:
        """--quick never reads a shard or an index; plain verify reads each once."""
        read: list[str] = []
        get = MemoryStore.get

        def counted(store: MemoryStore, key: str) -> bytes:
            read.append(key)
            return get(store, key)

        monkeypatch.setattr(MemoryStore, "get", counted)
        monkeypatch.setattr(MemoryStore, "head", lambda s, key: _head(s, key, get))
        assert output.verify("quick").ok
        assert not [key for key in read if key.startswith(("tfrecord/", "recordio/", "index/"))]
        read.clear()
        assert output.verify("full").ok
        shards = [key for key in read if key.startswith(("tfrecord/", "recordio/"))]
        assert sorted(shards) == sorted(SHARDS[form].format(i) for form in SHARDS for i in range(3))

    def test_every_shard_is_told(self, output: Output) -> None:
        """``on_shard`` is called with the bytes of each shard."""
        told: list[int] = []
        (found,) = verify(output.store.uri, on_shard=told.append)
        assert len(told) == 3
        assert sum(told) == found.bytes


def _head(store: MemoryStore, key: str, get: Callable[[MemoryStore, str], bytes]) -> Any:
    from dataprep.stores import ObjectInfo

    data = get(store, key)
    return ObjectInfo(key, len(data), hashlib.md5(data, usedforsecurity=False).hexdigest())


@pytest.fixture(scope="session")
def reference_of_verify(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small output on disk."""
    folder = tmp_path_factory.mktemp("verify") / "out"
    config = dataprep.ShardConfig.model_validate(
        {
            "source": str(tree),
            "output": str(folder),
            "image": {"size": 96},
            "dask": {"processes": False},
        }
    )
    dataprep.shard(config)
    return folder


class TestRecords:
    PLACES = pytest.mark.parametrize(
        ("form", "inside"),
        [
            ("tfrecord", 0),
            ("tfrecord", 7),
            ("tfrecord", 8),
            ("tfrecord", 12),
            ("tfrecord", 3000),
            ("tfrecord", -1),
            ("recordio", 0),
            ("recordio", 4),
            ("recordio", 7),
            ("recordio", 8),
            ("recordio", 12),
            ("recordio", 16),
            ("recordio", 3000),
        ],
        ids=[
            *("length", "high length", "length CRC", "first payload byte", "image", "payload CRC"),
            *("magic", "low length", "continuation", "header flag", "label", "id", "rec image"),
        ],
    )

    @PLACES
    @pytest.mark.parametrize("record", [0, 5, -1], ids=["first", "sixth", "last"])
    def test_a_byte_flipped(self, output: Output, form: str, inside: int, record: int) -> None:
        """One flipped byte is reported with shard, record number and byte offset, and only that."""
        key = SHARDS[form].format(1)
        offset, length = output.place(form, 1, record)
        number = record % len(output.receipt(1).rows)
        output.change(key, flip(offset + inside % length))
        placed = [fault for fault in output.faults() if fault.record is not None]
        assert {(f.key, f.record, f.offset) for f in placed} == {(key, number, offset)}
        assert {fault.key for fault in output.faults()} == {key}
        assert f"{key}, record {number}, byte offset {offset}: " in str(output.verify())

    def test_several(self, output: Output) -> None:
        """Two damaged records are both named, those between them are not."""
        key = SHARDS["tfrecord"].format(0)
        offsets = [output.place("tfrecord", 0, record)[0] for record in (2, 9)]
        for offset in offsets:
            output.change(key, flip(offset + 500))
        placed = [fault for fault in output.faults() if fault.record is not None]
        assert [(f.record, f.offset) for f in placed] == [(2, offsets[0]), (9, offsets[1])]

    @pytest.mark.parametrize("form", SHARDS)
    @pytest.mark.parametrize("depth", DEPTHS)
    def test_truncated(self, output: Output, form: str, depth: Depth) -> None:
        """A shard cut within a record: its size at once, the first record that lacks when read."""
        key = SHARDS[form].format(2)
        offset, length = output.place(form, 2, 4)
        output.change(key, lambda data: data.__delitem__(slice(offset + length // 2, None)))
        faults = output.faults(depth)
        assert {fault.key for fault in faults} == {key}
        assert any(f"has {offset + length // 2:,} bytes" in fault.what for fault in faults)
        if depth != "quick":
            first = next(fault for fault in faults if fault.record is not None)
            assert (first.record, first.offset) == (4, offset)

    @pytest.mark.parametrize("form", SHARDS)
    def test_cut_between_records(self, output: Output, form: str) -> None:
        """A shard that ends early but cleanly is found as well."""
        key = SHARDS[form].format(2)
        offset, _ = output.place(form, 2, 4)
        output.change(key, lambda data: data.__delitem__(slice(offset, None)))
        placed = [f for f in output.faults() if f.record is not None]
        assert (placed[0].key, placed[0].record, placed[0].offset) == (key, 4, offset)

    @pytest.mark.parametrize("form", SHARDS)
    def test_bytes_appended(self, output: Output, form: str) -> None:
        """Bytes after the last record are found where they begin."""
        key = SHARDS[form].format(0)
        end = len(output.store.get(key))
        output.change(key, lambda data: data.extend(b"\x01" * 40))
        records = len(output.receipt(0).rows)
        placed = [f for f in output.faults() if f.record is not None]
        assert [(f.key, f.record, f.offset) for f in placed] == [(key, records, end)]

    @pytest.mark.parametrize("form", SHARDS)
    def test_a_record_appended(self, output: Output, form: str) -> None:
        """A sound record too many is one that the receipt does not know."""
        key = SHARDS[form].format(0)
        offset, length = output.place(form, 0, 3)
        output.change(key, lambda data: data.extend(data[offset : offset + length]))
        records = len(output.receipt(0).rows)
        said = [f.what for f in output.faults() if f.key == key]
        assert f"holds {records + 1:,} records, not the {records:,} of the receipt" in said

    @pytest.mark.parametrize("form", SHARDS)
    def test_two_shards_swapped(self, output: Output, form: str) -> None:
        """Two shards under each other's names are both wrong from their first record on."""
        keys = [SHARDS[form].format(i) for i in (0, 1)]
        first, second = (output.store.get(key) for key in keys)
        output.store.put(keys[0], second)
        output.store.put(keys[1], first)
        placed = [f for f in output.faults() if f.record == 0]
        assert [(f.key, f.offset) for f in placed] == [(keys[0], 0), (keys[1], 0)]

    def test_two_records_swapped(self, output: Output) -> None:
        """Two records of one length exchanged are found although every CRC in the file is right."""
        key = SHARDS["tfrecord"].format(0)
        (a, length), (b, other) = (output.place("tfrecord", 0, i) for i in (0, 1))
        assert (a, b) == (0, length)
        output.change(key, lambda d: d.__setitem__(slice(0, b + other), d[b : b + other] + d[:b]))
        assert any(f.key == key and f.record == 0 for f in output.faults())

    def test_many_faults_are_not_all_listed(self, output: Output) -> None:
        """A shard of zeros gives twenty faults and the number of the others."""
        key = SHARDS["tfrecord"].format(0)
        output.store.put(key, bytes(len(output.store.get(key))))
        said = [f.what for f in output.faults() if f.key == key]
        more = len(output.receipt(0).rows) - 20
        assert f"and {more} more faults" in said
        assert len(said) <= 23


class TestAPlausibleFake:
    def fake(self, output: Output, image: Callable[[bytes], bytes]) -> int:
        """Replace the image of record 3, and every checksum that covers it; its offset."""
        key, receipt_key = SHARDS["tfrecord"].format(1), RECEIPT.format(1)
        offset, length = output.place("tfrecord", 1, 3)
        shard = bytearray(output.store.get(key))
        payload = bytes(shard[offset + 12 : offset + length - 4])
        start, end = payload.index(b"\xff\xd8\xff"), payload.rindex(b"\xff\xd9") + 2
        changed = image(payload[start:end])
        assert len(changed) == end - start
        payload = payload[:start] + changed + payload[end:]
        shard[offset + 12 : offset + length - 4] = payload
        shard[offset + length - 4 : offset + length] = struct.pack("<I", masked_crc32c(payload))
        output.store.put(key, shard)
        sha256 = hashlib.sha256(shard).hexdigest()

        def receipt(content: Any) -> None:
            file = content["formats"]["tfrecord"]["file"]
            file["sha256"] = sha256
            file["etag"] = output.store.head(key).etag
            content["samples"]["records"]["tfrecord"][3][2] = crc32c(
                bytes(shard[offset : offset + length])
            )

        def manifest(content: Any) -> None:
            content["formats"]["tfrecord"]["shards"][1]["sha256"] = sha256

        output.change_json(receipt_key, receipt)
        output.change_json(MANIFEST, manifest)
        return offset

    def test_only_deep_finds_a_broken_image(self, output: Output) -> None:
        """An image that does not decode, under right checksums everywhere, is found by --deep."""
        offset = self.fake(output, lambda jpeg: jpeg[: len(jpeg) // 2] + bytes(-(-len(jpeg) // 2)))
        assert output.verify("quick").ok
        assert output.verify("full").ok
        (fault,) = output.faults("deep")
        assert (fault.key, fault.record, fault.offset) == (
            SHARDS["tfrecord"].format(1),
            3,
            offset,
        )
        assert "image does not decode" in fault.what

    def test_only_deep_finds_another_size(self, output: Output) -> None:
        """An image whose header claims another size than the table is found by --deep."""

        def shrink(jpeg: bytes) -> bytes:
            sof = jpeg.index(b"\xff\xc0")
            (height,) = struct.unpack(">H", jpeg[sof + 5 : sof + 7])
            return jpeg[: sof + 5] + struct.pack(">H", height - 16) + jpeg[sof + 7 :]

        offset = self.fake(output, shrink)
        assert output.verify("full").ok
        faults = output.faults("deep")
        assert {(fault.record, fault.offset) for fault in faults} == {(3, offset)}


class TestObjects:
    @pytest.mark.parametrize("depth", DEPTHS)
    @pytest.mark.parametrize(
        "key",
        [
            *(SHARDS["tfrecord"].format(1), SHARDS["recordio"].format(2)),
            *("index/tfrecord/train-00000-of-00003.idx", "index/recordio/train-00001-of-00003.lst"),
            *(RECEIPT.format(1), MANIFEST, TABLE, PLAN, "labels.json"),
        ],
    )
    def test_missing(self, output: Output, key: str, depth: Depth) -> None:
        """Whatever is deleted is reported as missing, by its key, at every depth."""
        output.store.delete(key)
        faults = output.faults(depth)
        assert [f.key for f in faults if f.what.startswith("missing")] == [key]

    @pytest.mark.parametrize("depth", DEPTHS)
    @pytest.mark.parametrize(
        "key",
        [
            "tfrecord/train-00003-of-00004",
            "tfrecord/train-00000-of-00003.bak",
            "recordio/train-00000-of-00012.rec",
            "index/tfrecord/train-00007-of-00008.idx",
            "receipts/train-00000-of-00004.json",
        ],
    )
    def test_a_stray(self, output: Output, key: str, depth: Depth) -> None:
        """What lies among the data without belonging to it is reported."""
        output.store.put(key, b"stray")
        assert [(f.key, f.what) for f in output.faults(depth)] == [
            (key, "does not belong to this data set")
        ]

    @pytest.mark.parametrize(
        ("key", "line"),
        [
            ("index/tfrecord/train-00000-of-00003.idx", 4),
            ("index/recordio/train-00001-of-00003.idx", 0),
            ("index/recordio/train-00002-of-00003.lst", 2),
        ],
    )
    def test_an_index_that_is_wrong(self, output: Output, key: str, line: int) -> None:
        """A wrong line of an index is reported with its number, found and wanted."""

        def edit(data: bytearray) -> None:
            lines = bytes(data).splitlines(keepends=True)
            lines[line] = b"7" + lines[line]
            data[:] = b"".join(lines)

        output.change(key, edit)
        placed = [f for f in output.faults() if f.record is not None]
        assert [(f.key, f.record) for f in placed] == [(key, line)]
        assert {f.key for f in output.faults()} == {key}

    def test_an_index_that_is_short(self, output: Output) -> None:
        """An index that lacks its last line is reported with both counts."""
        key = "index/tfrecord/train-00000-of-00003.idx"
        lines = len(output.store.get(key).splitlines())
        output.change(
            key, lambda data: data.__delitem__(slice(data.rindex(b"\n", 0, -1) + 1, None))
        )
        said = [f.what for f in output.faults() if f.key == key]
        assert f"has {lines - 1:,} lines, the records need {lines:,}" in said

    @pytest.mark.parametrize("depth", DEPTHS)
    @pytest.mark.parametrize(
        "edit",
        [
            lambda c: c["classes"][2].update(text="other"),
            lambda c: c["classes"].reverse(),
            lambda c: c["classes"].pop(),
        ],
        ids=["text", "order", "count"],
    )
    def test_labels(self, output: Output, depth: Depth, edit: Callable[[Any], object]) -> None:
        """A changed labels.json is reported."""
        output.change_json("labels.json", edit)
        assert "labels.json" in {fault.key for fault in output.faults(depth)}

    @pytest.mark.parametrize("depth", DEPTHS)
    @pytest.mark.parametrize(
        ("part", "edit"),
        [
            ("samples", lambda c: c["samples"].update(written=7)),
            ("samples", lambda c: c["samples"].update(total=119)),
            ("formats", lambda c: c["formats"]["tfrecord"].update(records=7)),
            ("formats", lambda c: c["formats"]["tfrecord"].update(label_offset=0)),
            ("formats", lambda c: c["formats"]["recordio"]["shards"][0].update(bytes=7)),
            ("formats", lambda c: c["formats"]["recordio"]["shards"].pop()),
            ("formats", lambda c: c["formats"].pop("recordio")),
            ("warnings", lambda c: c["warnings"].update(cmyk=7)),
            ("config", lambda c: c["config"].update(seed=7)),
            ("fingerprint", lambda c: c.update(fingerprint="0" * 64)),
            ("versions", lambda c: c["versions"].update(simplejpeg="0.1")),
            ("split", lambda c: c.update(split="test")),
        ],
    )
    def test_manifest(
        self, output: Output, depth: Depth, part: str, edit: Callable[[Any], object]
    ) -> None:
        """A manifest that says other than the receipts is reported, with the part that does."""
        output.change_json(MANIFEST, edit)
        (fault,) = output.faults(depth)
        assert fault.key == MANIFEST
        assert repr(part) in fault.what

    @pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"schema": 1}', b'{"schema": 99}'])
    @pytest.mark.parametrize("key", [MANIFEST, RECEIPT.format(2)])
    def test_no_json(self, output: Output, key: str, content: bytes) -> None:
        """A manifest or receipt that is none, or of the future, is reported, never a crash."""
        output.store.put(key, content)
        assert key in {fault.key for fault in output.faults("quick")}

    @pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"schema": 1, "classes": [1]}'])
    def test_labels_that_are_none(self, output: Output, content: bytes) -> None:
        """A labels.json that is none is reported, never a crash."""
        output.store.put("labels.json", content)
        assert {fault.key for fault in output.faults("quick")} == {"labels.json"}

    @pytest.mark.parametrize("depth", DEPTHS)
    @pytest.mark.parametrize("column", ["label", "status", "tfrecord_offset", "shard", "source"])
    def test_table(self, output: Output, depth: Depth, column: str) -> None:
        """A changed table of samples is reported."""
        table = pq.read_table(io.BytesIO(output.store.get(TABLE)))
        values = table[column].to_pylist()
        values[0], values[1:] = values[-1], values[:-1]
        position = table.schema.get_field_index(column)
        changed = table.set_column(position, column, pa.array(values, table.schema.types[position]))
        if changed.equals(table):
            values[0] = "failed"
            changed = table.set_column(position, column, pa.array(values))
        sink = io.BytesIO()
        pq.write_table(changed, sink, compression="zstd")
        output.store.put(TABLE, sink.getvalue())
        assert TABLE in {fault.key for fault in output.faults(depth)}

    def test_a_receipt_of_another_job(self, output: Output) -> None:
        """A receipt with another fingerprint is reported."""
        output.change_json(RECEIPT.format(0), lambda c: c.update(fingerprint="0" * 64))
        assert (RECEIPT.format(0), "belongs to another job") in {
            (fault.key, fault.what) for fault in output.faults("quick")
        }

    def test_two_receipts_swapped(self, output: Output) -> None:
        """A receipt under another shard's name is reported."""
        first, second = (output.store.get(RECEIPT.format(i)) for i in (0, 1))
        output.store.put(RECEIPT.format(0), second)
        output.store.put(RECEIPT.format(1), first)
        assert {RECEIPT.format(0), RECEIPT.format(1)} <= {f.key for f in output.faults("quick")}

    def test_a_receipt_edited(self, output: Output) -> None:
        """A receipt whose samples were changed no longer agrees with table and records."""

        def edit(content: Any) -> None:
            content["samples"]["label"][0] += 1

        output.change_json(RECEIPT.format(0), edit)
        assert not output.verify("quick").ok


class TestCommand:
    def run(self, *arguments: str) -> tuple[int, str, str]:
        """``dataprep verify``: exit code, stdout, stderr."""
        result = CliRunner().invoke(app, ["verify", *arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, result.stdout, result.stderr

    def test_clean(self, output: Output) -> None:
        """A clean output ends with 0 and one line on stdout."""
        code, out, err = self.run(output.store.uri)
        assert (code, err) == (0, "")
        assert out.startswith("train (full): ok: 120 samples in 3 shards, as tfrecord and recordio")

    def test_damaged(self, output: Output) -> None:
        """A damaged output ends with 1, the place on stdout."""
        key = SHARDS["recordio"].format(0)
        offset, _ = output.place("recordio", 0, 2)
        output.change(key, flip(offset + 100))
        code, out, err = self.run(output.store.uri)
        assert (code, err) == (1, "")
        assert f"{key}, record 2, byte offset {offset}: " in out

    def test_a_hostile_name(self, reference_of_verify: Path, tmp_path: Path) -> None:
        """A path with control characters and bytes that are no text is printed escaped."""
        folder = shutil.copytree(reference_of_verify, tmp_path / "x\x1b[31m\udcff")
        code, out, _ = self.run(str(folder), "--quick")
        assert code == 0
        assert "\\x1b[31m" in out
        assert "\x1b" not in out

    def test_damaged_as_json(self, output: Output) -> None:
        """--json holds the same as numbers."""
        key = SHARDS["recordio"].format(0)
        offset, _ = output.place("recordio", 0, 2)
        output.change(key, flip(offset + 100))
        code, out, _ = self.run(output.store.uri, "--json")
        assert code == 1
        (split,) = json.loads(out)["splits"]
        assert split["ok"] is False
        assert (key, 2, offset) in {(f["key"], f["record"], f["offset"]) for f in split["faults"]}

    @pytest.mark.parametrize("kind", ["missing", "empty", "other"])
    def test_nothing(self, tmp_path: Path, kind: str) -> None:
        """Where no data set lies, verify ends with 2 and one line."""
        folder = tmp_path / "out"
        if kind != "missing":
            folder.mkdir()
        if kind == "other":
            (folder / "notes.txt").write_text("x")
        code, out, err = self.run(str(folder))
        assert (code, out) == (2, "")
        assert err.startswith("dataprep: ")
        assert err.count("\n") == 1

    def test_no_such_split(self, output: Output) -> None:
        """A split that is not there ends with 2, and those that are get named."""
        code, _, err = self.run(output.store.uri, "--split", "test")
        assert code == 2
        assert "it has train" in err

    def test_both_depths(self, output: Output) -> None:
        """--quick and --deep exclude each other."""
        code, _, err = self.run(output.store.uri, "--quick", "--deep")
        assert code == 2
        assert "exclude each other" in err

    @pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"schema": 99}', b"\xff", None])
    @pytest.mark.parametrize("depth", ["--quick", "--json"])
    def test_a_job_file_that_is_none(
        self, output: Output, content: bytes | None, depth: str
    ) -> None:
        """A job file that is lost or cannot be read is a fault of its split alone."""
        output.store.put("other.job.json", content or b"")
        if content is None:
            output.store.delete("other.job.json")
            output.store.put("other.manifest.json", b"{}")
        code, out, err = self.run(output.store.uri, depth)
        assert (code, err) == (1, "")
        if depth == "--json":
            other, train = json.loads(out)["splits"]
            assert [fault["key"] for fault in other["faults"]] == ["other.job.json"]
            assert train["ok"]
        else:
            assert out.startswith("other (quick): 1 fault: 0 samples in 0 shards, 0.0 MB")
            assert ("put it back" in out.casefold()) is (content != b'{"schema": 99}')
            assert "train (quick): ok: 120 samples" in out

    def test_a_job_file_changed_by_hand(self, output: Output) -> None:
        """A job file whose content is not its fingerprint's is a fault."""
        output.change_json("train.job.json", lambda c: c.update(shards=2))
        code, out, _ = self.run(output.store.uri)
        assert code == 1
        assert "train.job.json: its content does not match its fingerprint. Put it back" in out

    def test_the_library_says_the_same(self, tmp_path: Path) -> None:
        """In the library it is an error of its own, and a FileNotFoundError."""
        tmp_path.joinpath("x").mkdir()
        with pytest.raises(ManifestMissing) as caught:
            dataprep.verify(str(tmp_path / "x"))
        assert isinstance(caught.value, FileNotFoundError)


class TestQuickWhereItLies:
    def test_a_size_on_disk(self, reference_of_verify: Path, tmp_path: Path) -> None:
        """On a disk, --quick sees that a shard has another size, and not that a byte changed."""
        folder = Path(shutil.copytree(reference_of_verify, tmp_path / "out"))
        shard = next((folder / "tfrecord").iterdir())
        data = bytearray(shard.read_bytes())
        flip(500)(data)
        shard.write_bytes(data)
        assert verify(str(folder), depth="quick")[0].ok
        assert not verify(str(folder))[0].ok
        shard.write_bytes(data + b"\0")
        (fault,) = verify(str(folder), depth="quick")[0].faults
        assert fault.key == f"tfrecord/{shard.name}"
        assert f"has {len(data) + 1:,} bytes, the receipt says {len(data):,}" in fault.what

    def test_an_etag_on_s3(
        self, tree: Path, bucket: str, s3_server: MotoServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """On S3, --quick sees a changed byte by the ETag, and reads no shard for it."""
        options = StoreOptions(endpoint_url=s3_server.url)
        uri = f"s3://{bucket}/{secrets.token_hex(4)}"
        config = dataprep.ShardConfig.model_validate(
            {
                "source": str(tree),
                "output": uri,
                "store": options,
                "image": {"size": 96},
                "dask": {"processes": False},
            }
        )
        dataprep.shard(config)
        store = S3Store(uri, options)
        key = "tfrecord/train-00000-of-00001"
        assert verify(uri, depth="quick", options=options)[0].ok
        data = bytearray(store.get(key))
        flip(500)(data)
        store.put(key, data)
        read: list[str] = []
        get = S3Store.get

        def counted(store: S3Store, key: str) -> bytes:
            read.append(key)
            return get(store, key)

        monkeypatch.setattr(S3Store, "get", counted)
        (found,) = verify(uri, depth="quick", options=options)
        assert [fault.key for fault in found.faults] == [key]
        assert "ETag" in found.faults[0].what
        assert key not in read
