"""PURE. Settings of the probes, the trials that follow from them, and a trial's parameters."""

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
from iobench.several import OneOrMore, ZeroOrMore
from iobench.trial import Params

DiskOperation = Literal["read", "write"]
Pattern = Literal["sequential", "random"]
Engine = Literal["iobench", "fio"]
Access = Literal["shards", "records", "files"]
StoreOperation = Literal["get", "range_get", "put", "multipart"]

_MAX_OBJECT_BYTES = 5 * 10**9  # S3's limit for one PUT
_CONFIG = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def _require_distinct_labels(targets: tuple[Any, ...]) -> tuple[Any, ...]:
    labels = [target.label for target in targets]
    if twice := sorted({label for label in labels if labels.count(label) > 1}):
        raise ValueError(f"two targets are labelled {twice[0]!r}: give each its own label")
    return targets


# O_DIRECT moves multiples of 4 KiB.
BlockBytes = Annotated[ByteSize, Field(ge=4096, multiple_of=4096)]
Parallelism = Annotated[int, Field(ge=1, le=256)]
ObjectBytes = Annotated[ByteSize, Field(ge=1, le=_MAX_OBJECT_BYTES)]
Connections = Annotated[int, Field(ge=1, le=1024)]
Seconds = Annotated[float, Field(gt=0, le=3600)]


class DiskTarget(BaseModel):
    """A disk to probe: a directory on it, and its name in the report."""

    model_config = _CONFIG

    label: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=40)]
    """Name in the report."""

    path: Annotated[str, Field(min_length=1), AfterValidator(check_home)]
    """Folder on the disk for test files, which go below `.iobench-probe-RUN_ID/`."""


