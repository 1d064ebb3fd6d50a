"""PURE. The trials of an object-store probe: two sweeps, not their product."""

from __future__ import annotations

from collections.abc import Iterator

from iobench.probes.object_store.settings import ObjectStoreSettings, Operation
from iobench.trial import Params


def plan(settings: ObjectStoreSettings) -> Iterator[Params]:
    """Params of every trial, none twice: sizes first, then connections."""
    for target in settings.targets:
        for operation in settings.operations:
            for object_bytes, connections in _points(settings, operation):
                for client in settings.clients:
                    yield {
                        "store": target.label,
                        "client": client,
                        "operation": operation,
                        "object_bytes": object_bytes,
                        "connections": connections,
                        "seconds": settings.seconds,
                        "max_requests": settings.max_requests,
                        "pool_bytes": int(settings.pool_bytes),
                        **(
                            {"part_bytes": int(settings.part_bytes)} if _is_parts(operation) else {}
                        ),
                    }


def _points(settings: ObjectStoreSettings, operation: Operation) -> list[tuple[int, int]]:
    """(object_bytes, connections) of both sweeps."""
    sizes, size = [int(size) for size in settings.object_bytes], int(settings.at_object_bytes)
    if _is_parts(operation):
        # An object of one part is a PUT with two requests more.
        fitting = [size for size in (*sizes, size) if size > settings.part_bytes]
        sizes = [size for size in sizes if size in fitting]
        size = size if size in fitting else min(fitting)
    by_size = [(each, settings.at_connections) for each in sizes]
    by_connections = [(size, each) for each in settings.connections]
    return list(dict.fromkeys((*by_size, *by_connections)))


def _is_parts(operation: Operation) -> bool:
    return operation == "multipart"
