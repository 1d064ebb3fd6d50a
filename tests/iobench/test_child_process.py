"""A trial's process, as its parent sees it."""

from __future__ import annotations

import os
import selectors
import tempfile
from pathlib import Path

import pytest

from iobench.child_process import ChildProcess
from iobench.messages import Message, request
from iobench.trial import TrialSpec
from tests.commandline import wait_until

pytestmark = pytest.mark.slow


def heard(child: ChildProcess) -> list[Message]:
    """All that it says until its end."""
    found: list[Message] = []
    with selectors.DefaultSelector() as selector:
        selector.register(child, selectors.EVENT_READ)
        while not child.closed:
            selector.select()
            found += child.messages()
    return found


def test_what_it_says_and_how_it_ended() -> None:
    """Messages by their pipe; what it prints is for whoever asks how it ended."""
    with ChildProcess(os.environ, own_session=False) as child:
        assert child.messages() == []
        assert not child.ended
        assert os.getpgid(child.pid) == os.getpgid(0)
        child.ask(request(TrialSpec("nobody", {}), {}))
        (message,) = heard(child)
        assert message["failed"] == "KeyError: 'nobody'"
        assert message["at_s"] > 0
        wait_until(lambda: child.ended, "its end")
        assert child.how == "ended with exit code 0: KeyError: 'nobody'"


def test_it_is_gone_when_nobody_wants_it_any_more() -> None:
    """Also where it was asked for nothing."""
    with ChildProcess(os.environ, own_session=True) as child:
        assert os.getpgid(child.pid) == child.pid
    assert child.ended


def test_a_folder_for_temporary_files_may_go_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As systems remove what is old in it; a run goes on with another."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "removed"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "removed"))
    with ChildProcess(os.environ, own_session=True) as child:
        child.ask(request(TrialSpec("nobody", {}), {}))
        wait_until(lambda: child.ended, "its end")
        assert child.how == "ended with exit code 0: KeyError: 'nobody'"


def test_it_inherits_what_it_is_to_keep() -> None:
    """A file without a name, for one."""
    descriptor = os.memfd_create("kept")
    try:
        with ChildProcess(os.environ, own_session=False, keep=[descriptor]) as child:
            kept = Path(f"/proc/{child.pid}/fd/{descriptor}")
            assert str(kept.readlink()).startswith("/memfd:kept")
    finally:
        os.close(descriptor)


def test_one_that_is_killed_says_by_what() -> None:
    """After its grace."""
    with ChildProcess(os.environ, own_session=False) as child:
        child.end(0)
        assert child.how == "killed by SIGKILL (out of memory?): it said nothing"
