"""Classes of clusters by their names: what a config may have called, and what not."""

from __future__ import annotations

import pytest
from distributed import LocalCluster, SSHCluster

from dataprep.config import DaskOptions
from dataprep.errors import ConfigError
from dataprep.job.custom_cluster import cluster_class, started

pytestmark = pytest.mark.process


def test_a_class_is_found() -> None:
    """By its module and name."""
    assert cluster_class("distributed.LocalCluster") is LocalCluster


def test_a_function_may_make_it() -> None:
    """As Dask's own for SSH is one."""
    assert cluster_class("distributed.SSHCluster") is SSHCluster


@pytest.mark.parametrize("path", ["no.such.Cluster", "nodots", "os.NoSuchName", "", ".", "a."])
def test_what_cannot_be_imported_is_named(path: str) -> None:
    """With what to do."""
    with pytest.raises(ConfigError, match="cannot import"):
        cluster_class(path)


@pytest.mark.parametrize("path", ["subprocess.Popen", "os.system", "dask.config"])
def test_whatever_is_installed_cannot_be_called(path: str) -> None:
    """A config is read by others than who wrote it."""
    with pytest.raises(ConfigError, match="no class of clusters"):
        cluster_class(path)


def test_what_does_not_start_is_told_without_values() -> None:
    """An argument may be a token."""
    options = DaskOptions(cluster_args={"nonsense": "token-5"})
    with pytest.raises(ConfigError, match=r"did not start .*\(nonsense\)") as caught:
        started(options, "tests.dataprep.job.tasks.SmallCluster")
    assert "token-5" not in str(caught.value)
