"""Readings of several samplers as one table, bounded, and what reading them cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from iobench.clock import Clock
from iobench.samplers.opened import close, opened
from iobench.samplers.protocol import Sampler

MOST_ROWS = 20_000
"""Past that, neighbours are brought together in pairs: 2 readings a second are 2.7 hours."""

Row: TypeAlias = dict[str, float]
Columns: TypeAlias = Mapping[str, Sequence[float | None]]


@dataclass(frozen=True, slots=True)
class Samples:
    """What was read while something ran.

    Attributes:
        columns: ``time_s`` on the machine's monotonic clock, then ``SAMPLER.NAME``; None where a
            sampler had nothing to say.
        core_share: processor seconds of the sampling / wall seconds.
        notes: what was not to be had, and what readers must know.
    """

    columns: Columns
    core_share: float
    notes: Sequence[str]


class Recorder:
    """Reads when it is told to; keeps at most ``MOST_ROWS`` rows."""

    def __init__(
        self, samplers: Mapping[str, Sampler], clock: Clock, notes: Iterable[str] = ()
    ) -> None:
        self._samplers = dict(samplers)
        self._clock = clock
        self._rows: list[Row] = []
        self._notes = list(notes)
        self._every, self._pending = 1, list[Row]()

    @classmethod
    def of(cls, names: Iterable[str], process: int, clock: Clock) -> Recorder:
        """With those of ``names`` that this machine has."""
        samplers, notes = opened(names, process)
        return cls(samplers, clock, notes)

    def sample(self) -> None:
        """One row, now. A sampler that fails is left out from here on, and said to be."""
        now_s = self._clock.now_s()
        row: Row = {"time_s": now_s}
        for name, sampler in list(self._samplers.items()):
            try:
                values = sampler.read(now_s)
            except Exception as error:  # noqa: BLE001  whatever a sampler of somebody else's raises
                self._notes.append(f"{name} ended: {type(error).__name__}: {error}")
                close({name: self._samplers.pop(name)})
                continue
            row |= {f"{name}.{key}": value for key, value in values.items()}
        # The first reading has no rates yet; a row of nothing but the time says nothing.
        if len(row) > 1:
            self._keep(row)

    def columns(self) -> Columns:
        """Every column that any row has, in the order in which they came."""
        names = dict.fromkeys(name for row in self._rows for name in row)
        return {name: [row.get(name) for row in self._rows] for name in names}

    def end(self, cpu_s: float, wall_s: float) -> Samples:
        """What was read; ``cpu_s`` is what reading took of a processor in ``wall_s`` seconds."""
        close(self._samplers)
        share = cpu_s / wall_s if wall_s > 0 else 0.0
        return Samples(self.columns(), share, tuple(dict.fromkeys(self._notes)))

    def _keep(self, row: Row) -> None:
        self._pending.append(row)
        if len(self._pending) < self._every:
            return
        self._rows.append(together(self._pending))
        self._pending = []
        if len(self._rows) >= MOST_ROWS:
            pairs = zip(self._rows[::2], self._rows[1::2], strict=True)
            self._rows = [together(pair) for pair in pairs]
            self._every *= 2


def together(rows: Sequence[Row]) -> Row:
    """PURE. Means of neighbours, at the time of the last: a rate is of the time before it."""
    if len(rows) == 1:
        return rows[0]
    names = dict.fromkeys(name for row in rows for name in row)
    values = {name: [row[name] for row in rows if name in row] for name in names}
    means = {name: sum(found) / len(found) for name, found in values.items()}
    return {**means, "time_s": rows[-1]["time_s"]}
