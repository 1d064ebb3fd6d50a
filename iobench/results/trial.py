"""A trial is one measurement: its parameters, its context and its outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from dataprep.stores import StoreOptions
from iobench.clock import Clock

Params: TypeAlias = Mapping[str, Any]
"""The parameters of a trial by name, as JSON values. Each kind of trial has its own parameters."""

Metrics: TypeAlias = Mapping[str, Any]
"""The figures of a trial by name, as JSON values. Each kind of trial has its own figures."""

Status: TypeAlias = Literal["done", "failed", "skipped"]

GIVE_UP_SHARE = 0.8
"""A trial gives up after this share of ``trial_timeout_s``, so that its result has the reason."""

ANY_FORMAT = ""
"""The format of a data set for a loader that reads any format."""


@dataclass(frozen=True, slots=True)
class TrialSpec:
    """A planned trial.

    Attributes:
        kind: the kind of trial: ``disk``, ``layout``, ``object``, ``loader``, ``train`` or
            ``watch``.
        params: the complete description of the measurement. It has the names of data, but no paths
            or addresses.
        repeat: the number of the repeat, from 0.
    """

    kind: str
    params: Params
    repeat: int = 0

    @property
    def id(self) -> str:
        """``loader/loader=torch-map,workers=2/0``: the same in every run of a config."""
        params = ",".join(f"{key}={_id_part(value)}" for key, value in self.params.items())
        return f"{self.kind}/{params}/{self.repeat}"


@dataclass(frozen=True, slots=True)
class Location:
    """The location of data, and how to reach it.

    Attributes:
        uri: a directory or ``s3://bucket/prefix``.
        holds: ``shards`` (an output of ``dataprep shard``), ``files`` (folders of images, one for
            each class) or ``empty`` (a location to write to).
        store: options of the object store.
        split: the split that is read.
        decoded: whether the images in the shards are stored as pixels (``iobench.data.pixels``).
        every: 1 to read all shards or image files, 2 to read every second one, and so on. The order
            is that of the manifest or of the listing.
    """

    uri: str
    holds: Literal["shards", "files", "empty"]
    store: StoreOptions = field(default_factory=StoreOptions)
    split: str = "train"
    decoded: bool = False
    every: int = 1

    @property
    def is_remote(self) -> bool:
        """Whether the data is in an object store."""
        return "://" in self.uri


FIRST_EPOCH_COLD = "first epoch cold"
"""Label of a trial whose first epoch was cold and whose later epochs were not prepared."""

HOST_ONLY = (
    "cold on this host; server cache unknown: the file system has a server or a FUSE program, "
    "whose cache cannot be seen from here"
)
"""This sentence is in the ``limits`` of a cold trial on NFS, Lustre, FUSE and other file systems
that have a server."""


@dataclass(frozen=True, slots=True)
class Cold:
    """The state of the page cache in a trial: as requested, and as verified.

    Attributes:
        asked: the requested state.
        label: the verified state: ``cold``, ``first epoch cold`` (the page cache was not reset
            between epochs), ``warm``, ``direct`` (O_DIRECT), ``server cache unknown`` or
            ``not applicable``.
        resident_before: the share of pages that were in the page cache before the trial; None if
            unknown.
        physical_ratio: bytes read from storage / bytes read by the trial; None if unknown.
        cache_resident: whether the data is smaller than 5 times the memory, so that later epochs
            may be read from the page cache. None for direct reads, and if it is unknown.
        why: the reason for the label.
        amplification: the physical ratio if parts of files were read; read-ahead increases it. None
            if whole files were read, or if it is unknown.
        limits: sentences about what this machine did not allow to do or to observe.
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
    """A period of a trial: an epoch, a batch of a worker, or a step of a rank.

    Attributes:
        track: the row of the timeline, such as ``worker 0``. Spans of a track do not overlap.
        name: its name, such as ``epoch 2``.
        begin_s: its begin, on the same clock as ``time_s`` of a series.
        seconds: its duration.
        wait_s: how long it waited for data at its begin.
    """

    track: str
    name: str
    begin_s: float
    seconds: float
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a trial that was carried out.

    Attributes:
        metrics: the figures by their name.
        cold: the state of the page cache.
        series: columns of numbers by their name, with a row for each step.
        origin_s: the moment on the trial's clock from which ``time_s`` counts; None if no loop ran.
        counted_s: begin and end of the steps whose rate is reported, in seconds after
            ``origin_s``; None if no loop ran.
        samples: readings of the machine during the trial; their ``time_s`` counts from the same
            moment.
        pauses: parts of ``counted_s`` without counted steps, such as the time between epochs.
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


