"""Dask adds no packages to the fork server of worker processes."""

from __future__ import annotations

import multiprocessing
from unittest.mock import Mock

import dask
import distributed.utils
import pytest

from dataprep.job.fork_server import keep_modules_of_fork_server


def test_dask_keeps_the_modules_of_the_fork_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """This depends on an internal variable of distributed, whose version has an upper bound."""
    variable = "_forkserver_preload_set"
    assert hasattr(distributed.utils, variable), (
        f"distributed {distributed.__version__} has no {variable}: see how get_mp_context chooses "
        "the modules of the fork server now, and change dataprep/job/fork_server.py"
    )
    monkeypatch.setattr(distributed.utils, variable, False)
    set_preload = Mock()
    context = multiprocessing.get_context("forkserver")
    monkeypatch.setattr(type(context), "set_forkserver_preload", set_preload)
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        keep_modules_of_fork_server()
        assert distributed.utils.get_mp_context() is context
        set_preload.assert_not_called()
        monkeypatch.setattr(distributed.utils, variable, False)
        distributed.utils.get_mp_context()
        set_preload.assert_called_once()
