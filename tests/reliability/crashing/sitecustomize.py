"""Faults in native code, injected from outside: this folder on ``PYTHONPATH`` and ``CRASHING`` set.

A file that ends in ``@@HOW@@`` does HOW where its bytes would be converted, in every process:
``SIGSEGV`` is a real fault of memory, ``SIGABRT`` a real abort, another signal is sent; ``exit`` is
what libjpeg does by default, ``refused`` what Rust does where no memory is given, ``hang`` never
comes back and holds the interpreter, ``once`` kills the process the first time (``CRASHING`` is a
folder for notes of that), ``memory`` takes more than the group of a job has
(``tests/reliability/limited.py``). With ``CRASHING=fail`` each is an image that cannot be decoded:
what the same job gives where nothing dies.
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
_MOST_BYTES = 3 * 2**30
"""So that a machine without such a group is not brought down."""


def _die(how: str, data: bytes) -> None:
    if how == "SIGSEGV":
        ctypes.string_at(0)
    elif how == "SIGABRT":
        os.abort()
    elif how == "refused":
        os.write(2, b"memory allocation of 48000004 bytes failed\n")
        os.abort()
    elif how == "exit":
        os._exit(1)
    elif how == "hang":
        ctypes.PyDLL(None).sleep(_FOR_EVER_S)
    elif how == "once":
        note = Path(os.environ["CRASHING"]) / hashlib.sha256(data).hexdigest()
        if not note.exists():
            note.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    elif how == "memory":
        ctypes.memset(ctypes.create_string_buffer(_MOST_BYTES), 1, _MOST_BYTES)
        raise MemoryError("nothing ended it")
    elif how == "SIGKILL":
        os.kill(os.getpid(), signal.SIGKILL)
    else:  # a fault is of the thread that commits it, which does nothing more
        signal.pthread_kill(threading.get_ident(), signal.Signals[how])


def _install() -> None:
    import dataprep.image
    from dataprep.errors import CorruptImage

    real = dataprep.image.convert

    def convert(data: bytes, *arguments: object, **named: object) -> object:
        if found := _MARK.search(data[-32:]):
            how = found[1].decode()
            if os.environ["CRASHING"] == "fail" and how != "once":
                raise CorruptImage("marked")
            if os.environ["CRASHING"] != "fail":
                _die(how, data)
        return real(data, *arguments, **named)  # type: ignore[arg-type]

    dataprep.image.convert = convert  # type: ignore[assignment]


if os.environ.get("CRASHING") and "pip" not in sys.argv[0]:
    _install()
