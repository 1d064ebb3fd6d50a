"""Clients of object stores by name, through entry points."""

from __future__ import annotations

from importlib.metadata import entry_points

from dataprep.errors import ConfigError
from iobench.probes.object_store.clients.protocol import ObjectClient, RequestFailed, Timing

__all__ = ["ObjectClient", "RequestFailed", "Timing", "client_names", "get_client"]

_GROUP = "iobench.clients"


def client_names() -> list[str]:
    """Every client that is registered, sorted."""
    return sorted({point.name for point in entry_points(group=_GROUP)})


def get_client(name: str) -> type[ObjectClient]:
    """The client class of that name.

    Raises:
        ConfigError: nobody registered one.
    """
    for point in entry_points(group=_GROUP, name=name):
        client: type[ObjectClient] = point.load()
        return client
    raise ConfigError(f"no object-store client {name!r}: known are {', '.join(client_names())}")
