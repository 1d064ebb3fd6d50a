"""Clusters of a class, or a function, that a config names."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from dataprep.config import DaskOptions
from dataprep.errors import ConfigError


def cluster_class(path: str) -> Callable[..., Any]:
    """The class at ``package.module.Class``, or the function, as ``distributed.SSHCluster`` is.

    Raises:
        ConfigError: it cannot be imported, or makes no cluster by its looks: a config is no way to
            call whatever is installed, such as ``subprocess.Popen``.
    """
    module, _, name = path.rpartition(".")
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"dask.cluster: cannot import {path!r} ({error}): install the package that has it"
        ) from None
    of_clusters = all(hasattr(found, each) for each in ("scale", "close"))
    makes_one = inspect.isfunction(found) and name.endswith("Cluster")
    if not (isinstance(found, type) and of_clusters) and not makes_one:
        raise ConfigError(
            f"dask.cluster: {path!r} is no class of clusters, which have scale() and close(), and "
            "no function called ...Cluster"
        )
    return found


def started(options: DaskOptions, path: str) -> Any:
    """A cluster of that class, scaled to as many workers as are asked for.

    Raises:
        ConfigError: there is no such class, or it does not start.
    """
    try:
        cluster = cluster_class(path)(**options.cluster_args)
        if options.workers:
            cluster.scale(options.workers)
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(
            f"dask.cluster: {path!r} did not start with these dask.cluster_args "
            f"({', '.join(options.cluster_args)}): {type(error).__name__}: {error}"
        ) from error
    return cluster
