"""Connect to a running Dask scheduler, or start a Dask cluster of a configured class."""

from __future__ import annotations

import gc
import importlib
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dataprep.config.shard_config import DaskOptions
from dataprep.errors import ConfigError, DataprepError, JobError
from dataprep.output.versions import require_versions

ANSWER_TIMEOUT_S = 15

SILENT = logging.CRITICAL + 1
"""A log level above all messages.

Even CRITICAL is silenced, because Dask logs the end of a client as critical, with a traceback.
"""


def require_reachable(options: DaskOptions) -> None:
    """Check, before anything is written, that the scheduler answers or the class exists.

    Raises:
        ConfigError: the scheduler does not answer, or the class cannot be imported.
    """
    if options.scheduler:
        with quiet_dask():
            connect(options, options.scheduler).close()
    elif options.cluster:
        _import_cluster_class(options.cluster)


def connect(options: DaskOptions, address: str) -> Any:
    """Return a client of the scheduler at an address.

    Raises:
        ConfigError: the scheduler does not answer, or needs certificates.
    """
    from distributed import Client, Security

    files = {}
    if options.tls is not None:
        files["tls_ca_file"] = options.tls.ca_file
        files["tls_client_cert"] = options.tls.cert
        files["tls_client_key"] = options.tls.key
    try:
        return Client(address, timeout=ANSWER_TIMEOUT_S, security=Security(**files))
    except TypeError:
        problem = (
            f"{address!r} needs certificates: name their files in dask.tls (ca_file, cert, key), "
            "or in Dask's own settings such as DASK_DISTRIBUTED__COMM__TLS__CA_FILE"
        )
    except (OSError, ValueError) as error:
        problem = f"no Dask scheduler answers at {address!r}: {error}"
    # A client that did not connect closes itself when it is garbage-collected. If that happens
    # while another client starts, both clients wait for each other forever.
    gc.collect()
    raise ConfigError(problem)


def require_same_versions(client: Any, planned_versions: tuple[tuple[str, str], ...]) -> None:
    """Compare the library versions of all connected workers with the versions of the job.

    Workers that connect later are checked at their first task.

    Raises:
        JobError: a worker has other versions, or does not have this package.
    """
    try:
        client.run(require_versions, planned_versions)
    except DataprepError:
        raise
    except Exception as error:
        raise JobError(
            f"a worker of the cluster cannot run jobs: {type(error).__name__}: {error}: install "
            "the same version of this package there"
        ) from error


def start_custom_cluster(options: DaskOptions, path: str) -> Any:
    """Start a cluster of a configured class, with the configured number of workers.

    Args:
        options: the settings of the cluster.
        path: the class, as ``package.module.NameCluster``.

    Raises:
        ConfigError: the class cannot be imported, or does not start with these arguments.
    """
    cluster_class = _import_cluster_class(path)
    try:
        cluster = cluster_class(**options.cluster_args)
        if options.workers:
            cluster.scale(options.workers)
    except Exception as error:
        raise ConfigError(
            f"dask.cluster: {path!r} did not start with these dask.cluster_args "
            f"({', '.join(options.cluster_args)}): {type(error).__name__}: {error}"
        ) from error
    return cluster


def _import_cluster_class(path: str) -> Callable[..., Any]:
    """Import the class or function at ``package.module.NameCluster``. Raises ConfigError."""
    module, _, name = path.rpartition(".")
    try:
        cluster_class: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"dask.cluster: cannot import {path!r} ({error}): install the package that has it"
        ) from None
    if not name.endswith("Cluster"):  # a config must not be able to call any installed function
        raise ConfigError(f"dask.cluster: {path!r}: give a class or function named ...Cluster")
    return cluster_class


@contextmanager
def quiet_dask() -> Iterator[None]:
    """Silence all warnings, and the log messages of Dask and of the libraries that it uses.

    Dask warns about a port in use, and logs messages while it ends.
    """
    loggers = [logging.getLogger(name) for name in ("distributed", "tornado", "asyncio", "bokeh")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(SILENT)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
