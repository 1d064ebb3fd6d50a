"""PURE. The settings of probes in a config, and the parameters of their trials."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ByteSize,
    ConfigDict,
    Field,
    model_validator,
)

from iobench.data.settings import AS_FILES, BucketSettings, check_home, check_name, split_name
from iobench.machine.page_cache import WHEN_NEEDED, DropCaches
from iobench.probes.object_store.clients import CLIENTS
from iobench.results.trial import Params
from iobench.settings import OneOrMore, ZeroOrMore

DiskOperation = Literal["read", "write"]
Pattern = Literal["sequential", "random"]
Engine = Literal["iobench", "fio"]
Access = Literal["shards", "records", "files"]
"""The unit that each read of a layout trial covers: a shard, a record, or a file."""

StoreOperation = Literal["get", "range_get", "put", "multipart"]

_MAX_OBJECT_BYTES = 5 * 10**9
"""The largest object that S3 accepts in one PUT."""

_CONFIG = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def _require_distinct_labels(targets: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the targets, after a check that each has its own label.

    Raises:
        ValueError: two targets have the same label.
    """
    labels = sorted(target.label for target in targets)
    for label in labels:
        if labels.count(label) > 1:
            raise ValueError(f"two targets are labelled {label!r}: give each its own label")
    return targets


# O_DIRECT moves multiples of 4 KiB.
BlockBytes = Annotated[ByteSize, Field(ge=4096, multiple_of=4096)]
Parallelism = Annotated[int, Field(ge=1, le=256)]
ObjectBytes = Annotated[ByteSize, Field(ge=1, le=_MAX_OBJECT_BYTES)]
Connections = Annotated[int, Field(ge=1, le=1024)]
Seconds = Annotated[float, Field(gt=0, le=3600)]


class DiskTarget(BaseModel):
    """A disk to probe: a folder on the disk, and the name of the disk in the report."""

    model_config = _CONFIG

    label: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=40)]
    """Name in the report."""

    path: Annotated[str, Field(min_length=1), AfterValidator(check_home)]
    """Folder on the disk. Test files are written below `.iobench-probe-RUN_ID/` in this folder."""


class DiskSettings(BaseModel):
    """Two sweeps for each target: over ``block_bytes`` and over ``parallelism`` (processes).

    In addition, each of ``layout_data`` is read in each way of ``layouts``. Data on disk are below
    ``data.folder``.
    """

    model_config = _CONFIG

    targets: Annotated[tuple[DiskTarget, ...], AfterValidator(_require_distinct_labels)] = ()
    """Disks to probe."""

    file_bytes: Annotated[ByteSize, Field(le=10**15)] = ByteSize(2**30)
    """Size of the test file."""

    engine: OneOrMore[Engine] = ("iobench",)
    """Program that reads and writes; `fio` must be installed."""

    operations: OneOrMore[DiskOperation] = ("read", "write")
    """Operations to measure."""

    patterns: OneOrMore[Pattern] = ("sequential", "random")
    """Order of the blocks."""

    cache: OneOrMore[Literal["direct", "cold", "warm"]] = ("direct", "cold", "warm")
    """Page cache of reads: bypassed (O_DIRECT), empty or filled. Writes are direct with `direct`,
    and buffered with `cold` and `warm`."""

    block_bytes: OneOrMore[BlockBytes] = (ByteSize(2**17), ByteSize(2**20), ByteSize(2**22))
    """Block sizes to measure at `at_parallelism`; multiples of 4 KiB."""

    parallelism: OneOrMore[Parallelism] = (1, 8, 32)
    """Numbers of processes to measure at `at_block_bytes`."""

    at_block_bytes: BlockBytes = ByteSize(2**20)
    """Block size while the number of processes varies."""

    at_parallelism: Parallelism = 8
    """Number of processes while block sizes vary."""

    seconds: Seconds = 2.0
    """Longest duration of a trial."""

    layouts: OneOrMore[Access] = ("shards", "records", "files")
    """Ways to read `layout_data`: as whole shards, as records by offset, or as small files."""

    layout_data: ZeroOrMore[Annotated[str, AfterValidator(check_name)]] = ()
    """Names of data, such as `shards@disk`, `files@disk`."""

    layout_cache: OneOrMore[Literal["warm", "cold"]] = ("cold", "warm")
    """Page cache before the reads of `layout_data`."""

    layout_parallelism: OneOrMore[Parallelism] = (1, 8)
    """Numbers of processes that read `layout_data`."""

    @model_validator(mode="after")
    def _require_a_block_for_each_process(self) -> Self:
        for block_bytes, parallelism in self.points():
            if block_bytes * parallelism > self.file_bytes:
                raise ValueError(
                    f"file_bytes {int(self.file_bytes):,} is too small for {parallelism} "
                    f"processes with a block of {block_bytes:,} bytes each"
                )
        return self

    def points(self) -> Sequence[tuple[int, int]]:
        """Return the pairs of block size and parallelism of both sweeps, each pair once."""
        by_block = [(int(block_bytes), self.at_parallelism) for block_bytes in self.block_bytes]
        by_parallelism = [(int(self.at_block_bytes), count) for count in self.parallelism]
        return list(dict.fromkeys(by_block + by_parallelism))


