"""Faults in native code, injected from outside: this folder on ``PYTHONPATH`` and ``CRASHING`` set.

A file that ends in ``@@HOW@@`` does HOW where its bytes would be converted, in every process:
``SIGSEGV`` is a real memory fault, another signal is sent to the own process; ``hang`` never comes
back and holds the interpreter; ``once`` kills the process the first time (``CRASHING`` is a folder
for notes of that).
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
    if how == "SIGSEGV":
        ctypes.string_at(0)
    elif how == "hang":
        ctypes.PyDLL(None).sleep(_FOR_EVER_S)
    elif how == "once":
        note = Path(os.environ["CRASHING"]) / hashlib.sha256(data).hexdigest()
        if not note.exists():
            note.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    else:  # a fault is of the thread that commits it, which does nothing more
        signal.pthread_kill(threading.get_ident(), signal.Signals[how])


def _install() -> None:
    import dataprep.image

    real = dataprep.image.convert

    def convert(data: bytes, *arguments: object, **named: object) -> object:
        if match := _MARK.search(data[-32:]):
            _die(match[1].decode(), data)
        return real(data, *arguments, **named)  # type: ignore[arg-type]

    dataprep.image.convert = convert  # type: ignore[assignment]


if os.environ.get("CRASHING") and "pip" not in sys.argv[0]:
    _install()
