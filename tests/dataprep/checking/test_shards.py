"""``verify`` compares a shard with its receipt record by record, and its indexes line by line."""

from __future__ import annotations

import hashlib
import io
import json
import random
import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from crc32c import crc32c

from dataprep.checking import Fault
from dataprep.formats import get_format
from dataprep.formats.tfrecord import masked_crc32c
from tests.dataprep.checking.conftest import DEPTHS, MANIFEST, RECEIPT, SHARDS, TABLE, Output, flip

each_format = pytest.mark.parametrize("form", SHARDS)


def placed(faults: tuple[Fault, ...]) -> list[tuple[str, int | None, int | None]]:
    """Object, record and offset of each fault that has a record."""
    return [(f.key, f.record, f.offset) for f in faults if f.record is not None]


class TestRecords:
    @pytest.mark.parametrize("record", [0, 5, -1], ids=["first", "sixth", "last"])
    @pytest.mark.parametrize(
        ("form", "inside"),
        [
            *(("tfrecord", byte) for byte in (0, 7, 8, 12, 3000, -1)),
            *(("recordio", byte) for byte in (0, 4, 7, 8, 12, 16, 3000)),
            *(("webdataset", byte) for byte in (0, 130, 150, 300, 512, 3000, -1)),
        ],
    )
    def test_a_byte_flipped(self, output: Output, form: str, inside: int, record: int) -> None:
        """A changed byte of a record is a fault of that record, and of no other."""
        key = SHARDS[form].format(1)
        offset, length = output.location_of(form, 1, record)
        number = record % len(output.receipt(1).rows)
        output.change(key, flip(offset + inside % length))
        (fault,) = output.faults()
        assert (fault.key, fault.record, fault.offset) == (key, number, offset)
        assert str(fault).startswith(f"{key}, record {number}, byte {offset}: checksum does not")

    @each_format
    def test_several(self, output: Output, form: str) -> None:
        """Two damaged records are both reported, and the records between them are not."""
        key = SHARDS[form].format(0)
        offsets = [output.location_of(form, 0, record)[0] for record in (2, 9)]
        for offset in offsets:
            output.change(key, flip(offset + 500))
        assert placed(output.faults()) == [(key, 2, offsets[0]), (key, 9, offsets[1])]

    @each_format
    @pytest.mark.parametrize("inside", [0, 50], ids=["between", "within"])
    def test_cut(self, output: Output, form: str, inside: int) -> None:
        """A cut shard is reported by size, and by the first missing record if it is read."""
        key = SHARDS[form].format(2)
        offset, _ = output.location_of(form, 2, 4)
        output.change(key, lambda data: data.__delitem__(slice(offset + inside, None)))
        for depth in DEPTHS:
            faults = output.faults(depth)
            assert {fault.key for fault in faults} == {key}
            assert faults[0].what.startswith(f"has {offset + inside:,} bytes, its receipt says ")
            assert placed(faults)[:1] == ([] if depth == "quick" else [(key, 4, offset)])

    @each_format
    @pytest.mark.parametrize("record", [False, True], ids=["bytes", "record"])
    def test_appended(self, output: Output, form: str, record: bool) -> None:
        """Bytes after the last record are reported at its end, even if they are a record."""
        key = SHARDS[form].format(0)
        content = output.store.get(key)
        offset, length = output.location_of(form, 0, 3)
        more = content[offset : offset + length] if record else b"\x01" * 40
        output.store.put(key, content + more)
        end = len(content) - len(get_format(form).trailer)
        assert placed(output.faults()) == [(key, len(output.receipt(0).rows), end)]

    @each_format
    def test_exchanged_shards(self, output: Output, form: str) -> None:
        """Two shards with exchanged names are both wrong from their first record on."""
        keys = [SHARDS[form].format(i) for i in (0, 1)]
        first, second = (output.store.get(key) for key in keys)
        output.store.put(keys[0], second)
        output.store.put(keys[1], first)
        first_records = [position for position in placed(output.faults()) if position[1] == 0]
        assert first_records == [(keys[0], 0, 0), (keys[1], 0, 0)]

    def test_exchanged_records(self, output: Output) -> None:
        """Two exchanged records are reported, although every checksum in them is correct."""
        key = SHARDS["tfrecord"].format(0)
        _, first_bytes = output.location_of("tfrecord", 0, 0)
        second_start, second_bytes = output.location_of("tfrecord", 0, 1)
        second_end = second_start + second_bytes
        assert first_bytes == second_start

        def exchange(data: bytearray) -> None:
            data[:second_end] = data[second_start:second_end] + data[:first_bytes]

        output.change(key, exchange)
        assert placed(output.faults())[0] == (key, 0, 0)

    def test_many_faults(self, output: Output) -> None:
        """A shard of zeros is reported with at most twenty faults."""
        key = SHARDS["tfrecord"].format(0)
        output.store.put(key, bytes(len(output.store.get(key))))
        assert sum(fault.key == key for fault in output.faults()) == 20