class StoreTarget(BucketSettings):
    """A bucket, a prefix to write below, and a name in the report."""

    label: Annotated[str, Field(min_length=1, pattern=r"^[^/\s]+$")] = "s3"
    """Name in the report."""


class ObjectStoreSettings(BaseModel):
    """Two sweeps for each target, client and operation.

    The first sweep is over ``object_bytes`` at ``at_connections``, the second over ``connections``
    at ``at_object_bytes``. All combinations of both would take much longer.
    """

    model_config = _CONFIG

    targets: Annotated[tuple[StoreTarget, ...], AfterValidator(_require_distinct_labels)] = (
        StoreTarget(),
    )
    """Stores to probe."""

    clients: OneOrMore[Annotated[str, AfterValidator(CLIENTS.check)]] = ("boto3", "obstore")
    """Clients to measure: `boto3`, `awscrt`, `obstore`, `s3torchconnector`, `s5cmd` and `awscli`
    (whole objects), or the client of another package."""

    operations: OneOrMore[StoreOperation] = ("get", "range_get", "put", "multipart")
    """Operations to measure."""

    object_bytes: OneOrMore[ObjectBytes] = tuple(
        map(ByteSize, (5_000, 100_000, 1_000_000, 8_000_000, 32_000_000, 128_000_000))
    )
    """Object sizes to measure at `at_connections`."""

    connections: OneOrMore[Connections] = (1, 2, 4, 8, 16, 32, 64)
    """Numbers of parallel requests to measure at `at_object_bytes`."""

    at_object_bytes: ObjectBytes = ByteSize(8_000_000)
    """Object size while the number of connections varies."""

    at_connections: Connections = 8
    """Number of connections while object sizes vary."""

    seconds: Seconds = 3.0
    """Longest duration of a trial."""

    max_requests: Annotated[int, Field(ge=1, le=10**9)] = 20_000
    """Largest number of requests in a trial."""

    # S3 refuses smaller parts, except for the last.
    part_bytes: Annotated[ByteSize, Field(ge=5 * 2**20, le=_MAX_OBJECT_BYTES)] = ByteSize(8 * 2**20)
    """Part size of `multipart`."""

    pool_bytes: Annotated[ByteSize, Field(ge=1, le=10**15)] = ByteSize(256_000_000)
    """Largest number of bytes that objects of one size take in the store at a time."""

    @model_validator(mode="after")
    def _require_several_parts(self) -> Self:
        largest = max(*self.object_bytes, self.at_object_bytes)
        if "multipart" in self.operations and largest <= self.part_bytes:
            raise ValueError(
                "multipart needs an object of more than one part: raise object_bytes above "
                f"{int(self.part_bytes)}, or leave multipart out of operations"
            )
        return self

    def points(self, operation: StoreOperation) -> Sequence[tuple[int, int]]:
        """Return the pairs of object size and connections of both sweeps, each pair once.

        For ``multipart``, sizes of at most ``part_bytes`` are left out. If ``at_object_bytes`` is
        such a size, the second sweep uses the smallest of the other sizes.
        """
        sizes = [int(size_bytes) for size_bytes in self.object_bytes]
        size_of_second_sweep = int(self.at_object_bytes)
        if operation == "multipart":
            # A multipart upload with one part would be a PUT with two additional requests.
            sizes = [size_bytes for size_bytes in sizes if size_bytes > self.part_bytes]
            if size_of_second_sweep <= self.part_bytes:
                size_of_second_sweep = min(sizes)
        by_size = [(size_bytes, self.at_connections) for size_bytes in sizes]
        by_connections = [(size_of_second_sweep, count) for count in self.connections]
        return list(dict.fromkeys(by_size + by_connections))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTrial:
    """Parameters of trials that read or write files in several processes.

    Attributes:
        parallelism: the number of processes.
        seconds: the longest duration.
        drop_caches: when all clean pages of the machine are dropped before a cold trial.
        repeat: the number of the repeat, from 0. It is the seed of random orders.
    """

    parallelism: int
    seconds: float
    drop_caches: DropCaches = WHEN_NEEDED
    repeat: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskTrial(FileTrial):
    """Parameters of a trial of kind ``disk``.

    Attributes:
        target: the label of the disk.
        operation: whether blocks are read or written.
        pattern: the order of the blocks.
        block_bytes: the size of a block.
        cache: the page cache of reads; ``direct`` or ``buffered`` for writes.
        file_bytes: the size of the test file.
        engine: the program that reads and writes.
    """

    target: str
    operation: DiskOperation
    pattern: Pattern
    block_bytes: int
    cache: Literal["direct", "cold", "warm", "buffered"]
    file_bytes: int
    engine: Engine = "iobench"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutTrial(FileTrial):
    """Parameters of a trial of kind ``layout``.

    Attributes:
        data: the name of the data, such as ``shards@disk``.
        access: what each read covers.
        cache: the page cache before the reads.
    """

    data: str
    access: Access
    cache: Literal["warm", "cold"]


