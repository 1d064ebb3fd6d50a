"""Tests of iobench.sidebyside.passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from iobench.sidebyside import passes
from iobench.sidebyside.passes import PASSES, RECORDIO, TFRECORDS, Framing
from iobench.sidebyside.workplace import Workplace

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory, few: Path) -> str:
    """Six images as shards in both formats."""
    return str(Workplace(tmp_path_factory.mktemp("passes"), few, 6).sharded(6))


@pytest.fixture(autouse=True)
def ram(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where files in memory go meanwhile."""
    ram = tmp_path / "ram"
    ram.mkdir()
    monkeypatch.setattr(passes, "RAM", ram)
    return ram


@pytest.mark.parametrize("framing", [TFRECORDS, RECORDIO], ids=["tfrecord", "recordio"])
class TestFraming:
    def test_payloads_come_back(self, framing: Framing, shards: str, tmp_path: Path) -> None:
        """A file that was written has them at the offsets that it gave."""
        payloads = framing.payloads(shards)
        offsets = framing.write(payloads, tmp_path / "records")
        records = list(framing.read((tmp_path / "records").read_bytes()))
        assert [bytes(record.payload) for record in records] == payloads
        assert [record.offset for record in records] == offsets
        assert framing.size(tmp_path / "records") == sum(map(len, payloads))
        assert len(payloads) == 6


@pytest.mark.parametrize("in_ram", [True, False], ids=["memory", "folder"])
def test_writing(in_ram: bool, shards: str, ram: Path, tmp_path: Path) -> None:
    """Each pass writes all payloads to a new file; all but the first, which warms, are counted."""
    written: list[Path] = []
    folder = tmp_path / "elsewhere"
    folder.mkdir()

    def write(payloads: list[bytes], path: Path) -> None:
        assert not path.exists()
        path.write_bytes(b"".join(payloads))
        written.append(path)

    measured = passes.writing(shards, write, TFRECORDS, None if in_ram else str(folder))
    assert len(set(written)) == PASSES + 1
    assert {path.parent.parent for path in written} == {ram if in_ram else folder}
    size = sum(map(len, TFRECORDS.payloads(shards)))
    assert measured.amount == pytest.approx(PASSES * size / 1e6)
    assert measured.seconds > 0
    assert not [*ram.iterdir(), *folder.iterdir()]


def test_reading(shards: str, ram: Path) -> None:
    """The same file each time, in memory, with its index beside it; nothing of it stays."""
    read: list[Path] = []
    size = sum(map(len, RECORDIO.payloads(shards)))

    def everything(path: Path) -> int:
        read.append(path)
        assert len(path.with_suffix(".idx").read_text().splitlines()) == 6
        with passes.mapped(path) as view:
            return sum(len(record.payload) for record in RECORDIO.read(view))

    measured = passes.reading(shards, everything, RECORDIO)
    assert len(read) == PASSES + 1
    assert len(set(read)) == 1
    assert read[0].is_relative_to(ram)
    assert measured.amount == pytest.approx(PASSES * size / 1e6)
    assert measured.seconds > 0
    assert not list(ram.iterdir())


def test_a_reader_that_misses_records_is_found_out(shards: str) -> None:
    """It is not timed."""
    with pytest.raises(AssertionError):
        passes.reading(shards, lambda path: 0, TFRECORDS)


def test_without_memory_as_a_folder(
    shards: str, ram: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Files go to where the system has its temporary ones."""
    monkeypatch.setattr(passes, "RAM", ram / "missing")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    written: list[Path] = []

    def write(payloads: list[bytes], path: Path) -> None:
        path.touch()
        written.append(path)

    passes.writing(shards, write, TFRECORDS)
    assert {path.parent.parent for path in written} == {tmp_path}
