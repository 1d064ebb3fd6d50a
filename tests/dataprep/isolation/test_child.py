"""What the process answers that converts for another, told without one."""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import CorruptImage, JobError, SourceChanged, StoreUnreachable
from dataprep.image import ImagePolicy
from dataprep.isolation import child
from dataprep.isolation.child import sendable
from dataprep.outcomes import Outcome, outcomes
from dataprep.sources import Located
from tests.dataprep.test_worker import Files, jpeg

PHOTO = jpeg(7)
ITEM = Located("a/7.JPEG", len(PHOTO))


class Asking:
    """Who asks: keeps the answers."""

    def __init__(self) -> None:
        self.answers: list[Any] = []

    def send(self, answer: object) -> None:
        """One answer."""
        self.answers.append(answer)


def answers(source: Files | None, item: Located = ITEM, data: Any = None) -> list[Any]:
    """What is answered over one sample."""
    asking = Asking()
    child._answer(asking, source, ImagePolicy(), item, data)  # type: ignore[arg-type]
    return asking.answers


@given(st.binary(max_size=64) | st.sampled_from([PHOTO, PHOTO[:200], PHOTO + b"\0"]))
def test_the_hash_then_the_outcome(data: bytes) -> None:
    """The hash first: whoever asks knows it if the conversion is the end of this process."""
    item = Located("a/x.JPEG", len(data))
    digest, outcome = answers(Files({item.name: data}), item)
    assert digest == hashlib.sha256(data).hexdigest()
    (expected,) = outcomes(Files({item.name: data}), [item], ImagePolicy())
    assert (outcome.sha256, repr(outcome.converted)) == (digest, repr(expected.converted))


def test_bytes_that_come_along() -> None:
    """There is no source then; an error in their place is the outcome, and has no hash."""
    _, outcome = answers(None, data=PHOTO)
    assert outcome.sha256 == hashlib.sha256(PHOTO).hexdigest()
    error = CorruptImage("empty")
    assert answers(None, data=error) == ["", Outcome(error, "")]


class Gone(Files):
    """A store that does not answer."""

    def read(self, item: Located) -> bytes:
        """Nothing comes."""
        raise StoreUnreachable("no answer")


def test_an_error_of_reading_is_the_only_answer() -> None:
    """Who asks would take a second one for that of the next sample."""
    (gone,) = answers(Gone({}))
    assert isinstance(gone, StoreUnreachable)
    (changed,) = answers(Files({ITEM.name: PHOTO + b"more"}))
    assert isinstance(changed, SourceChanged)


def test_an_error_of_our_own_is_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no outcome of the sample, and raised by who asks."""
    error = ZeroDivisionError("a mistake")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(child, "converted_or_why", fail)
    digest, answer = answers(Files({ITEM.name: PHOTO}))
    assert digest == hashlib.sha256(PHOTO).hexdigest()
    assert answer is error


@given(st.sampled_from([ValueError, KeyError, StoreUnreachable, OSError]), st.text())
def test_what_can_be_sent_is_sent(kind: type[Exception], words: str) -> None:
    """As it is."""
    error = kind(words)
    assert sendable(error) is error
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


class Needy(Exception):
    """Cannot be pickled, in Dask's way for exceptions either."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.lock = threading.Lock()


def test_what_cannot_be_made_anew_is_told() -> None:
    """With its kind and its words."""
    told = sendable(Needy("not here"))
    assert isinstance(told, JobError)
    assert str(told) == "a worker failed: Needy: not here"


_ENDING = """
import sys
from dataprep.isolation.child import _end_with
_end_with(int(sys.argv[1]))
print("lives")
"""


@pytest.mark.parametrize(("ours", "says"), [(True, b"lives\n"), (False, b"")])
def test_it_does_not_outlive_who_started_it(ours: bool, says: bytes) -> None:
    """Nor does it begin where that is gone already."""
    parent = os.getpid() if ours else 1
    done = subprocess.run(
        [sys.executable, "-c", _ENDING, str(parent)], stdout=subprocess.PIPE, check=False
    )
    assert (done.returncode, done.stdout) == (0 if says else 1, says)
