"""A trial: what is measured, as JSON values, and its outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from dataprep.stores import StoreOptions
from iobench.clock import Clock

Params: TypeAlias = Mapping[str, Any]
Metrics: TypeAlias = Mapping[str, Any]
Status = Literal["done", "failed", "skipped"]

GIVE_UP_SHARE = 0.8
"""Share of ``trial_timeout_s`` after which a trial ends by itself, with a reason."""

ANY_FORMAT = ""
"""Stands for the format in which a data set is read if a loader does not need a particular one."""


@dataclass(frozen=True, slots=True)
class TrialSpec:
    """One measurement: ``params`` are JSON values that describe it fully, without addresses."""

    kind: str
    params: Params
    repeat: int = 0

    @property
    def id(self) -> str:
        """``loader/loader=torch-map,workers=2/0``: the same in every run of a config."""
        shown = ",".join(f"{key}={_shown(value)}" for key, value in self.params.items())
        return f"{self.kind}/{shown}/{self.repeat}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where data are stored: a directory or ``s3://bucket/prefix``, and how to reach it.

    ``holds``: ``shards`` (an output of ``dataprep shard``), ``files`` (class folders) or
    ``empty`` (somewhere to write). ``decoded``: the images in its shards are stored as pixels
    (``iobench.pixels``). ``every``: 1 to read all shards or image files, 2 to read every second
    one, and so on, in the order of the manifest or of the listing.
    """

    uri: str
    holds: Literal["shards", "files", "empty"]
    store: StoreOptions = field(default_factory=StoreOptions)
    split: str = "train"
    decoded: bool = False
    every: int = 1

    @property
    def is_remote(self) -> bool:
        """Whether it is an object store."""
        return "://" in self.uri


@dataclass(frozen=True, slots=True)
class Cold:
    """The state of the page cache: the one asked for, and the one shown.

    ``label``: ``cold`` (proved), ``first epoch cold`` (later ones as the page cache left them),
    ``warm``, ``direct`` (O_DIRECT), ``server cache unknown`` or ``not applicable``.
    ``resident_before`` is the share of pages in the page cache before the trial,
    ``physical_ratio`` physical bytes read / logical bytes read; None where not known.
    ``amplification``: that ratio where parts of files were read, with what read-ahead brought.
    ``cache_resident``: below 5 times the memory, so that later epochs may come from the cache.
    ``limits``: what could not be done or seen on this machine.
    """

    asked: str
    label: str
    resident_before: float | None = None
    physical_ratio: float | None = None
    cache_resident: bool | None = None
    why: str = ""
    amplification: float | None = None
    limits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a trial that lasted: an epoch, a batch in a worker, or the step of a rank.

    Attributes:
        track: what it belongs to, such as ``worker 0``. Spans of one track do not overlap.
        name: what it was, such as ``epoch 2``.
        begin_s: its begin, on the clock of a series' ``time_s``.
        seconds: its length.
        wait_s: how long it waited for data at its beginning.
    """

    track: str
    name: str
    begin_s: float
    seconds: float
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a trial found. ``series`` maps a name to equally long columns of numbers.

    Attributes:
        origin_s: the moment, on the clock of the trial, from which a series' ``time_s`` counts;
            None if no loop ran.
        counted_s: begin and end of the steps that its rates are of, in seconds after that; None
            if no loop ran.
        samples: readings of the machine meanwhile, their ``time_s`` from the same moment.
        pauses: parts of ``counted_s`` without steps that count, such as between epochs.
        spans: epochs, batches of workers and steps of ranks, for a trace of the run.
    """

    metrics: Metrics
    cold: Cold | None = None
    series: Mapping[str, Sequence[float]] = field(default_factory=dict)
    origin_s: float | None = None
    counted_s: tuple[float, float] | None = None
    samples: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    pauses: Sequence[tuple[float, float]] = ()
    spans: Sequence[Span] = ()


