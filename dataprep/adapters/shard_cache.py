"""Remote shards copied ahead into a local directory, a bounded number of bytes at a time."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dataprep.manifest import ShardEntry
from dataprep.stores import Store


def copied_ahead(
    store: Store,
    shards: Sequence[ShardEntry],
    directory: str | os.PathLike[str] | None,
    limit_bytes: int,
) -> Generator[list[tuple[Path, ShardEntry]], None, None]:
    """Groups of shards as local files, the next group being copied meanwhile.

    A group takes at most half of ``limit_bytes`` (or is a single shard). Its files are there
    until the next one is asked for; all are gone when the iterator is closed.
    """
    groups = _groups(shards, limit_bytes // 2)
    folder = Path(tempfile.mkdtemp(prefix="dataprep-shards-", dir=directory))
    try:
        with ThreadPoolExecutor(1) as thread:
            coming = thread.submit(_copy, store, groups[0], folder) if groups else None
            for number in range(len(groups)):
                assert coming is not None  # noqa: S101  for the type checker
                group = coming.result()
                if number + 1 < len(groups):
                    coming = thread.submit(_copy, store, groups[number + 1], folder)
                yield group
                for path, _ in group:
                    path.unlink()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _groups(shards: Sequence[ShardEntry], limit_bytes: int) -> list[list[ShardEntry]]:
    groups: list[list[ShardEntry]] = []
    size = 0
    for shard in shards:
        if not groups or size + shard.bytes > limit_bytes:
            groups.append([])
            size = 0
        groups[-1].append(shard)
        size += shard.bytes
    return groups


def _copy(
    store: Store, shards: Sequence[ShardEntry], folder: Path
) -> list[tuple[Path, ShardEntry]]:
    copies = []
    for shard in shards:
        path = folder / shard.key.replace("/", "-")
        path.write_bytes(store.get(shard.key))
        copies.append((path, shard))
    return copies
