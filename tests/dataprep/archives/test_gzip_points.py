"""Tests of dataprep.archives.gzip_points."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dataprep.archives.gzip_points import (
    MOST_POINTS,
    GzipPoints,
    opened,
    parse_export,
    points_of,
    spacing_for,
)
from dataprep.errors import ConfigError, CorruptArchive


def text(bytes_: int, seed: int) -> bytes:
    """Something between noise and words, so that blocks begin at any bit."""
    rng = np.random.default_rng(seed)
    words = [rng.bytes(int(n)) for n in rng.integers(1, 12, 500)]
    return b"".join(words[i] for i in rng.integers(0, 500, bytes_ // 5))[:bytes_]


CONTENT = text(6_000_000, 0)
FILES = {
    "one": gzip.compress(CONTENT, 6, mtime=0),
    "several": b"".join(
        gzip.compress(CONTENT[at : at + 1_700_000], 9, mtime=0)
        for at in range(0, len(CONTENT), 1_700_000)
    ),
    "stored": gzip.compress(CONTENT, 0, mtime=0),
}


def points(data: bytes) -> GzipPoints:
    """The points of a gzip file in memory."""
    file = opened(io.BytesIO(data), len(data))  # type: ignore[arg-type]
    assert b"".join(iter(lambda: file.read(1 << 20), b"")) == CONTENT
    return points_of(file)


@pytest.mark.parametrize("kind", FILES)
def test_any_place_is_read(kind: str, tmp_path: Path) -> None:
    """Every place reads as the content does there, from points in memory and from a file."""
    data = FILES[kind]
    found = points(data)
    assert len(found.packed) >= 4
    assert found.packed_bytes == len(data)
    assert found.plain_bytes == len(CONTENT)
    with (tmp_path / "p.arrow").open("wb") as sink:
        found.write(sink, "me")
    mapped = GzipPoints.of_file(str(tmp_path / "p.arrow"), "me")
    rng = np.random.default_rng(1)
    places = [(int(rng.integers(0, len(CONTENT))), int(rng.integers(0, 9) ** 6)) for _ in range(60)]
    places += [(0, 10), (len(CONTENT) - 3, 3), (len(CONTENT) - 3, 100), (0, len(CONTENT)), (7, 0)]
    places += [(int(at) - 1, 2) for at in found.plain[1:]]
    for one in (found, mapped):
        for at, length in places:
            assert one.read(lambda o, n: data[o : o + n], at, length) == CONTENT[at : at + length]


def test_only_a_part_is_fetched() -> None:
    """A read costs what lies between two points, not the file."""
    data, asked = FILES["one"], []

    def fetch(offset: int, length: int) -> bytes:
        asked.append(length)
        return data[offset : offset + length]

    points(data).read(fetch, 3_000_000, 1000)
    assert len(asked) == 1
    assert asked[0] < len(data) // 2


def test_points_of_another_file_are_refused(tmp_path: Path) -> None:
    """Kept points say of what they are."""
    with (tmp_path / "p.arrow").open("wb") as sink:
        points(FILES["one"]).write(sink, "me")
    with pytest.raises(ValueError, match="another archive"):
        GzipPoints.of_file(str(tmp_path / "p.arrow"), "you")


def test_damage_is_told() -> None:
    """Bytes changed since the points were found are named by their place."""
    data = bytearray(FILES["one"])
    found = points(bytes(data))
    middle = int(found.packed[2])
    data[middle + 5 : middle + 5000] = b"\xff" * 4995
    with pytest.raises(CorruptArchive, match=r"between bytes .* and .* are damaged"):
        found.read(lambda o, n: bytes(data[o : o + n]), int(found.plain[2]), 900_000)


@pytest.mark.parametrize("packed_bytes", [1, 10**9, 148 * 10**9, 10**13])
def test_the_index_stays_small(packed_bytes: int) -> None:
    """Points are a MiB apart, and further where there would be more than a gigabyte of them."""
    spacing = spacing_for(packed_bytes)
    assert spacing % 2**20 == 0
    assert packed_bytes / spacing <= MOST_POINTS
    assert spacing == 2**20 or packed_bytes / (spacing - 2**20) > MOST_POINTS


def test_an_unknown_export_is_refused() -> None:
    """Another version of indexed_gzip's file is not guessed at."""
    with pytest.raises(ConfigError, match=r"version 9"):
        parse_export(memoryview(b"GZIDX\x09\x00" + bytes(100)))


def test_damaged_points_are_refused_before_they_are_followed(tmp_path: Path) -> None:
    """Arrow follows the offsets of a file as they are: wherever one is damaged, it is refused."""
    sink = io.BytesIO()
    points(FILES["one"]).write(sink, "f")
    data, path = sink.getvalue(), tmp_path / "points"
    rng = np.random.default_rng(0)
    refused = 0
    for at in rng.integers(len(data) - 6000, len(data), 300).tolist():
        path.write_bytes(data[:at] + b"\x7f\xff" + data[at + 2 :])
        try:
            found = GzipPoints.of_file(str(path), "f")
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
            refused += 1
            continue
        assert len(found.windows) == len(found.packed)
        assert all(len(window.as_buffer()) <= 1 << 15 for window in found.windows)
    assert refused


@pytest.mark.parametrize(
    ("name", "value"),
    [("packed", -1), ("plain", 2**62), ("bits", 8), ("packed", None)],
)
def test_points_that_none_has_are_refused(tmp_path: Path, name: str, value: int | None) -> None:
    """Out of order, beyond the file, or a gap."""
    sink = io.BytesIO()
    points(FILES["one"]).write(sink, "f")
    table = pa.ipc.open_file(pa.BufferReader(sink.getvalue())).read_all()
    number = table.column_names.index(name)
    values = table[name].to_pylist()
    values[1] = value
    table = table.set_column(number, name, pa.array(values, table[name].type))
    path = tmp_path / "points"
    with pa.OSFile(str(path), "w") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(ValueError, match="points"):
        GzipPoints.of_file(str(path), "f")
