"""PURE. Which sweeps the page draws: loaders, shard sizes, disks, object stores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from iobench.report.model.cells import cells
from iobench.report.model.curves import Sweep, charts
from iobench.report.model.data_pairs import data_pairs
from iobench.report.model.disks import disk_table
from iobench.report.model.fastest import fastest
from iobench.report.model.heat import heat_maps
from iobench.report.model.loader_use import use_table
from iobench.report.model.numbers import number, size
from iobench.report.model.objects import UNSEEN, clients, first_bytes, peaks
from iobench.report.model.shapes import Badge, Block, Chart, Section
from iobench.report.model.shard_sizes import shard_sizes
from iobench.report.model.targets import store_words, target_words
from iobench.result import Result


def _loaders(over: str, param: str) -> Sweep:
    identity = ("loader", "data")
    return Sweep(
        f"Loaders over {over}", param, "samples_per_s", "samples/s", ("data",), identity, number
    )


def _disks(over: str, param: str, say: Callable[[float], str]) -> Sweep:
    identity = ("operation", "pattern")
    return Sweep(f"Disk over {over}", param, "mb_per_s", "MB/s", ("target",), identity, say)


def _objects(over: str, param: str, say: Callable[[float], str]) -> Sweep:
    identity, what = ("client", "operation"), f"Object store over {over}"
    return Sweep(what, param, "mb_per_s", "MB/s", ("store",), identity, say, marks=True)


_LAYOUT = Sweep(
    what="Reading shards, records, files",
    x="parallelism",
    metric="samples_per_s",
    unit="samples/s",
    facets=(),
    identity=("data", "access"),
    say_x=number,
)
_SWEEPS = {
    "loader": (
        _loaders("workers", "workers"),
        _loaders("batch size", "batch_size"),
        _loaders("prefetch", "prefetch"),
    ),
    "disk": (
        _disks("block size", "block_bytes", size),
        _disks("parallelism", "parallelism", number),
    ),
    "layout": (_LAYOUT,),
    "object": (
        _objects("object size", "object_bytes", size),
        _objects("connections", "connections", number),
    ),
}


def sections(result: Result) -> tuple[Section, ...]:
    """One section for loaders, shard sizes, disks and object stores each, where there is any."""
    made = {kind: _drawn(result, kind) for kind in _SWEEPS}
    disks: tuple[Block, ...] = (*made["disk"], *disk_table(result), *made["layout"])
    objects: tuple[Block, ...] = (
        *clients(result),
        *peaks(result),
        *made["object"],
        *first_bytes(result),
    )
    loaders: tuple[Block, ...] = (
        *fastest(result),
        *data_pairs(result),
        *made["loader"],
        *heat_maps(result),
        *use_table(result),
    )
    listed: tuple[tuple[str, str, tuple[Block, ...]], ...] = (
        ("loaders", "Loaders", loaders),
        ("shard-size", "Shard size", shard_sizes(result)),
        ("disks", "Disks", (*target_words(result, disks), *disks)),
        ("objects", "Object stores", (*store_words(result, objects), *objects)),
    )
    return tuple(Section(id, title, blocks) for id, title, blocks in listed if blocks)


def _drawn(result: Result, kind: str) -> tuple[Chart, ...]:
    measured = cells(result.trials, kind)
    drawn = tuple(chart for sweep in _SWEEPS[kind] for chart in charts(sweep, measured))
    if kind != "object":
        return drawn
    return tuple(replace(chart, badges=(Badge(UNSEEN, "caution"),)) for chart in drawn)
