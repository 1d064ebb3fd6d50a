"""PURE. Which trials the settings ask for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from iobench.data.settings import AS_FILES, split_name
from iobench.probes.disk.settings import DiskSettings, Operation
from iobench.trial import Params

OWN = "iobench"
"""The engine that params do not name."""
BUFFERED = "buffered"
"""``cache`` of a write that is not direct: what the cache holds before does not matter to it."""

_OF_FILES, _OF_SHARDS = ("files",), ("shards", "records")


def plan(settings: DiskSettings) -> Iterator[Params]:
    """Params of each ``disk`` trial; no two are the same."""
    for target in settings.targets:
        for operation in settings.operations:
            for pattern, cache in itertools.product(
                settings.patterns, _caches(settings, operation)
            ):
                for block_bytes, parallelism in settings.points():
                    params = {
                        "target": target.label,
                        "operation": operation,
                        "pattern": pattern,
                        "block_bytes": block_bytes,
                        "parallelism": parallelism,
                        "cache": cache,
                        "file_bytes": int(settings.file_bytes),
                        "seconds": settings.seconds,
                    }
                    for engine in settings.engine:
                        yield params if engine == OWN else {**params, "engine": engine}


def plan_layouts(settings: DiskSettings) -> Iterator[Params]:
    """Params of each ``layout`` trial: of each form of data the accesses that it allows.

    On an object store there is no cache of ours to warm, and ``cold`` stands alone.
    """
    for data in dict.fromkeys(settings.layout_data):
        form, _, remote = split_name(data)
        for access in settings.layouts:
            if access not in (_OF_FILES if form in AS_FILES else _OF_SHARDS):
                continue
            for cache in ("cold",) if remote else settings.layout_cache:
                for parallelism in settings.layout_parallelism:
                    yield {
                        "data": data,
                        "access": access,
                        "cache": cache,
                        "parallelism": parallelism,
                        "seconds": settings.seconds,
                    }


def _caches(settings: DiskSettings, operation: Operation) -> Iterator[str]:
    if operation == "read":
        yield from settings.cache
    else:
        asked = ("direct" if cache == "direct" else BUFFERED for cache in settings.cache)
        yield from dict.fromkeys(asked)
