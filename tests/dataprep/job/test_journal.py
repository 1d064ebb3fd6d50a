"""What a run that dies has in hand, and what the next one makes of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from dataprep.config import ShardConfig
from dataprep.job.journal import Journal
from dataprep.job.parts import Part

_DYING = """
import os, signal, sys
from pathlib import Path
from dataprep.job.journal import Journal
with Journal(Path(sys.argv[1])) as journal:
    journal.take("a/done.JPEG")
    journal.lay_down()
    for name in sys.argv[2:]:
        journal.take(name)
    os.kill(os.getpid(), signal.SIGKILL)
"""

_READING = """
import os, signal, sys
from pathlib import Path
from dataprep.image import ImagePolicy
from dataprep.job.journal import Journal
from dataprep.outcomes import outcomes
from dataprep.sources import Located
class Fatal:
    uri, concurrency = "fatal", int(sys.argv[2])
    def read(self, item):
        os.kill(os.getpid(), signal.SIGKILL)
with Journal(Path(sys.argv[1])) as journal:
    list(outcomes(Fatal(), [Located("a/read.JPEG", 9)], ImagePolicy(), in_hand=journal))
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where a journal is kept."""
    return tmp_path / "cache" / "in-hand" / "x"


def die_over(place: Path, *names: str) -> None:
    """A process that dies with this in hand."""
    command = [sys.executable, "-c", _DYING, str(place), *map(os.fsencode, names)]
    done = subprocess.run(command, check=False)  # type: ignore[arg-type]
    assert done.returncode == -signal.SIGKILL


def test_nothing_is_left_of_a_run_that_ends(place: Path) -> None:
    """Whatever it had in hand on the way, and if it ends by an error."""
    with Journal(place) as journal:
        assert not journal.isolated
        journal.take("a/1.JPEG")
        assert place.exists()
    assert not place.parent.exists()
    nothing: dict[str, str] = {}
    with pytest.raises(KeyError), Journal(place) as journal:
        journal.take(nothing["a/1.JPEG"])
    assert not place.parent.exists()


def test_the_next_run_finds_what_was_in_hand(place: Path) -> None:
    """It isolates, and says over what the last one died; what was laid down is not told."""
    notes: list[str] = []
    die_over(place, "a/tab\t.JPEG")
    with Journal(place) as journal:
        assert journal.isolated
        assert journal.died_over == ("a/tab\t.JPEG",)
        journal.announce(notes.append)
    assert notes == [
        "the last run died with 'a/tab\\\\x09.JPEG' in hand: samples are converted in a "
        "process of their own, where one that crashes fails alone"
    ]
    with Journal(place) as journal:
        assert not journal.isolated


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_source_whose_native_code_ends_the_run(place: Path, concurrency: int) -> None:
    """What is being read is in hand as well, by whichever thread; the next run isolates."""
    command = [sys.executable, "-c", _READING, str(place), str(concurrency)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    with Journal(place) as journal:
        assert journal.isolated
        assert journal.died_over == ("a/read.JPEG",)


def test_names_are_kept_as_they_are(place: Path) -> None:
    """Bytes that are not UTF-8 as well; of long ones the beginning."""
    die_over(place, "a/\udcff.JPEG", "b" * 1_000)
    with Journal(place) as journal:
        assert sorted(journal.died_over) == ["a/\udcff.JPEG", "b" * 256]


def test_many_are_counted(place: Path) -> None:
    """A program with many threads does not fill the screen."""
    notes: list[str] = []
    die_over(place, *(f"a/{number}.JPEG" for number in range(7)))
    with Journal(place) as journal:
        journal.announce(notes.append)
    assert " and 4 others: " in notes[0]


def test_an_isolated_run_that_stops_leaves_it(place: Path) -> None:
    """Interrupted, over its failures, or killed: the run after it is isolated, too."""
    die_over(place, "a/1.JPEG")
    with pytest.raises(KeyboardInterrupt), Journal(place):
        raise KeyboardInterrupt
    die_over(place)  # isolated, and killed with nothing in hand
    with Journal(place) as journal:
        assert journal.died_over == ("a/1.JPEG",)
    assert not place.exists()


def test_another_run_has_it(place: Path) -> None:
    """The second of two keeps nothing, and finds nothing of the first."""
    with Journal(place) as first:
        first.take("a/1.JPEG")
        with Journal(place) as second:
            second.take("a/2.JPEG")
            assert not second.isolated
            second.lay_down()
        assert place.exists()


def test_nothing_can_be_written(tmp_path: Path) -> None:
    """Then nothing is kept, and the run goes on."""
    (tmp_path / "file").write_bytes(b"")
    for nowhere in (Journal(tmp_path / "file" / "x"), Journal(None)):
        with nowhere as journal:
            journal.take("a/1.JPEG")
            journal.lay_down()
            assert not journal.isolated


def test_readers_leave_room_for_those_who_convert(place: Path) -> None:
    """Many more may wait for a store than there are processors."""
    together = Barrier(301)

    def read(number: int) -> None:
        journal.reach(f"read {number}")
        together.wait()
        together.wait()
        journal.reached()

    with Journal(place) as journal, ThreadPoolExecutor(300) as pool:
        readers = [pool.submit(read, number) for number in range(300)]
        together.wait()
        journal.take("converted")
        noted = place.read_bytes()
        journal.lay_down()
        together.wait()
        for reader in readers:
            reader.result()
        assert noted.count(b"converted") == 1
        assert 100 < noted.count(b"read ") < 256
        assert place.read_bytes()[::256] == bytes(256)


def test_threads_have_one_in_hand_each(place: Path) -> None:
    """More threads than there is place for go unnoted, and unhurt."""
    together = Barrier(300)

    def work(number: int) -> None:
        together.wait()
        journal.take(f"name {number}")
        if together.wait() == 0:
            noted.append(place.read_bytes()[::256])
        together.wait()
        journal.lay_down()

    noted: list[bytes] = []
    with Journal(place) as journal, ThreadPoolExecutor(300) as pool:
        list(pool.map(work, range(300)))
        noted.append(place.read_bytes()[::256])
    assert noted == [b"n" * 256, bytes(256)]


def test_a_job_has_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By source, output, split and use, wherever one stands; in the cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def path(use: str = "shard", **changes: str) -> Path | None:
        given = {"source": "photos", "output": "s3://bucket/out", **changes}
        return Journal.of(ShardConfig.model_validate(given), use).path

    assert path() == path(source=str(tmp_path / "photos"))
    part = f"part {Part.parse('0/2')}"
    others = [path(split="val"), path(output="out"), path(source="more"), path("plan"), path(part)]
    assert len({path(), *others}) == 6
    assert str(path()).startswith(str(tmp_path / "cache" / "dataprep" / "in-hand"))


def test_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without a folder of their own keeps nothing."""
    monkeypatch.delenv("XDG_CACHE_HOME")

    def nobody(path: Path) -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "expanduser", nobody)
    config = ShardConfig(source="photos", output="out")
    assert Journal.of(config, "shard").path is None