class DiskSettings(BaseModel):
    """Two sweeps for each target: over ``block_bytes`` and over ``parallelism`` (processes).

    In addition each of ``layout_data`` is read in the ways of ``layouts``; data on disk are below
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
    """Page cache of reads: bypassed (O_DIRECT), empty or filled. Writes are direct, or buffered for
    `cold` and `warm`."""

    block_bytes: OneOrMore[BlockBytes] = (ByteSize(2**17), ByteSize(2**20), ByteSize(2**22))
    """Block sizes to measure at `at_parallelism`; multiples of 4 KiB."""

    parallelism: OneOrMore[Parallelism] = (1, 8, 32)
    """Numbers of processes to measure at `at_block_bytes`."""

    at_block_bytes: BlockBytes = ByteSize(2**20)
    """Block size while processes vary."""

    at_parallelism: Parallelism = 8
    """Processes while block sizes vary."""

    seconds: Seconds = 2.0
    """Longest duration of a trial."""

    layouts: OneOrMore[Access] = ("shards", "records", "files")
    """How to read `layout_data`: whole shards, records by offset, small files."""

    layout_data: ZeroOrMore[Annotated[str, AfterValidator(check_name)]] = ()
    """Names of data, such as `shards@disk`, `files@disk`."""

    layout_cache: OneOrMore[Literal["warm", "cold"]] = ("cold", "warm")
    """Page cache of these reads."""

    layout_parallelism: OneOrMore[Parallelism] = (1, 8)
    """Numbers of processes of these reads."""

    @model_validator(mode="after")
    def _has_a_block_for_every_process(self) -> Self:
        for block_bytes, parallelism in self.points():
            if block_bytes * parallelism > self.file_bytes:
                raise ValueError(
                    f"file_bytes {int(self.file_bytes):,} has no room for {parallelism} processes "
                    f"with a block of {block_bytes:,} bytes each"
                )
        return self

    def points(self) -> Sequence[tuple[int, int]]:
        """Block bytes and parallelism of both sweeps, each pair once."""
        blocks = [(int(block), self.at_parallelism) for block in self.block_bytes]
        counts = [(int(self.at_block_bytes), count) for count in self.parallelism]
        return list(dict.fromkeys(blocks + counts))


class StoreTarget(BucketSettings):
    """A bucket, a prefix to write below, and a name in the report."""

    label: Annotated[str, Field(min_length=1, pattern=r"^[^/\s]+$")] = "s3"
    """Name in the report."""


class ObjectStoreSettings(BaseModel):
    """Two sweeps for each target, client and operation.

    One is over ``object_bytes`` at ``at_connections``, the other over ``connections`` at
    ``at_object_bytes``. Their product would take longer and answer no other question.
    """

    model_config = _CONFIG

    targets: Annotated[tuple[StoreTarget, ...], AfterValidator(_require_distinct_labels)] = (
        StoreTarget(),
    )
    """Stores to probe."""

    clients: OneOrMore[Annotated[str, AfterValidator(CLIENTS.check)]] = ("boto3", "obstore")
    """`boto3`, `awscrt`, `obstore`, `s3torchconnector`, `s5cmd` and `awscli` (whole objects), or
    another package's."""

    operations: OneOrMore[StoreOperation] = ("get", "range_get", "put", "multipart")
    """Operations to measure."""

    object_bytes: OneOrMore[ObjectBytes] = tuple(
        map(ByteSize, (5_000, 100_000, 1_000_000, 8_000_000, 32_000_000, 128_000_000))
    )
    """Object sizes to measure at `at_connections`."""

    connections: OneOrMore[Connections] = (1, 2, 4, 8, 16, 32, 64)
    """Numbers of parallel requests to measure at `at_object_bytes`."""

    at_object_bytes: ObjectBytes = ByteSize(8_000_000)
    """Object size while connections vary."""

    at_connections: Connections = 8
    """Connections while object sizes vary."""

    seconds: Seconds = 3.0
    """Longest duration of a trial."""

    max_requests: Annotated[int, Field(ge=1, le=10**9)] = 20_000
    """Most requests in a trial."""

    # S3 refuses smaller parts, except for the last.
    part_bytes: Annotated[ByteSize, Field(ge=5 * 2**20, le=_MAX_OBJECT_BYTES)] = ByteSize(8 * 2**20)
    """Part size of `multipart`."""

    pool_bytes: Annotated[ByteSize, Field(ge=1, le=10**15)] = ByteSize(256_000_000)
    """Most bytes of objects of one size in the store at a time."""

    @model_validator(mode="after")
    def _has_parts(self) -> Self:
        largest = max(*self.object_bytes, self.at_object_bytes)
        if "multipart" in self.operations and largest <= self.part_bytes:
            raise ValueError(
                "multipart needs an object of more than one part: raise object_bytes above "
                f"{int(self.part_bytes)}, or leave multipart out of operations"
            )
        return self

    def points(self, operation: StoreOperation) -> Sequence[tuple[int, int]]:
        """Object bytes and connections of both sweeps, each pair once."""
        sizes, size = [int(size) for size in self.object_bytes], int(self.at_object_bytes)
        if operation == "multipart":
            # With one part, it is a PUT with two more requests.
            sizes = [each for each in sizes if each > self.part_bytes]
            size = size if size > self.part_bytes else min(sizes)
        by_size = [(each, self.at_connections) for each in sizes]
        by_connections = [(size, each) for each in self.connections]
        return list(dict.fromkeys(by_size + by_connections))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTrial:
    """Parameters of trials that read or write files in several processes."""

    parallelism: int
    seconds: float
    drop_caches: DropCaches = WHEN_NEEDED
    repeat: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskTrial(FileTrial):
    """Parameters of a trial of kind ``disk``; ``cache`` is ``buffered`` for a buffered write."""

    target: str
    operation: DiskOperation
    pattern: Pattern
    block_bytes: int
    cache: Literal["direct", "cold", "warm", "buffered"]
    file_bytes: int
    engine: Engine = "iobench"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutTrial(FileTrial):
    """Parameters of a trial of kind ``layout``."""

    data: str
    access: Access
    cache: Literal["warm", "cold"]


@dataclass(frozen=True, slots=True)
class ObjectTrial:
    """Parameters of a trial of kind ``object``; only ``multipart`` uses ``part_bytes``."""

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
        """Whether objects are read, not written."""
        return self.operation in ("get", "range_get")


def plan_disks(settings: DiskSettings) -> Iterator[Params]:
    """Yield the saved parameters of each ``disk`` trial; no two are the same."""
    axes = (settings.targets, settings.operations, settings.patterns)
    for target, operation, pattern in itertools.product(*axes):
        caches: Iterable[str] = settings.cache
        if operation == "write":  # the cache before a write does not matter
            buffered = ("direct" if cache == "direct" else "buffered" for cache in settings.cache)
            caches = dict.fromkeys(buffered)
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
    """Yield the saved parameters of each ``layout`` trial.

    Each form of data is read in the ways that it allows. The cache of an object store cannot be
    warmed on purpose, so that data there are read ``cold`` only.
    """
    for data in settings.layout_data:
        form, _, remote = split_name(data)
        readable = ("files",) if form in AS_FILES else ("shards", "records")
        accesses = [access for access in settings.layouts if access in readable]
        caches = ("cold",) if remote else settings.layout_cache
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
    """Yield the saved parameters of each ``object`` trial: sizes first, then connections."""
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
