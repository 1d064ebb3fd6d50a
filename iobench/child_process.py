"""``iobench.child`` as its parent sees it: started, asked, listened to, ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from typing import IO

from dataprep.names import escape
from iobench.messages import Message

LOOK_EVERY_S = 0.5
"""How often to look whether one has ended: what it started may hold its pipe open."""

_TAIL_BYTES = 4096
_READ_BYTES = 1 << 16
# A file of the user's, called as a module is, is not taken for it.
_NOT_FROM_HERE = ("-P",)


class ChildProcess:
    """One process; its ``messages`` are what a selector waits for.

    Args:
        environment: all of its environment.
        own_session: whether it leads a session, and so a process group, of its own.
        keep: descriptors that it inherits.
    """

    def __init__(
        self, environment: Mapping[str, str], *, own_session: bool, keep: Iterable[int] = ()
    ) -> None:
        read_end, write_end = os.pipe()
        os.set_blocking(read_end, False)
        self._lines = os.fdopen(read_end, "rb", buffering=0)
        self._log = _temporary_file()
        self._pending = b""
        self.closed = False
        """Whether nobody is left who could say more."""
        try:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    *_NOT_FROM_HERE,
                    *("-m", "iobench.child", str(write_end), str(os.getpid())),
                ],
                stdin=subprocess.PIPE,
                stdout=self._log,
                stderr=self._log,
                pass_fds=[write_end, *keep],
                env=environment,
                start_new_session=own_session,
            )
        except BaseException:
            self._close()
            raise
        finally:
            os.close(write_end)
        assert self._process.stdin is not None  # noqa: S101  it was asked for
        self._stdin = self._process.stdin
        self.pid = self._process.pid

    def __enter__(self) -> ChildProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.end(0)
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()
        self._close()

    def fileno(self) -> int:
        """Where its messages arrive."""
        return self._lines.fileno()

    def ask(self, request: bytes) -> None:
        """Hand over what is asked of it."""
        with contextlib.suppress(BrokenPipeError), self._stdin:
            self._stdin.write(request)

    def messages(self) -> list[Message]:
        """Those that have arrived since the last look; does not wait."""
        data = self._lines.read(_READ_BYTES)
        if data is None:
            return []
        self.closed = not data
        *whole, self._pending = (self._pending + data).split(b"\n")
        return [json.loads(line) for line in whole]

    @property
    def ended(self) -> bool:
        """Whether it is gone, whatever it left behind."""
        return self._process.poll() is not None

    def wait(self, seconds: float) -> None:
        """At most so long for its end."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def end(self, grace_s: float) -> None:
        """Wait so long for its end, then kill it."""
        self.wait(grace_s)
        self._process.kill()
        self._process.wait()

    @property
    def how(self) -> str:
        """How it ended, and the last line that it printed."""
        return f"{_how(self._process.returncode)}: {self.last_line or 'it said nothing'}"

    @property
    def last_line(self) -> str:
        """Of what it printed; empty for nothing."""
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - _TAIL_BYTES))
        lines = self._log.read().decode(errors="surrogateescape").strip().splitlines()
        return escape(lines[-1]) if lines else ""

    def _close(self) -> None:
        self._lines.close()
        self._log.close()


def _temporary_file() -> IO[bytes]:
    """In the folder for temporary files; in another where that one has been removed meanwhile."""
    try:
        return tempfile.TemporaryFile()
    except FileNotFoundError:
        tempfile.tempdir = None  # looked for again
        return tempfile.TemporaryFile()


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        # Real-time signals have numbers only.
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return f"killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
    return f"ended with exit code {code}"
