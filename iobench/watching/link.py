"""The way from a watched process to its companion: never in the loop's way."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import iobench
from iobench.watching.messages import message

_PIPE_BYTES = 1 << 20  # the most that Linux gives without being root
_END_S = 10.0


class Link:
    """A companion process and the pipe to it.

    The companion samples the machine, keeps the steps, and writes the report once this process has
    ended, however it ends. What the pipe does not take at once waits in memory. Ctrl-C may come
    between any two steps of this code, and no byte may be lost or sent twice for that.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Start it.

        Raises:
            OSError: no process can be started.
        """
        self._lock = threading.RLock()  # one that an interrupt left taken hinders nobody at the end
        self._waiting: tuple[bytearray, list[int]] = (bytearray(), [])
        home = str(Path(iobench.__file__).parents[1])
        path = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "iobench.watching.companion", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={**_quiet(os.environ), "PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C is for the script
        )
        assert self._process.stdin is not None  # noqa: S101  it was asked for
        self._pipe = self._process.stdin.fileno()
        os.set_blocking(self._pipe, False)
        with contextlib.suppress(OSError, AttributeError):
            fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self.alive = True
        self.send(settings)
        os.register_at_fork(after_in_child=self._abandoned)

    def send(self, head: Mapping[str, Any], doubles: bytes = b"") -> None:
        """Hand a message over, now or with a later one; nothing once the companion is gone."""
        with self._lock:
            if self.alive:
                self._waiting[0].extend(message(head, doubles))
                self._push()

    def end(self, wait_s: float) -> bool:
        """The last word, and the wait for the report; whether the companion has ended well."""
        self.send({"end": True})
        deadline_s = time.monotonic() + _END_S
        while self.alive and self._waiting[0] and time.monotonic() < deadline_s:
            select.select([], [self._pipe], [], 0.1)
            with self._lock:
                self._push()
        self.alive = False
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        try:
            return self._process.wait(wait_s) == 0
        except subprocess.TimeoutExpired:
            return False

    def _push(self) -> None:
        """What the pipe takes of ``_waiting``: bytes, and how many each write took of them."""
        waiting, taken = self._waiting
        try:
            while rest := waiting[sum(taken) :]:
                # One call for the interpreter: nothing comes between writing and knowing how much.
                taken.extend(map(os.write, (self._pipe,), (rest,)))
        except BlockingIOError:
            self._waiting = (waiting[sum(taken) :], [])
            return
        except OSError:  # it is gone; the script goes on
            self.alive = False
        self._waiting = (bytearray(), [])

    def _abandoned(self) -> None:
        """In a process that was forked from ours: a loader's worker has nothing to say."""
        self.alive = False
        self._lock = threading.RLock()  # a thread that is not here may have held it
        self._waiting = (bytearray(), [])
        self._process.returncode = 0  # not ours to wait for


def _quiet(environment: Mapping[str, str]) -> dict[str, str]:
    """Without what would have libraries of the report raise what they warn of."""
    return {name: value for name, value in environment.items() if name != "PYTHONWARNINGS"}
