"""Samples converted alone: to the same outcomes, whatever becomes of the process."""

from __future__ import annotations

import hashlib
import os
import secrets
import signal
from pathlib import Path

import pytest

from dataprep.errors import (
    CorruptImage,
    DecoderCrashed,
    DecoderHung,
    ImageError,
    ImageTooLarge,
    SampleLost,
    SourceChanged,
    StoreUnreachable,
)
from dataprep.execution import USUAL_LIMIT, SampleLimit
from dataprep.image import Converted, ImagePolicy
from dataprep.isolation import isolated_outcomes
from dataprep.outcomes import Outcome, outcomes
from dataprep.sources import Located
from dataprep.sources.imagefolder import ImageFolder
from dataprep.stores.memory import MemoryStore
from tests.dataprep.test_worker import Files, jpeg

SOUND = {f"a/{shade}.JPEG": jpeg(shade) for shade in (0, 90, 180)}


def located(files: dict[str, bytes]) -> list[Located]:
    """Each as planned."""
    return [Located(name, len(data)) for name, data in files.items()]


def isolated(files: dict[str, bytes], limit: SampleLimit = USUAL_LIMIT) -> list[Outcome]:
    """Their outcomes, each converted alone."""
    return list(isolated_outcomes(Files(files), located(files), ImagePolicy(), limit))


def test_the_same_outcomes() -> None:
    """Images, errors and hashes are those of a conversion in this process."""
    files = {**SOUND, "a/cut.JPEG": jpeg(7)[:100], "a/large.JPEG": jpeg(9) + bytes(5_000)}
    policy = ImagePolicy(size=24, max_source_bytes=5_000)
    here = list(outcomes(Files(files), located(files), policy))
    alone = list(isolated_outcomes(Files(files), located(files), policy, USUAL_LIMIT))
    assert [type(one.converted) for one in alone] == [
        *[Converted] * 3,
        CorruptImage,
        ImageTooLarge,
    ]
    assert [comparable(one) for one in alone] == [comparable(one) for one in here]


def comparable(outcome: Outcome) -> tuple[object, str]:
    """Errors by their words."""
    found = outcome.converted
    return (str(found) if isinstance(found, ImageError) else found), outcome.sha256


@pytest.mark.usefixtures("crashing")
def test_one_that_crashes_fails_alone() -> None:
    """First and last of a shard as well; what was read has its hash."""
    told = {"a/first.JPEG": "SIGSEGV", "a/last.JPEG": "exit code 1"}
    marked = {
        "a/first.JPEG": jpeg(3) + b"@@SIGSEGV@@",
        "a/last.JPEG": jpeg(4) + b"@@exit@@",
    }
    first, *sound, last = isolated({"a/first.JPEG": b"", **SOUND, **marked})
    for outcome, name in ((first, "a/first.JPEG"), (last, "a/last.JPEG")):
        assert isinstance(outcome.converted, DecoderCrashed)
        assert str(outcome.converted) == f"crashed the decoder ({told[name]})"
        assert outcome.sha256 == hashlib.sha256(marked[name]).hexdigest()
    assert sound == list(outcomes(Files(SOUND), located(SOUND), ImagePolicy()))


def test_one_that_is_killed_once_is_sound(crashing: Path) -> None:
    """It is tried again in a new process."""
    files = {**SOUND, "a/once.JPEG": jpeg(3) + b"@@once@@"}
    assert all(isinstance(one.converted, Converted) for one in isolated(files))
    assert len(list(crashing.iterdir())) == 1


@pytest.mark.usefixtures("crashing")
def test_one_that_is_killed_again_stops_it() -> None:
    """Its content is not blamed."""
    with pytest.raises(SampleLost, match=r"'a/mem\.JPEG'.*SIGKILL.*memory"):
        isolated({**SOUND, "a/mem.JPEG": jpeg(3) + b"@@SIGKILL@@"})


@pytest.mark.usefixtures("crashing")
def test_one_that_is_refused_memory_stops_it() -> None:
    """It aborts, and says why; a crash of another sample before it has no part in that."""
    files = {"a/0.JPEG": jpeg(3) + b"@@SIGABRT@@", "a/1.JPEG": jpeg(3) + b"@@refused@@"}
    with pytest.raises(SampleLost, match=r"'a/1\.JPEG'.*SIGABRT, no memory"):
        isolated(files)
    with pytest.raises(SampleLost, match=r"'a/1\.JPEG'"):
        isolated({"a/1.JPEG": files["a/1.JPEG"], "a/2.JPEG": files["a/0.JPEG"]})
    (outcome,) = isolated({"a/0.JPEG": files["a/0.JPEG"]})
    assert isinstance(outcome.converted, DecoderCrashed)


@pytest.mark.usefixtures("crashing")
def test_one_that_hangs() -> None:
    """It is ended, although the interpreter is held all the time."""
    (outcome,) = isolated({"a/hung.JPEG": jpeg(3) + b"@@hang@@"}, SampleLimit(0.5, "fail"))
    assert isinstance(outcome.converted, DecoderHung)


class FatalSource(Files):
    """Native code of this source faults over some files; the store is not there for another."""

    def read(self, item: Located) -> bytes:
        """One file."""
        if "fault" in item.name:
            os.kill(os.getpid(), signal.SIGBUS)
        if "gone" in item.name:
            raise StoreUnreachable("no answer")
        return super().read(item)


def test_a_source_that_crashes() -> None:
    """Reading is isolated as well: the sample fails, its hash is not known."""
    files = {**SOUND, "a/fault.JPEG": jpeg(3)}
    found = list(isolated_outcomes(FatalSource(files), located(files), ImagePolicy(), USUAL_LIMIT))
    assert [type(one.converted) for one in found] == [*[Converted] * 3, DecoderCrashed]
    assert str(found[-1].converted) == "crashed what reads it (SIGBUS)"
    assert found[-1].sha256 == ""


def test_errors_of_store_and_source_are_theirs() -> None:
    """They are no crash, and end the shard as always; connection errors are not the pipe's."""
    for name, size, error in (("gone", 1, StoreUnreachable), ("a/0.JPEG", 1, SourceChanged)):
        source = FatalSource(SOUND)
        with pytest.raises(error, match=r"no answer|a/0\.JPEG"):
            list(isolated_outcomes(source, [Located(name, size)], ImagePolicy(), USUAL_LIMIT))


def test_a_source_in_memory_is_read_here() -> None:
    """Another process has other memory."""
    uri = f"memory://{secrets.token_hex(8)}"
    store = MemoryStore(uri)
    for name, data in SOUND.items():
        store.put(name, data)
    found = list(isolated_outcomes(ImageFolder(uri), located(SOUND), ImagePolicy(), USUAL_LIMIT))
    assert found == list(outcomes(Files(SOUND), located(SOUND), ImagePolicy()))


class Noted:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def reach(self, name: str) -> None:
        """Where it is read here, which a process of its own does otherwise."""

    def reached(self) -> None:
        """The same."""

    def take(self, name: str) -> None:
        """Note it."""
        self.told.append(name)

    def lay_down(self) -> None:
        """Note it."""
        self.told.append("")


def test_what_is_in_hand_is_told() -> None:
    """As where samples are converted in this process."""
    here, alone = Noted(), Noted()
    list(outcomes(Files(SOUND), located(SOUND), ImagePolicy(), in_hand=here))
    list(isolated_outcomes(Files(SOUND), located(SOUND), ImagePolicy(), USUAL_LIMIT, alone))
    assert here.told == alone.told == [told for name in SOUND for told in (name, "")]
