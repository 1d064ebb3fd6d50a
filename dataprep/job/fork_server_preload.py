"""Prepare multiprocessing's fork server, which imports this module. Worker processes are its forks.

Importing this module changes settings of the process: the memory allocator, the environment, and
the garbage collector.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
import os
import sys
from importlib import import_module

_MALLOC_OPTIONS = {-1: 2**28, -3: 2**22, -8: 1}
"""mallopt(3): M_TRIM_THRESHOLD and M_MMAP_THRESHOLD in bytes, and M_ARENA_MAX.

A worker allocates and frees half a megabyte of pixels at a time. With the default settings, and
also with the settings of Dask, it spends a quarter of its time on page faults. Therefore a single
arena keeps freed memory, which costs a few megabytes. Blocks above 4 MiB are mapped separately.
"""

_MODULES = ("distributed.nanny", "distributed.worker", "dataprep.job.dask_tasks")
# Each worker uses one processor, so that its libraries start no threads.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

with contextlib.suppress(ValueError):
    sys.path.remove("")  # the folder in which the command was started
with contextlib.suppress(AttributeError, OSError):  # the C library is not glibc
    for _option, _value in _MALLOC_OPTIONS.items():
        ctypes.CDLL(None).mallopt(_option, _value)
for _variable in _THREAD_VARIABLES:
    os.environ.setdefault(_variable, "1")

gc.disable()  # imports leave no garbage
for _module in _MODULES:
    import_module(_module)
gc.freeze()  # the collections of a worker skip all objects that exist now
gc.enable()
# If a driver ends abruptly, its workers cannot release their upload slots. Dask would log this.
logging.getLogger("distributed.semaphore").setLevel(logging.CRITICAL + 1)
