"""Clients of object stores by name, through entry points."""

from __future__ import annotations

from dataprep.registry import Registry
from iobench.probes.object_store.clients.protocol import (
    CopyClient,
    ObjectClient,
    RequestFailed,
    Timing,
)

__all__ = ["CLIENTS", "CopyClient", "ObjectClient", "RequestFailed", "Timing"]

CLIENTS: Registry[ObjectClient | CopyClient] = Registry("iobench.clients", "object-store client")
