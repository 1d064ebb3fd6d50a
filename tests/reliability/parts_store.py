"""A bucket to which shards go in parts, registered as a third party's package would be.

S3 takes parts of 5 MiB and more, and the product sends parts only from 256 MiB on, which no shard
has. Here it sends them from 5 MiB on, in driver and workers alike: ``partss3://bucket/prefix``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from dataprep.stores import StoreOptions, s3_writing
from dataprep.stores.s3 import S3Store

PART_BYTES = 5 * 2**20
ENTRY_POINTS = """[dataprep.stores]
partss3 = tests.reliability.parts_store:PartsStore
"""


class PartsStore(S3Store):
    """``partss3://bucket/prefix``."""

    def __init__(self, uri: str, options: StoreOptions | None = None) -> None:
        s3_writing.MULTIPART_FROM_BYTES = s3_writing.PART_BYTES = PART_BYTES
        super().__init__(uri.replace("partss3://", "s3://"), options)

    def __reduce__(self) -> tuple[Callable[..., S3Store], tuple[str, StoreOptions]]:
        return _unpickled, (self.uri, self.options)


@lru_cache(maxsize=1)
def _unpickled(uri: str, options: StoreOptions) -> S3Store:
    """One a process, as its parent's."""
    return PartsStore(uri, options)


@contextmanager
def usual_parts() -> Iterator[None]:
    """What a store of this kind changed in this process is as before afterwards."""
    before = s3_writing.MULTIPART_FROM_BYTES, s3_writing.PART_BYTES
    try:
        yield
    finally:
        s3_writing.MULTIPART_FROM_BYTES, s3_writing.PART_BYTES = before


def environment(folder: Path) -> Mapping[str, str]:
    """That of a command which knows such stores; ``folder`` holds the package."""
    package = folder / "parts-1.0.dist-info"
    package.mkdir(parents=True, exist_ok=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: parts\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(ENTRY_POINTS)
    return {"PYTHONPATH": f"{folder}:{Path(__file__).parents[2]}"}
