"""What Dask and Python remember of schedulers that are closed, forgotten.

A process that runs job after job would hold every scheduler that it ever had, by two caches of
Dask's without a bound: of the dashboard's template, by scheduler
(``distributed.dashboard.scheduler.template_variables``), and of handlers' signatures, by bound
method (``distributed.core._expects_comm``). Neither holds anything that is not found anew at once.
Where a version of Dask has no such cache there is nothing to do.

A scheduler's folder stands in ``sys.path`` while it runs, so that Python keeps a finder for it.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

_FOLDERS = "dask-scratch-space"  # as distributed.diskutils.WorkSpace is told to call them


def forget_schedulers() -> None:
    """Let go of all that those caches hold; to be called when a cluster is closed."""
    dashboard = sys.modules.get("distributed.dashboard.scheduler")
    if dashboard is not None and (memo := getattr(dashboard, "template_variables", None)):
        # Each scheduler asks once, so that nothing is lost with the memo. What it holds ends with
        # it: toolz and cytoolz have no call for that.
        dashboard.template_variables = inspect.unwrap(memo)  # type: ignore[attr-defined]
    signatures = getattr(sys.modules.get("distributed.core"), "_expects_comm", None)
    if (clear := getattr(signatures, "cache_clear", None)) is not None:
        clear()
    for folder in [name for name in [*sys.path_importer_cache] if _FOLDERS in name]:
        if not Path(folder).exists():
            sys.path_importer_cache.pop(folder, None)