def begin_at_once() -> float:
    """Begin without waiting for other hosts. Returns the seconds of waiting, which are 0."""
    return 0.0


@dataclass(frozen=True, slots=True)
class Context:
    """The data, the clock and the callbacks of a trial, which are not part of its parameters.

    Attributes:
        locations: the locations of data by the names that the parameters use.
        clock: the clock by which the trial measures.
        progress: called as ``progress(amount, unit)`` with the amount done so far; ``unit`` is
            ``samples`` or ``bytes``, for instance. It may be called at any rate.
        scratch: a folder that is removed after the trial; None if the trial needs none.
        give_up_s: the moment on ``clock`` after which the trial gives up with a reason. A trial
            that goes on is killed when ``trial_timeout_s`` has passed (``GIVE_UP_SHARE``).
        begin: called once, between the preparation and the measurement. If there are several hosts,
            it waits until all of them are ready, and returns the seconds of waiting. The trial may
            then run this much longer than ``give_up_s``.
    """

    locations: Mapping[str, Location]
    clock: Clock
    progress: Callable[[float, str], None]
    scratch: Path | None = None
    give_up_s: float = math.inf
    begin: Callable[[], float] = begin_at_once


@dataclass(frozen=True, slots=True)
class HostPart:
    """The part of one host in a trial that several hosts ran at the same time.

    Attributes:
        host: the number of the host, from 0.
        status, reason, metrics, cold: the outcome of this host's own measurement.
        began_s: the earliest and the latest possible start, in seconds after the signal to begin;
            None if the host did not begin. Only the clock of this host is used.
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
        hosts: the number of hosts that should have run it.
        parts: the part of each of these hosts, in the order of their numbers.
        sums: rates by the name of their metric, summed over the hosts that have a result.
        slowest: the number of the host with the lowest rate; None if the hosts that have a result
            have no rate in common.
        start_spread_s: the largest possible time between the first and the last start.
        together_share: the share of the time from the first start to the last end in which all
            hosts measured. If it is below 1, ``sums`` is more than all hosts get at the same time.
    """

    hosts: int
    parts: Sequence[HostPart]
    sums: Mapping[str, float] = field(default_factory=dict)
    slowest: int | None = None
    start_spread_s: float | None = None
    together_share: float | None = None

    @property
    def missing(self) -> Sequence[int]:
        """The numbers of the hosts that have no result."""
        return [part.host for part in self.parts if part.status != "done"]


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial as stored in a result.

    Attributes:
        id, kind, params, repeat: as in ``TrialSpec``.
        status: whether it is done, has failed or was skipped.
        metrics, cold: its figures and the state of the page cache. On several hosts they are from
            host 0, and they are empty if the trial failed on any host.
        reason: why it failed or was skipped.
        started_s: when it started, in seconds since 1970.
        seconds: its duration.
        time_zero_s: the moment in seconds since 1970 from which the ``time_s`` of its steps, spans
            and readings counts; 0 if it has none or was measured by an earlier version.
        hosts: the parts of all hosts, if several hosts ran it.
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


def _id_part(value: Any) -> str:
    """Return a parameter as a part of an id. The items of a list are joined by ``+``."""
    if isinstance(value, (list, tuple)):
        return "+".join(str(item) for item in value)
    return str(value)