@dataclass(frozen=True, slots=True)
class ObjectTrial:
    """Parameters of a trial of kind ``object``.

    Attributes:
        store: the label of the store.
        client: the name of the client.
        operation: the request that is measured.
        object_bytes: the size of an object; for ``range_get``, the size of a range.
        connections: the number of parallel requests.
        seconds: the longest duration.
        max_requests: the largest number of requests.
        pool_bytes: the largest number of bytes that the objects take in the store at a time.
        part_bytes: the size of a part. Only ``multipart`` uses it.
    """

    store: str
    client: str
    operation: StoreOperation
    object_bytes: int
    connections: int
    seconds: float
    max_requests: int
    pool_bytes: int
    part_bytes: int = 8 * 2**20

    @property
    def reads(self) -> bool:
        """Whether objects are read rather than written."""
        return self.operation in ("get", "range_get")


def plan_disks(settings: DiskSettings) -> Iterator[Params]:
    """Yield the parameters of each ``disk`` trial, as results save them, without duplicates."""
    axes = (settings.targets, settings.operations, settings.patterns)
    for target, operation, pattern in itertools.product(*axes):
        caches: Iterable[str] = settings.cache
        if operation == "write":
            # The state of the cache before a write does not matter: it is direct or buffered.
            write_caches = [
                "direct" if cache == "direct" else "buffered" for cache in settings.cache
            ]
            caches = dict.fromkeys(write_caches)
        for cache in caches:
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
                    yield params if engine == "iobench" else {**params, "engine": engine}


def plan_layouts(settings: DiskSettings) -> Iterator[Params]:
    """Yield the parameters of each ``layout`` trial, as results save them.

    Each form of data is read in the ways that are possible for it. The cache of an object store
    cannot be filled by a client, so data on a store are only read ``cold``.
    """
    for data in settings.layout_data:
        form, _, is_remote = split_name(data)
        readable = ("files",) if form in AS_FILES else ("shards", "records")
        accesses = [access for access in settings.layouts if access in readable]
        caches = ("cold",) if is_remote else settings.layout_cache
        points = itertools.product(accesses, caches, settings.layout_parallelism)
        for access, cache, parallelism in points:
            yield {
                "data": data,
                "access": access,
                "cache": cache,
                "parallelism": parallelism,
                "seconds": settings.seconds,
            }


def plan_objects(settings: ObjectStoreSettings) -> Iterator[Params]:
    """Yield the parameters of each ``object`` trial, as results save them.

    The sweep over sizes comes first, then the sweep over connections.
    """
    for target, operation in itertools.product(settings.targets, settings.operations):
        points = itertools.product(settings.points(operation), settings.clients)
        for (object_bytes, connections), client in points:
            params = {
                "store": target.label,
                "client": client,
                "operation": operation,
                "object_bytes": object_bytes,
                "connections": connections,
                "seconds": settings.seconds,
                "max_requests": settings.max_requests,
                "pool_bytes": int(settings.pool_bytes),
            }
            if operation == "multipart":
                params["part_bytes"] = int(settings.part_bytes)
            yield params
