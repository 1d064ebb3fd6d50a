"""The names of clients that send requests, and of clients that copy objects."""

from __future__ import annotations

from iobench.probes.object_store.clients import CLIENTS

REQUEST_CLIENTS = [name for name in CLIENTS.names() if not hasattr(CLIENTS.load(name), "copy")]
COPY_CLIENTS = [name for name in CLIENTS.names() if name not in REQUEST_CLIENTS]
