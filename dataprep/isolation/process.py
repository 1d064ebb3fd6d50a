"""A process for samples one at a time, as who asks it sees it: an outcome, or how it ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle

from dataprep.errors import ImageError, JobError
from dataprep.image import ImagePolicy
from dataprep.isolation.endings import Ending, ending_of
from dataprep.outcomes import Outcome
from dataprep.sources import Located, Source

_START_S = 600.0
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
# As multiprocessing's spawn does it, but for the main module: nobody's script is imported again.
_CHILD = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from dataprep.isolation.child import serve; serve(int(sys.argv[2]), int(sys.argv[3]))"
)


class IsolatedProcess:
    """Started anew, not forked, so that nothing of this process is in it but its module path.

    ``source`` None says that the bytes of each sample come with it.

    Raises:
        JobError: it does not start.
    """

    def __init__(self, source: Source | None, policy: ImagePolicy) -> None:
        here, there = Pipe()
        self._connection: Connection[Any, Any] = here
        with there:
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:  # Ctrl-C is for who asks
                self._process = subprocess.Popen(
                    [
                        *(sys.executable, "-c", _CHILD, json.dumps(sys.path)),
                        *(str(there.fileno()), str(os.getpid())),
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,  # what allocators say before they abort
                    pass_fds=[there.fileno()],
                    env={**_ONE_THREAD, **os.environ},
                )
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self.pid = self._process.pid
        try:
            self._begin(source, policy)
        except BaseException:
            self.end()
            raise

    def convert(
        self, item: Located, data: bytes | ImageError | None, seconds: float
    ) -> Outcome | Ending:
        """The sample's outcome, or how the process ended over it: it is gone then.

        ``seconds`` is how long the conversion may last, once the sample is read.

        Raises:
            SourceChanged, StoreError: it could not be read.
        """
        digest = self._asked((item, data), None)
        if isinstance(digest, Exception):
            raise digest
        if isinstance(digest, Ending):
            return digest
        answer = self._asked(None, seconds)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Ending):
            return answer._replace(sha256=digest)
        outcome: Outcome = answer
        return outcome

    def end(self) -> None:
        """Kill it; nothing happens where it is gone."""
        self._process.kill()
        self._ended()

    def _begin(self, source: Source | None, policy: ImagePolicy) -> None:
        content = cloudpickle.dumps((source, policy))  # by value what is of the script that runs
        try:
            self._connection.send_bytes(content)
            if not self._connection.poll(_START_S):
                raise JobError(f"a process to convert samples in did not start in {_START_S:g} s")
            self._connection.recv()
        except (EOFError, ConnectionError):
            how = ending_of(self._ended(), "").how
            raise JobError(
                f"a process to convert samples in did not start ({how}): source and policy have "
                "to be importable there"
            ) from None

    def _asked(self, request: tuple[Any, Any] | None, seconds: float | None) -> Any:
        """The next answer, which may be an error of who was asked."""
        try:
            if request is not None:
                self._connection.send(request)
            if not self._connection.poll(seconds):
                self.end()
                return Ending("hung", f"{seconds:g} s")
            return self._connection.recv()
        except (EOFError, ConnectionError):
            return ending_of(self._ended(), "")

    def _ended(self) -> int:
        self._connection.close()
        return self._process.wait()
