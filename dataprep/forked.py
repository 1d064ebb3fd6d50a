"""What worker processes have imported before they begin: they are forks of the process that does.

It is run by ``multiprocessing.forkserver``, as ``python -c`` is.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from importlib import import_module

with contextlib.suppress(ValueError):
    sys.path.remove("")  # the folder that the command was given in: it is no place of libraries

gc.disable()  # imports make no garbage
for _module in ("distributed.nanny", "distributed.worker", "dataprep.job.cluster"):
    import_module(_module)
gc.freeze()  # a worker's collections need not look at all that
gc.enable()
