"""Injects faults of native code: put this folder on ``PYTHONPATH`` and set ``CRASHING``.

A file that ends in ``@@HOW@@`` does HOW when its bytes are converted, in every process: ``SIGSEGV``
is a real memory fault, and another signal is sent to the process itself. ``hang`` never returns and
holds the interpreter. ``once`` kills the process the first time (``CRASHING`` is a folder for notes
about it).
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import signal
import sys
import threading
from pathlib import Path

_MARK = re.compile(rb"@@([A-Za-z]+)@@\Z")
_FOR_EVER_S = 100_000


def _die(how: str, data: bytes) -> None:
    """End or stop this process in the given way."""
    if how == "SIGSEGV":
        ctypes.string_at(0)
    elif how == "hang":
        ctypes.PyDLL(None).sleep(_FOR_EVER_S)
    elif how == "once":
        note = Path(os.environ["CRASHING"]) / hashlib.sha256(data).hexdigest()
        if not note.exists():
            note.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    else:  # the signal goes to the thread that commits the fault, and the thread does nothing more
        signal.pthread_kill(threading.get_ident(), signal.Signals[how])


def _install() -> None:
    """Make ``dataprep.image.convert`` fail for the marked files."""
    import dataprep.image

    real = dataprep.image.convert

    def convert(data: bytes, *arguments: object, **named: object) -> object:
        if match := _MARK.search(data[-32:]):
            _die(match[1].decode(), data)
        return real(data, *arguments, **named)  # type: ignore[arg-type]

    dataprep.image.convert = convert  # type: ignore[assignment]


if os.environ.get("CRASHING") and "pip" not in sys.argv[0]:
    _install()