def _as_it_is(made: Any) -> Any:
    return made


def begin_at_once() -> float:
    """Begin without waiting for other hosts; returns the seconds that this took: none."""
    return 0.0


@dataclass(frozen=True, slots=True)
class Around:
    """Wrappers of loader and consumer, by which the self-test injects delays.

    No config can set them, and a trial in a process of its own has none, so no measurement can
    contain such a delay by mistake.
    """

    loader: Callable[[Any], Any] = _as_it_is
    consumer: Callable[[Any], Any] = _as_it_is


@dataclass(frozen=True, slots=True)
class Context:
    """What a trial gets beside its params.

    ``places`` resolves the names that params use. ``progress(samples, unit)`` may be called
    at any rate with all that was done so far; ``unit`` is ``samples`` or ``bytes``, for instance.
    ``scratch`` is removed when the trial has ended; None if the trial needs no such folder.
    ``give_up_s`` is the moment on ``clock`` after which a trial ends by itself, with a reason,
    since it would be killed soon after. A trial calls ``begin`` once, between its preparation and
    its measurement; of several hosts, all begin together. It returns the seconds that the trial
    waited for the others, by which ``give_up_s`` is then later.
    """

    places: Mapping[str, Place]
    clock: Clock
    progress: Callable[[float, str], None]
    scratch: Path | None = None
    give_up_s: float = math.inf
    around: Around = Around()
    begin: Callable[[], float] = begin_at_once


@dataclass(frozen=True, slots=True)
class HostPart:
    """The part of one host in a trial that several hosts ran at the same time.

    Attributes:
        host: the number of the host, from 0.
        status, reason, metrics, cold: the outcome of this host's own measurement.
        began_s: the earliest and the latest possible start, in seconds after the hosts were told
            to begin; None if the host did not begin. Both come from the clock of this host alone.
        ended_s: the end of the measurement, in seconds after its start.
    """

    host: int
    status: Status
    reason: str = ""
    metrics: Metrics = field(default_factory=dict)
    cold: Cold | None = None
    began_s: tuple[float, float] | None = None
    ended_s: float | None = None


@dataclass(frozen=True, slots=True)
class Together:
    """A trial that several hosts ran at the same time.

    Attributes:
        hosts: the number of hosts that were to run it.
        parts: the part of each of these hosts, in the order of their numbers.
        sums: rates by the name of their metric, summed over the hosts that measured.
        slowest: the number of the host with the lowest rate; None if no host has a rate.
        start_spread_s: the largest possible time between the first and the last start.
        together_share: the part of the time from the first start to the last end in which all
            hosts measured; below 1, ``sums`` is more than the hosts get at the same time.
    """

    hosts: int
    parts: Sequence[HostPart]
    sums: Mapping[str, float] = field(default_factory=dict)
    slowest: int | None = None
    start_spread_s: float | None = None
    together_share: float | None = None

    @property
    def missing(self) -> Sequence[int]:
        """Numbers of the hosts that have no result."""
        return [part.host for part in self.parts if part.status != "done"]


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial as stored in a result. ``reason`` says why it failed or was skipped.

    ``started_s`` and ``time_zero_s`` are moments in seconds since 1970. From the second one the
    ``time_s`` of its steps, spans and readings count; 0 if it has none, or an earlier version
    measured it.

    If several hosts ran it, ``metrics`` and ``cold`` are those of host 0, and ``hosts`` has the
    parts of all hosts. Of a trial that one of the hosts failed, only ``hosts`` has figures.
    """

    id: str
    kind: str
    params: Params
    repeat: int
    status: Status
    metrics: Metrics = field(default_factory=dict)
    cold: Cold | None = None
    reason: str = ""
    started_s: float = 0.0
    seconds: float = 0.0
    time_zero_s: float = 0.0
    hosts: Together | None = None


def _shown(value: Any) -> str:
    return "+".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
