"""PURE. Which sweeps the page draws: loaders, shard sizes, disks, object stores."""

from __future__ import annotations

from iobench.report.model.cells import cells
from iobench.report.model.curves import Sweep, charts
from iobench.report.model.disks import disk_table
from iobench.report.model.numbers import number, size
from iobench.report.model.objects import first_bytes, peaks
from iobench.report.model.shapes import Block, Chart, Section
from iobench.report.model.shard_sizes import shard_sizes
from iobench.result import Result

_LOADER = ("loader", "data")
_DISK = ("operation", "pattern")
_OBJECT = ("client", "operation")
_SWEEPS = (
    (
        "loader",
        Sweep(
            "Loaders over workers",
            "workers",
            "samples_per_s",
            "samples/s",
            ("data",),
            _LOADER,
            number,
        ),
    ),
    (
        "loader",
        Sweep(
            "Loaders over batch size",
            "batch_size",
            "samples_per_s",
            "samples/s",
            ("data",),
            _LOADER,
            number,
        ),
    ),
    (
        "loader",
        Sweep(
            "Loaders over prefetch",
            "prefetch",
            "samples_per_s",
            "samples/s",
            ("data",),
            _LOADER,
            number,
        ),
    ),
    (
        "disk",
        Sweep("Disk over block size", "block_bytes", "mb_per_s", "MB/s", ("target",), _DISK, size),
    ),
    (
        "disk",
        Sweep(
            "Disk over parallelism", "parallelism", "mb_per_s", "MB/s", ("target",), _DISK, number
        ),
    ),
    (
        "layout",
        Sweep(
            "Reading shards, records, files",
            "parallelism",
            "samples_per_s",
            "samples/s",
            (),
            ("data", "access"),
            number,
        ),
    ),
    (
        "object",
        Sweep(
            "Object store over object size",
            "object_bytes",
            "mb_per_s",
            "MB/s",
            ("store",),
            _OBJECT,
            size,
            marks=True,
        ),
    ),
    (
        "object",
        Sweep(
            "Object store over connections",
            "connections",
            "mb_per_s",
            "MB/s",
            ("store",),
            _OBJECT,
            number,
            marks=True,
        ),
    ),
)


def sections(result: Result) -> tuple[Section, ...]:
    """One section for loaders, shard sizes, disks and object stores each, where there is any."""
    made: dict[str, list[Chart]] = {kind: [] for kind, _ in _SWEEPS}
    for kind, sweep in _SWEEPS:
        made[kind].extend(charts(sweep, cells(result.trials, kind)))
    listed: tuple[tuple[str, str, tuple[Block, ...]], ...] = (
        ("loaders", "Loaders", tuple(made["loader"])),
        ("shard-size", "Shard size", shard_sizes(result)),
        ("disks", "Disks", (*made["disk"], *disk_table(result), *made["layout"])),
        ("objects", "Object stores", (*peaks(result), *made["object"], *first_bytes(result))),
    )
    return tuple(Section(id, title, blocks) for id, title, blocks in listed if blocks)
