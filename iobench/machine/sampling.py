"""Read samplers in a thread while a trial runs, and keep a table of the readings.

The thread runs in the process that waits for the trial, so it does not hold the interpreter lock of
the trial.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

from dataprep.errors import ConfigError
from iobench.clock import Clock, SystemClock
from iobench.errors import Unavailable
from iobench.machine.processes import repeated
from iobench.machine.samplers import SAMPLERS, Sampler
from iobench.results.result import Columns
from iobench.settings import Settings, ZeroOrMore

DEFAULT_SAMPLERS = ("cpu", "tree", "disk", "network", "page-cache", "gpu")
MAX_ROWS = 20_000
"""At this number of rows, every second row is dropped, and from then on half as many readings are
kept. So the memory for the readings of a long trial is bounded."""

Row: TypeAlias = dict[str, float]
"""A reading of all samplers: ``time_s``, and values by ``SAMPLER.NAME``."""

SamplerName = Annotated[str, AfterValidator(SAMPLERS.check)]


class SamplingSettings(Settings):
    """Series of the machine, with times on the clock of the steps."""

    per_s: Annotated[float, Field(ge=1, le=10)] = 2.0
    """Readings per second."""

    samplers: ZeroOrMore[SamplerName] = DEFAULT_SAMPLERS
    """Samplers that are read (docs/series.md); `[]` for none."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Readings of the machine while something ran.

    Attributes:
        columns: ``time_s`` on the machine's monotonic clock, then ``SAMPLER.NAME``; None for
            missing values.
        core_share: processor time of the sampling, as a share of one processor.
        notes: sentences about series that were not available or that ended, and facts that readers
            of the other series must know.
    """

    columns: Columns
    core_share: float
    notes: Sequence[str]


class Recorder:
    """Reads samplers, and keeps fewer than ``MAX_ROWS`` rows of readings.

    Attributes:
        samples: the readings; empty before ``end``.

    Args:
        samplers: the samplers by name.
        clock: the clock of the readings.
        notes: facts about the samplers, and the reasons why others are not available.
    """

    def __init__(
        self, samplers: Mapping[str, Sampler], clock: Clock, notes: Iterable[str] = ()
    ) -> None:
        self._samplers = dict(samplers)
        self._clock = clock
        self._rows: list[Row] = []
        self._notes = list(notes)
        self._every = 1
        """1 to read at each call of ``sample``, 2 to read at every second call, and so on."""
        self._count = 0
        """The number of calls of ``sample`` so far."""
        self.samples = Samples({}, 0.0, ())

    @classmethod
    def of(cls, names: Iterable[str], process: int, clock: Clock) -> Recorder:
        """Return a recorder with the samplers of ``names`` that are available.

        A sampler that is not available is only noted, so that it does not stop a measurement.

        Args:
            names: the registered names of samplers.
            process: the id of the process whose loop is measured.
            clock: the clock of the readings.
        """
        available: dict[str, Sampler] = {}
        notes: list[str] = []
        for name in names:
            try:
                available[name] = SAMPLERS.load(name)(process)
            except (Unavailable, ConfigError) as error:
                notes.append(str(error))
            except Exception as error:  # noqa: BLE001  anything from a third-party sampler
                notes.append(f"no series {name}: {type(error).__name__}: {error}")
        for sampler in available.values():
            notes.extend(sampler.notes)
        return cls(available, clock, notes)

    def sample(self) -> None:
        """Read one row. Some calls are skipped after rows have been dropped (``MAX_ROWS``).

        A sampler that fails is noted, and left out from then on.
        """
        self._count += 1
        if self._count % self._every:
            return
        now_s = self._clock.now_s()
        row: Row = {"time_s": now_s}
        for name, sampler in list(self._samplers.items()):
            try:
                values = sampler.read(now_s)
            except Exception as error:  # noqa: BLE001  anything from a third-party sampler
                self._notes.append(f"{name} ended: {type(error).__name__}: {error}")
                _close(self._samplers.pop(name))
                continue
            row |= {f"{name}.{key}": value for key, value in values.items()}
        # The first reading may have no values, since rates need two readings.
        if len(row) > 1:
            self._rows.append(row)
        if len(self._rows) >= MAX_ROWS:
            self._rows = self._rows[1::2]
            self._every *= 2

    def end(self, core_share: float) -> Samples:
        """Close the samplers, and return the readings.

        Args:
            core_share: the processor time of the sampling, as a share of one processor.
        """
        for sampler in self._samplers.values():
            _close(sampler)
        names: dict[str, None] = {}  # a set that keeps the order
        for row in self._rows:
            names |= dict.fromkeys(row)
        columns = {name: [row.get(name) for row in self._rows] for name in names}
        self.samples = Samples(columns, core_share, tuple(dict.fromkeys(self._notes)))
        return self.samples


@contextlib.contextmanager
def sampling_beside(settings: SamplingSettings | None, process: int) -> Iterator[Recorder | None]:
    """Sample a process and the machine in a thread while the block runs.

    The first reading is at the beginning of the block, the last one at its end. After the block,
    ``Recorder.samples`` has the readings.

    Args:
        settings: how often to read which samplers.
        process: the id of the process.

    Yields:
        The recorder; None if there are no settings, or if they name no samplers.
    """
    if settings is None or not settings.samplers:
        yield None
        return
    clock = SystemClock()
    period_s = 1 / settings.per_s
    recorder = Recorder.of(settings.samplers, process, clock)

    def sample() -> float:
        begun_s = clock.now_s()
        recorder.sample()
        # The time of the reading is a part of the period.
        return max(0.0, begun_s + period_s - clock.now_s())

    core_share = 0.0
    try:
        with repeated(sample) as cost:
            yield recorder
        core_share = cost.core_share
    finally:
        recorder.end(core_share)


def _close(sampler: Sampler) -> None:
    with contextlib.suppress(Exception):  # If it fails, the readings are kept.
        sampler.close()
