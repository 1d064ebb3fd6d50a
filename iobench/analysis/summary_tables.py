"""PURE. The tables of the summary: all completed trials, in rows by their settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from iobench.analysis.device_scaling import ScalingRow, device_scaling
from iobench.analysis.loop_entries import ladder_entry, loop_entry
from iobench.analysis.loops import Loop
from iobench.analysis.summary_rows import (
    DiskRow,
    ProcessesRow,
    SettingRow,
    StoreRow,
    access_rows,
    disk_rows,
    layout_rows,
    loader_rows,
    processes_rows,
    store_rows,
    watched_rows,
)
from iobench.results.trial import Trial


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of the summary.

    Attributes:
        loops: the training loops.
        scaling: the loops that were measured on several numbers of devices.
        loaders: loaders without training.
        disks: the best rate of each disk.
        access: loaders and loops with an access mode.
        layouts: ways to read the data.
        object_stores: the stores that were probed.
        watched: watched loops, the longest first.
        processes: loaders in several processes.
    """

    loops: Sequence[Loop]
    scaling: Sequence[ScalingRow]
    loaders: Sequence[SettingRow]
    disks: Sequence[DiskRow]
    access: Sequence[SettingRow]
    layouts: Sequence[SettingRow]
    object_stores: Sequence[StoreRow]
    watched: Sequence[SettingRow]
    processes: Sequence[ProcessesRow]

    def as_dict(self) -> dict[str, Any]:
        """Return the tables as ``result.json`` stores them."""
        return {
            "training": [loop_entry(loop) for loop in self.loops],
            "ladder": [ladder_entry(loop) for loop in self.loops if loop.ladder.rungs],
            "scaling": [row.as_dict() for row in self.scaling],
            "loaders": [row.as_dict() for row in self.loaders],
            "disks": [row.as_dict() for row in self.disks],
            "access": [{**row.as_dict(), "kind": row.kind} for row in self.access],
            "layouts": [row.as_dict() for row in self.layouts],
            "object_stores": [row.as_dict() for row in self.object_stores],
            "watched": [row.as_dict() for row in self.watched],
            "processes": [row.as_dict() for row in self.processes],
        }


def tables_of(trials: Sequence[Trial], loops: Sequence[Loop]) -> Tables:
    """Return the tables of a run.

    Args:
        trials: the trials of the run.
        loops: its training loops.
    """
    return Tables(
        loops=loops,
        scaling=device_scaling(loops),
        loaders=loader_rows(trials),
        disks=disk_rows(trials),
        access=access_rows(trials),
        layouts=layout_rows(trials),
        object_stores=store_rows(trials),
        watched=watched_rows(trials),
        processes=processes_rows(trials),
    )
