"""Imported by multiprocessing's fork server, of which worker processes are forks."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
import os
import sys
from importlib import import_module

_MALLOC = {-1: 2**28, -3: 2**22, -8: 1}
"""mallopt(3): M_TRIM_THRESHOLD, M_MMAP_THRESHOLD in bytes, M_ARENA_MAX.

Pixels come and go by the half megabyte. With the usual values, and those of Dask, a quarter of a
worker's time goes into page faults. One arena that keeps freed memory costs a few megabytes;
blocks above 4 MiB are mapped by themselves.
"""

with contextlib.suppress(ValueError):
    sys.path.remove("")  # the folder that the command was given in
with contextlib.suppress(AttributeError, OSError):  # not glibc
    for _option, _value in _MALLOC.items():
        ctypes.CDLL(None).mallopt(_option, _value)
for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

gc.disable()  # imports make no garbage
for _module in ("distributed.nanny", "distributed.worker", "dataprep.job.tasks"):
    import_module(_module)
gc.freeze()  # a worker's collections need not look at all that
gc.enable()
# A driver that ends at once leaves workers that cannot give back their upload slots.
logging.getLogger("distributed.semaphore").setLevel(logging.CRITICAL + 1)
