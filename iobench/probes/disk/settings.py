"""What is read from and written to disks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ByteSize,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from iobench.data.settings import check_home, check_name
from iobench.several import AnyNumber, Several

Operation = Literal["read", "write"]
Pattern = Literal["sequential", "random"]
Cache = Literal["direct", "cold", "warm"]
Engine = Literal["iobench", "fio"]
Access = Literal["shards", "records", "files"]

_ALIGNMENT_BYTES = 4096


def _aligned(value: ByteSize) -> ByteSize:
    if value < _ALIGNMENT_BYTES or value % _ALIGNMENT_BYTES:
        raise ValueError(f"{int(value):,} bytes; O_DIRECT takes multiples of {_ALIGNMENT_BYTES}")
    return value


BlockBytes = Annotated[ByteSize, AfterValidator(_aligned)]
Parallelism = Annotated[int, Field(ge=1, le=256)]


class DiskTarget(BaseModel):
    """A directory on the disk that is meant, and what to call it in the report."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    label: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=40)]
    """What the report calls it."""

    path: Annotated[str, Field(min_length=1), AfterValidator(check_home)]
    """A directory on the disk that is meant; the probe's file goes there."""


class DiskSettings(BaseModel):
    """Two sweeps over each target: of ``block_bytes`` and of ``parallelism`` (processes).

    Beside them ``layouts`` are read from each of ``layout_data``, on the disk under
    ``data.folder``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    targets: tuple[DiskTarget, ...] = ()
    """Disks to probe."""

    file_bytes: Annotated[ByteSize, Field(le=10**15)] = ByteSize(2**30)
    """Size of the file that is read and written."""

    engine: Several[Engine] = ("iobench",)
    """What reads and writes: processes of this program, or `fio` where it is installed."""

    operations: Several[Operation] = ("read", "write")
    """What is done."""

    patterns: Several[Pattern] = ("sequential", "random")
    """In which order blocks are taken."""

    cache: Several[Cache] = ("direct", "cold", "warm")
    """How reads meet the page cache: `direct` passes it by (O_DIRECT), `cold` finds it empty,
    `warm` full. Writes are `direct`, or buffered where one of the others is asked for."""

    block_bytes: Several[BlockBytes] = (ByteSize(2**17), ByteSize(2**20), ByteSize(2**22))
    """Sizes of a block, varied at `at_parallelism`; multiples of 4 KiB."""

    parallelism: Several[Parallelism] = (1, 8, 32)
    """Processes side by side, varied at `at_block_bytes`."""

    at_block_bytes: BlockBytes = ByteSize(2**20)
    """Block size while the parallelism varies."""

    at_parallelism: Parallelism = 8
    """Processes while the block size varies."""

    seconds: Annotated[float, Field(gt=0, le=3600)] = 2.0
    """That a trial lasts at most."""

    layouts: Several[Access] = ("shards", "records", "files")
    """How the images of `layout_data` are read: whole shards, records by offset, small files."""

    layout_data: AnyNumber[Annotated[str, AfterValidator(check_name)]] = ()
    """Names of data, such as `shards@disk`, `files@disk`."""

    layout_cache: Several[Literal["warm", "cold"]] = ("cold", "warm")
    """How these reads meet the page cache."""

    layout_parallelism: Several[Parallelism] = (1, 8)
    """Processes that read them."""

    @field_validator("targets")
    @classmethod
    def _has_no_label_twice(cls, value: tuple[DiskTarget, ...]) -> tuple[DiskTarget, ...]:
        labels = [target.label for target in value]
        if twice := sorted({label for label in labels if labels.count(label) > 1}):
            raise ValueError(f"two targets are called {twice[0]!r}: labels tell them apart")
        return value

    @model_validator(mode="after")
    def _has_a_block_for_every_process(self) -> DiskSettings:
        for block_bytes, parallelism in self.points():
            if block_bytes * parallelism > self.file_bytes:
                raise ValueError(
                    f"file_bytes {int(self.file_bytes):,} has no room for {parallelism} processes "
                    f"with a block of {block_bytes:,} bytes each"
                )
        return self

    def points(self) -> Iterator[tuple[int, int]]:
        """Block bytes and parallelism of both sweeps, each pair once."""
        blocks = [(int(block), self.at_parallelism) for block in self.block_bytes]
        counts = [(int(self.at_block_bytes), count) for count in self.parallelism]
        yield from dict.fromkeys(blocks + counts)
