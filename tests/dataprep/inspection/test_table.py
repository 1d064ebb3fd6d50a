"""The records of one shard."""

from __future__ import annotations

import secrets
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pytest

import dataprep
from dataprep.errors import RecordError
from dataprep.inspection import table as module
from dataprep.inspection.table import ShardTable, shard_table
from dataprep.inspection.target import ShardTarget, find_target
from dataprep.stores.memory import MemoryStore
from tests.dataprep.inspection.held import Counting


def table_of(path: Path | str) -> ShardTable:
    """The table of the shard at ``path``."""
    target = find_target(path)
    assert isinstance(target, ShardTarget)
    return shard_table(target)


def wanted(folder: Path, form: str, shard: int = 0) -> list[dict[Hashable, Any]]:
    """What the table of samples says of a shard."""
    written = dataprep.open(folder, format=form).written
    return written[written["shard"] == shard].to_dict("records")


def test_ours(folder: Path, shard: Path, form: str) -> None:
    """Every record of a shard of ours, as the table of samples has it."""
    table = table_of(shard)
    rows = wanted(folder, form)
    assert (table.ours, table.format, table.fault) == (True, form, None)
    assert [tuple(line) for line in table.lines] == [
        (
            i,
            row[f"{form}_offset"],
            row[f"{form}_length"],
            (row["label"],),
            row["synset"],
            row["source"],
            row["width"],
            row["height"],
            "JPEG",
            "",
        )
        for i, row in enumerate(rows)
    ]


def test_anybodys(folder: Path, stray: Path, form: str) -> None:
    """The same shard by itself tells where its records lie, and what stands in them."""
    table = table_of(stray)
    rows = wanted(folder, form)
    offset = 1 if form == "tfrecord" else 0
    assert not table.ours
    for line, row in zip(table.lines, rows, strict=True):
        assert (line.offset, line.length) == (row[f"{form}_offset"], row[f"{form}_length"])
        assert line.labels == (row["label"] + offset,)
        assert (line.width, line.height, line.format) == (row["width"], row["height"], "JPEG")
        named = (row["synset"], row["source"].rpartition("/")[2])
        assert (line.synset, line.filename) == (named if form == "tfrecord" else ("", ""))


def test_images_are_not_read(stray: Path) -> None:
    """One small request a record: most of the shard is never asked for."""
    table = table_of(stray)
    assert table.requests <= len(table.lines) + 1
    assert table.bytes_read < table.bytes / 3


def test_ours_in_a_remote_store(
    memory: MemoryStore, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A remote shard of ours is told from its receipt: of itself its first record is looked at."""
    monkeypatch.setattr(module, "is_near", lambda store: False)
    store = Counting(memory.uri)
    info = next(store.list(f"{form}/train-"))
    near = find_target(f"{memory.uri}/{info.key}")
    assert isinstance(near, ShardTarget)
    table = shard_table(ShardTarget(store, info, near.format, near.receipt))
    assert {key for key, *_ in store.ranges} == {info.key}
    assert max(offset for _, offset, _ in store.ranges) < table.lines[1].offset
    assert store.whole == []
    assert table.requests == len(store.ranges) <= 2
    monkeypatch.undo()
    assert shard_table(near).lines == table.lines


@pytest.mark.parametrize("kind", ["shard", "stray"])
@pytest.mark.parametrize("at", [0, 3, -1])
def test_a_damaged_header(request: pytest.FixtureRequest, form: str, kind: str, at: int) -> None:
    """The table goes as far as the records can be found; then the fault has its offset."""
    path: Path = request.getfixturevalue(kind)
    lines = table_of(path).lines
    number = at % len(lines)
    data = bytearray(path.read_bytes())
    data[lines[number].offset] ^= 0xFF
    path.write_bytes(data)
    table = table_of(path)
    assert table.lines == lines[:number]
    assert table.fault is not None
    assert table.fault_offset == lines[number].offset
    assert f"record {number} at byte {lines[number].offset}" in table.fault


@pytest.mark.parametrize("kind", ["shard", "stray"])
def test_cut_short(request: pytest.FixtureRequest, form: str, kind: str) -> None:
    """Of a shard cut within a record, those before it are told."""
    path: Path = request.getfixturevalue(kind)
    lines = table_of(path).lines
    path.write_bytes(path.read_bytes()[: lines[4].offset + 100])
    table = table_of(path)
    assert table.lines == lines[:4]
    assert table.fault_offset == lines[4].offset


def test_ours_cut_between_records(shard: Path) -> None:
    """A shard of ours that ends early, but cleanly, lacks the records of its receipt."""
    lines = table_of(shard).lines
    shard.write_bytes(shard.read_bytes()[: lines[4].offset])
    table = table_of(shard)
    assert table.lines == lines[:4]
    assert table.fault is not None
    assert "not where its receipt says" in table.fault


def test_ours_with_a_record_too_many(shard: Path) -> None:
    """A sound record more than the receipt has is where the table ends."""
    lines, data = table_of(shard).lines, shard.read_bytes()
    shard.write_bytes(data + data[: lines[0].length])
    table = table_of(shard)
    assert table.lines == lines
    assert table.fault_offset == len(data)


def test_a_remote_one_changed(
    memory: MemoryStore, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A remote shard of ours shows by its size that it was cut, with no reading for it."""
    monkeypatch.setattr(module, "is_near", lambda store: False)
    key = next(memory.list(f"{form}/train-")).key
    whole = memory.get(key)
    lines = table_of(f"{memory.uri}/{key}").lines
    memory.put(key, whole[: lines[3].offset + 5])
    table = table_of(f"{memory.uri}/{key}")
    assert table.lines == lines[:3]
    assert table.fault_offset == lines[3].offset


def test_other_payloads(tmp_path: Path) -> None:
    """Records of something else are told by place and length, and said to be something else."""
    path = tmp_path / "x.tfrecord"
    with path.open("wb") as file:
        writer = dataprep.TFRecordWriter(file)
        writer.write(b"hello")
        writer.write(b"\xff" * 5000)
    table = table_of(path)
    assert table.fault is None
    assert [(line.length, line.problem) for line in table.lines] == [
        (21, "not a tf.train.Example"),
        (5016, "not a tf.train.Example"),
    ]


def test_neither(tmp_path: Path) -> None:
    """A file that holds no records is a wrong request."""
    path = tmp_path / secrets.token_hex(4)
    path.write_bytes(b"\xff\xd8\xff" + bytes(100))
    with pytest.raises(RecordError, match="neither TFRecord nor RecordIO"):
        table_of(path)
