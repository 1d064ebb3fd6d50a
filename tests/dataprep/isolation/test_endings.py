"""What is concluded of how processes end over a sample."""

from __future__ import annotations

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import DecoderCrashed, DecoderHung, SampleLost, WorkerLost
from dataprep.execution import SampleLimit
from dataprep.isolation.endings import FAULTS, Ending, conclusive, ending_of, judged

FAULT = Ending("fault", "SIGSEGV", "abc")
KILLED = Ending("killed", "SIGKILL", "abc")
HUNG = Ending("hung", "3 s", "abc")
LIMIT = SampleLimit(3.0)


@pytest.mark.parametrize(
    ("code", "ending"),
    [
        (-signal.SIGSEGV, ("fault", "SIGSEGV")),
        (-signal.SIGABRT, ("fault", "SIGABRT")),
        (-signal.SIGKILL, ("killed", "SIGKILL")),
        (-signal.SIGTERM, ("killed", "SIGTERM")),
        (-250, ("killed", "signal 250")),
        (1, ("fault", "exit code 1")),
    ],
)
def test_a_process_that_ended(code: int, ending: tuple[str, str]) -> None:
    """Faults are those of native code; every other signal comes from outside."""
    assert ending_of(code, "abc") == (*ending, "abc")


@pytest.mark.parametrize(
    "said",
    [
        "memory allocation of 48000004 bytes failed\nstack backtrace:\n",  # Rust
        "terminate called after throwing an instance of 'std::bad_alloc'\n",  # C++
    ],
)
def test_an_abort_for_want_of_memory(said: str) -> None:
    """Is as if the kernel had killed it; what a library says before it crashes is no excuse."""
    ending = ending_of(-signal.SIGABRT, "abc", said)
    assert ending == ("killed", "SIGABRT, no memory", "abc")
    assert ending_of(-signal.SIGSEGV, "abc", said).kind == "fault"
    assert ending_of(-signal.SIGABRT, "abc", "free(): invalid pointer\n").kind == "fault"


def test_nothing_from_outside_is_a_fault() -> None:
    """What a person, a scheduler or the kernel sends is never taken for the content's."""
    outside = {signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM}
    assert not outside & FAULTS


@pytest.mark.parametrize(
    ("endings", "concluded"),
    [
        ([], None),
        ([FAULT], None),
        ([KILLED], None),
        ([FAULT, KILLED, HUNG], None),
        ([FAULT, FAULT], FAULT),
        ([KILLED, FAULT, FAULT], FAULT),
        ([FAULT, KILLED, KILLED], KILLED),
        ([HUNG, FAULT, HUNG], HUNG),
    ],
)
def test_twice_alike(endings: list[Ending], concluded: Ending | None) -> None:
    """Once proves nothing; ending twice in one way does, whatever came between."""
    assert conclusive(endings) == concluded


@given(st.lists(st.sampled_from([FAULT, KILLED, HUNG]), min_size=4, max_size=4))
def test_four_endings_always_conclude(endings: list[Ending]) -> None:
    """So that no sample is tried for ever."""
    assert conclusive(endings) is not None


def test_a_fault_is_the_content_s() -> None:
    """The reason tells the signal, and whether the file had been read."""
    error = judged("n1/a.JPEG", FAULT, LIMIT)
    assert (type(error), str(error)) == (DecoderCrashed, "crashed the decoder (SIGSEGV)")
    assert str(judged("a", Ending("fault", "SIGBUS"), LIMIT)) == "crashed what reads it (SIGBUS)"


def test_being_killed_is_nobody_s() -> None:
    """The job stops; the sample and the likely cause are named."""
    with pytest.raises(SampleLost, match=r"'n1/a\.JPEG'.*killed.*memory.*resume") as caught:
        judged("n1/a.JPEG", KILLED, LIMIT)
    assert isinstance(caught.value, WorkerLost)
    assert caught.value.exit_code == 1


def test_hanging_is_the_content_s_only_where_that_is_wanted() -> None:
    """Otherwise the job stops and says how to go on."""
    with pytest.raises(SampleLost, match=r"'a'.*3 s.*sample_timeout_s.*hung_samples=fail"):
        judged("a", HUNG, LIMIT)
    error = judged("a", HUNG, SampleLimit(3.0, "fail"))
    assert (type(error), str(error)) == (DecoderHung, "took the decoder longer than 3 s")
