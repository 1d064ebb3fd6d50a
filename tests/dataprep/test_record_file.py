"""A file that records are written to."""

from __future__ import annotations

from pathlib import Path

import dataprep


def test_a_file_of_records_is_the_same_as_by_any_other_sink(tmp_path: Path) -> None:
    """Large records, small ones, empty ones, and buffers that their owner changes afterwards."""
    path, plain = tmp_path / "gathered", tmp_path / "plain"
    payloads = [bytes([number % 251]) * (number * 997 % 90_000) for number in range(300)]
    with dataprep.RecordFile(path) as file, plain.open("wb") as other:
        first, second = dataprep.TFRecordWriter(file), dataprep.TFRecordWriter(other)
        for payload in payloads:
            changing = bytearray(payload)
            first.write(changing)
            changing[:] = bytes(len(changing))
            second.write(payload)
    assert path.read_bytes() == plain.read_bytes()


def test_many_small_parts(tmp_path: Path) -> None:
    """More than fit into the buffer at once."""
    path = tmp_path / "small"
    with dataprep.RecordFile(path) as file:
        for number in range(5000):
            file.write(b"%05d" % number)
    assert path.read_bytes() == b"".join(b"%05d" % number for number in range(5000))


def test_an_existing_file_is_replaced(tmp_path: Path) -> None:
    """Nothing of it stays."""
    path = tmp_path / "there"
    path.write_bytes(b"much longer than that")
    with dataprep.RecordFile(path) as file:
        file.write(b"short")
    assert path.read_bytes() == b"short"