class TestIndexes:
    @pytest.mark.parametrize(
        ("key", "line"),
        [
            ("index/tfrecord/train-00000-of-00003.idx", 4),
            ("index/recordio/train-00001-of-00003.idx", 0),
            ("index/recordio/train-00002-of-00003.lst", 2),
        ],
    )
    @pytest.mark.parametrize("lost", [False, True], ids=["changed", "lost"])
    def test_a_line(self, output: Output, key: str, line: int, lost: bool) -> None:
        """A changed or lost line of an index is reported."""

        def edit(data: bytearray) -> None:
            lines = bytes(data).splitlines(keepends=True)
            lines[line] = b"" if lost else lines[line].replace(b"1", b"2").replace(b"0", b"3")
            data[:] = b"".join(lines)

        output.change(key, edit)
        faults = output.faults()
        assert {fault.key for fault in faults} == {key}
        assert faults[-1].what == "does not match its receipt"


class TestReceipts:
    @pytest.mark.parametrize(
        "edit",
        [
            lambda c: c["samples"]["records"]["tfrecord"][3].__setitem__(2, 7),
            lambda c: c["samples"]["records"]["tfrecord"][3].__setitem__(0, 7),
            lambda c: c["samples"]["records"]["tfrecord"][3].__setitem__(1, 7),
            lambda c: c["formats"]["tfrecord"]["file"].update(sha256="0" * 64),
            lambda c: c["formats"]["tfrecord"]["file"].update(bytes=7),
            lambda c: c["formats"]["tfrecord"]["file"].update(key="tfrecord/train-9"),
            lambda c: c["formats"]["recordio"]["indexes"][1].update(sha256="0" * 64),
            lambda c: c["formats"]["recordio"]["indexes"].pop(),
        ],
        ids=["crc", "offset", "length", "sha256", "bytes", "key", "index", "no index"],
    )
    def test_a_changed_receipt(self, output: Output, edit: Callable[[Any], object]) -> None:
        """A receipt that does not describe its shard is a fault of that shard and of no other."""
        output.store.delete(MANIFEST)
        output.change_json(RECEIPT.format(1), edit)
        faults = [fault for fault in output.faults() if fault.key != MANIFEST]
        assert faults
        assert all("-00001-of-" in fault.key for fault in faults)
        assert all("-00001-of-" in (fault.remedy or fault.key) for fault in faults)

    @pytest.mark.parametrize(
        "kind", [RECEIPT.format(2), *(template.format(2) for template in SHARDS.values())]
    )
    def test_one_bit(self, output: Output, kind: str) -> None:
        """A changed bit of a shard or of its receipt is a fault of that shard."""
        chance = random.Random(kind)
        data = output.store.get(kind)
        for _ in range(12):
            damaged = bytearray(data)
            damaged[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            output.store.put(kind, damaged)
            faulty_keys = {fault.key for fault in output.faults()} - {MANIFEST}
            assert faulty_keys
            assert all("-00002-of-" in key for key in faulty_keys)


class TestForgedRecords:
    """Records that differ from the receipt, although all checksums were adapted."""

    def forge(
        self,
        output: Output,
        edit: Callable[[bytes], bytes],
        shard: int = 1,
        record: int = 3,
        form: str = "tfrecord",
    ) -> tuple[str, int, int]:
        """Edit the payload of a record and every checksum of it. Return the record's position."""
        key = SHARDS[form].format(shard)
        offset, length = output.location_of(form, shard, record)
        data = bytearray(output.store.get(key))
        begin, end = offset, offset + length
        if form == "tfrecord":
            begin, end = begin + 12, end - 4
        payload = edit(bytes(data[begin:end]))
        assert len(payload) == end - begin
        data[begin:end] = payload
        if form == "tfrecord":
            data[end : end + 4] = struct.pack("<I", masked_crc32c(payload))
        output.store.put(key, data)
        sha256 = hashlib.sha256(data).hexdigest()
        checksum = crc32c(bytes(data[offset : offset + length]))
        table = self.retabled(output, shard, record, checksum, form)

        def receipt(content: Any) -> None:
            file = content["formats"][form]["file"]
            file.update(sha256=sha256, etag=output.store.head(key).etag)
            content["samples"]["records"][form][record][2] = checksum

        def manifest(content: Any) -> None:
            content["formats"][form]["shards"][shard]["sha256"] = sha256
            content["table"] = {"bytes": len(table), "sha256": hashlib.sha256(table).hexdigest()}

        output.change_json(RECEIPT.format(shard), receipt)
        output.change_json(MANIFEST, manifest)
        return key, record, offset

    def retabled(self, output: Output, shard: int, record: int, checksum: int, form: str) -> bytes:
        """Store the table of samples with another checksum of one record. Return its bytes."""
        table = pq.read_table(pa.BufferReader(output.store.get(TABLE)))
        column = table.schema.get_field_index(f"{form}_crc32c")
        checksums = table[column].to_pylist()
        before = sum(len(output.receipt(number).rows) for number in range(shard))
        checksums[before + record] = checksum
        sink = io.BytesIO()
        changed = table.set_column(column, f"{form}_crc32c", pa.array(checksums, pa.int64()))
        pq.write_table(changed, sink)
        output.store.put(TABLE, sink.getvalue())
        return sink.getvalue()

    @pytest.mark.parametrize(
        ("feature", "message"),
        [
            (b"image/class/label", "label is "),
            (b"image/class/synset", "synset is "),
            (b"image/filename", "filename is "),
            (b"image/height", "height is "),
            (b"image/width", "width is "),
        ],
    )
    def test_another_sample(self, output: Output, feature: bytes, message: str) -> None:
        """A record whose label, class, name or size differs from its receipt is reported."""
        row = output.receipt(1).rows[3]

        def change(payload: bytes) -> bytes:
            at = payload.index(feature) + len(feature)
            at += 6 if b"label" in feature or b"eight" in feature or b"width" in feature else 7
            return payload[:at] + bytes([payload[at] ^ 1]) + payload[at + 1 :]

        address = self.forge(output, change)
        (fault,) = output.faults()
        assert output.verify("quick").ok
        assert (fault.key, fault.record, fault.offset) == address
        assert fault.what.startswith(message)
        assert row.source in fault.what

    @pytest.mark.parametrize(
        ("before", "after", "message"),
        [
            (b'"width":', b'"width":9', "width is 9"),
            (b'"synset":"n', b'"synset":"m', "synset is b'm"),
            (b'"name":"n', b'"name":"m', "source is b'm"),
            (b'{"height":', b'["height":', "its .json is not a JSON object"),
            (b".json\0", b".jsom\0", "the checksum of the header at byte "),
        ],
    )
    def test_another_member(
        self, output: Output, before: bytes, after: bytes, message: str
    ) -> None:
        """A tar whose ``.json`` is damaged, or belongs to another sample, is reported."""

        def change(payload: bytes) -> bytes:
            at = payload.index(before)
            return payload[:at] + after + payload[at + len(after) :]

        address = self.forge(output, change, form="webdataset")
        (fault,) = output.faults("deep")
        assert (fault.key, fault.record, fault.offset) == address
        assert message in fault.what

    def test_the_class_member(self, output: Output) -> None:
        """A tar whose ``.cls`` has another number than the label in its receipt is reported."""

        def change(payload: bytes) -> bytes:
            at = payload.index(b".cls\0") - len(b"000000000") + 512
            assert payload[at : at + 1].isdigit()
            return payload[:at] + b"7" + payload[at + 1 :]

        address = self.forge(output, change, form="webdataset")
        (fault,) = output.faults("deep")
        assert (fault.key, fault.record, fault.offset) == address
        assert fault.what.startswith("label is 7, the receipt says ")

    def test_the_label_zero(self, output: Output) -> None:
        """The label 0 is compared like any other label."""
        rows = output.receipt(1).rows
        record = next(number for number, row in enumerate(rows) if row.label)
        offset = json.loads(output.store.get(MANIFEST))["formats"]["tfrecord"]["label_offset"]

        def change(payload: bytes) -> bytes:
            at = payload.index(b"image/class/label") + len(b"image/class/label") + 6
            assert payload[at] == rows[record].label + offset
            return payload[:at] + bytes([offset]) + payload[at + 1 :]

        self.forge(output, change, record=record)
        (fault,) = output.faults()
        assert fault.what.startswith(f"label is 0, the receipt says {rows[record].label}")

    @pytest.mark.parametrize("form", ["tfrecord", "webdataset"])
    @pytest.mark.parametrize("damage", ["pixels", "size"])
    def test_the_image(self, output: Output, damage: str, form: str) -> None:
        """Only --deep finds an image that does not decode, or that has another size."""

        def change(payload: bytes) -> bytes:
            start, end = payload.index(b"\xff\xd8\xff"), payload.rindex(b"\xff\xd9") + 2
            jpeg = bytearray(payload[start:end])
            if damage == "pixels":
                jpeg[len(jpeg) // 2 :] = bytes(len(jpeg) - len(jpeg) // 2)
            else:
                sof = jpeg.index(b"\xff\xc0")
                (height,) = struct.unpack_from(">H", jpeg, sof + 5)
                struct.pack_into(">H", jpeg, sof + 5, height - 16)
            return payload[:start] + bytes(jpeg) + payload[end:]

        address = self.forge(output, change, form=form)
        assert output.verify("quick").ok
        assert output.verify("full").ok
        (fault,) = output.faults("deep")
        assert (fault.key, fault.record, fault.offset) == address
        assert output.receipt(1).rows[3].source in fault.what

    def test_exchanged(self, output: Output) -> None:
        """Two records that were exchanged with their positions and checksums have wrong numbers."""
        rows = output.receipt(0).rows

        def exchange(content: Any) -> None:
            for name, positions in content["samples"]["records"].items():
                _, first_bytes, first_crc = (rows[0].records or {})[name]
                _, second_bytes, second_crc = (rows[1].records or {})[name]
                positions[0] = [0, second_bytes, second_crc]
                positions[1] = [second_bytes, first_bytes, first_crc]

        output.change_json(RECEIPT.format(0), exchange)
        for name, key in SHARDS.items():
            _, first_bytes = output.place_of(rows[0], name)
            second_start, second_bytes = output.place_of(rows[1], name)
            second_end = second_start + second_bytes
            data = output.store.get(key.format(0))
            exchanged = data[second_start:second_end] + data[:first_bytes]
            output.store.put(key.format(0), exchanged + data[second_end:])
        lines = [fault.what for fault in output.faults() if fault.record in (0, 1)]
        assert any(line.startswith("number is ") for line in lines)
        assert any(line.startswith("filename is ") for line in lines)
