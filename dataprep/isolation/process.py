"""A process for samples one at a time, as who asks it sees it: an outcome, or how it ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from multiprocessing import Pipe, reduction
from multiprocessing.connection import Connection
from typing import IO, Any

import cloudpickle

from dataprep.errors import ImageError, JobError
from dataprep.image import ImagePolicy
from dataprep.isolation.endings import Ending, ending_of
from dataprep.outcomes import Outcome
from dataprep.sources import Located, Source

_START_S = 600.0
_MOST_SAID_BYTES = 2**20
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
# As multiprocessing's spawn does it, but for the main module: nobody's script is imported again.
_SERVER = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from dataprep.isolation.child import serve; serve(int(sys.argv[2]), int(sys.argv[3]))"
)


class IsolatedProcess:
    """A process that converts, and the next one when it has died: forks of one server.

    The server is started anew, not forked, so that nothing of this process is in it but its
    module path. ``source`` None says that the bytes of each sample come with it.

    Raises:
        JobError: it does not start.
    """

    def __init__(self, source: Source | None, policy: ImagePolicy) -> None:
        here, there = Pipe()
        self._control: Connection[Any, Any] = here
        self._said = tempfile.TemporaryFile("a+b", buffering=0)  # noqa: SIM115  until its end
        self._child: Connection[Any, Any] | None = None
        self.pid = 0
        """Of the process that converts at the moment, 0 for none."""
        with there:
            self._server = _started(there, self._said)
        try:
            self._begin(source, policy)
        except BaseException:
            self.end()
            raise

    def convert(
        self, item: Located, data: bytes | ImageError | None, seconds: float
    ) -> Outcome | Ending:
        """The sample's outcome, or how the process ended over it; a next one takes the next.

        ``seconds`` is how long the conversion may last, once the sample is read.

        Raises:
            SourceChanged, StoreError: it could not be read.
        """
        self._said.truncate(0)
        try:
            child = self._child or self._new_child()
        except (EOFError, ConnectionError):
            return self._ending(self._server.wait())
        digest = self._asked(child, (item, data), None)
        if isinstance(digest, Exception):
            raise digest
        if isinstance(digest, Ending):
            return digest
        answer = self._asked(child, None, seconds)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Ending):
            return answer._replace(sha256=digest)
        outcome: Outcome = answer
        return outcome

    @property
    def alive(self) -> bool:
        """Whether its server is there to start the next one."""
        return self._server.poll() is None

    def end(self) -> None:
        """End it and its server; nothing happens where they are gone."""
        self._let_go()
        self._control.close()
        self._server.kill()
        self._server.wait()
        self._said.close()

    def _begin(self, source: Source | None, policy: ImagePolicy) -> None:
        content = cloudpickle.dumps((source, policy))  # by value what is of the script that runs
        try:
            self._control.send_bytes(content)
            if not self._control.poll(_START_S):
                raise JobError(f"a process to convert samples in did not start in {_START_S:g} s")
            self._control.recv()
        except (EOFError, ConnectionError):
            how = ending_of(self._server.wait(), "").how
            raise JobError(
                f"a process to convert samples in did not start ({how}): source and policy have "
                "to be importable there"
            ) from None

    def _new_child(self) -> Connection[Any, Any]:
        here, there = Pipe()
        with there:
            self._control.send("child")
            reduction.send_handle(self._control, there.fileno(), self._server.pid)
            self.pid = self._control.recv()
        self._child = here
        return here

    def _asked(
        self, child: Connection[Any, Any], request: tuple[Any, Any] | None, seconds: float | None
    ) -> Any:
        """The next answer, which may be an error of who was asked; or how that ended."""
        try:
            if request is not None:
                child.send(request)
            if not child.poll(seconds):
                os.kill(self.pid, signal.SIGKILL)
                self._ended()
                return Ending("hung", f"{seconds:g} s")
            return child.recv()
        except (EOFError, ConnectionError):
            return self._ending(self._ended())

    def _ending(self, code: int) -> Ending:
        self._said.seek(0)
        return ending_of(code, "", self._said.read(_MOST_SAID_BYTES).decode("utf-8", "replace"))

    def _ended(self) -> int:
        """The exit code of the child, which is gone, or of the server, if it is too."""
        self._let_go()
        try:
            code: int = self._control.recv()
        except (EOFError, ConnectionError):
            return self._server.wait()
        return code

    def _let_go(self) -> None:
        if self._child is not None:
            self._child.close()
        self._child, self.pid = None, 0


def _started(end: Connection[Any, Any], said: IO[bytes]) -> subprocess.Popen[bytes]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:  # Ctrl-C is for who asks
        return subprocess.Popen(
            [
                *(sys.executable, "-c", _SERVER, json.dumps(sys.path)),
                *(str(end.fileno()), str(os.getpid())),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            pass_fds=[end.fileno()],
            env={**_ONE_THREAD, **os.environ},
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
