"""PURE. What loops move, a loader alone or a training loop, and how long they last."""

from __future__ import annotations

from dataclasses import dataclass, replace

from iobench.consumers.presets import PRESETS
from iobench.data.settings import AS_FILES, split_name
from iobench.forecast.bounds import UNKNOWN, Bounds, up_to
from iobench.forecast.facts import DataFacts, Facts
from iobench.forecast.predicted import Predicted
from iobench.forecast.rates import rates_of
from iobench.ladder import HELD_RUNGS
from iobench.loaders.own import BY_SAMPLE, SYNTHETIC
from iobench.loaders.rungs import MOST_THREADS
from iobench.requests import Requests, listing
from iobench.trial import Params

START_S = {"null": 0.5, "mock": 0.5, "raw": 1.0, "tf-data": 5.0, "mxnet-record": 4.0}
OTHER_START_S = 3.0
"""From the start of a trial to the first step that counts: imports, workers, the first batches.

Medians of the example report of this package, on two cores.
"""

FETCHED_BEFORE_S = 10.0
STREAMS_A_WORKER = 2

OPENING = Requests(gets=4)
"""That a process sends to open a data set: manifest, labels, table of samples."""

_WHOLE = frozenset({"raw", "torch-iterable", "tf-data", "mxnet-record", "dali"})


@dataclass(frozen=True, slots=True)
class Reading:
    """What a trial may read of its data; ``unit`` is the size of what one request brings."""

    bytes: Bounds
    unit: Bounds
    units: Bounds
    store: str
    is_amazon: bool
    opening: Requests
    unknown: tuple[str, ...]
    assumed: tuple[str, ...]

    def repeated(self, epochs: int) -> Reading:
        """The same so many times."""
        return replace(self, bytes=self.bytes.times(epochs), units=self.units.times(epochs))

    def over(
        self, streams: int, seconds: float, lasts: Bounds, start_s: float, *, once: bool = False
    ) -> Predicted:
        """From a store, for ``seconds`` by so many requests at a time; ``once``: one epoch."""
        rates = rates_of(is_amazon=self.is_amazon)
        window_s = seconds + FETCHED_BEFORE_S
        most = rates.most_requests(streams, window_s, self.unit.low)
        read = rates.most_bytes(streams, window_s) + streams * (self.unit.high or 0.0)
        if once and self.units.high is not None:
            most = min(most, self.units.high)
        if once and self.bytes.high is not None:
            read = min(read, self.bytes.high)
        if self.unit.high is not None:
            read = min(read, most * self.unit.high)
        opening = self.opening * (1 + streams)
        return Predicted(
            seconds=lasts,
            likely_s=seconds + start_s + 1.0,
            store_read=up_to(read),
            store=self.store,
            requests=(self.opening, opening + Requests(gets=int(most))),
            unknown=self.unknown,
            assumed=(*self.assumed, rates.words, _FETCHING),
        )


HELD_PER_S = 400.0
_HOLDING = (
    f"samples that are held in memory are read and prepared at {HELD_PER_S:g} a second before "
    "the loop"
)

DOWNLOADED_BYTES_PER_S = 100e6
_LISTED = 3.0  # objects of a data set for each shard of one format
_DOWNLOADING = (
    f"access file downloads {DOWNLOADED_BYTES_PER_S / 1e6:g} MB/s; tables beside shards have 250 "
    "bytes a sample or less"
)
_EPOCHS = ("how long a loader's epochs take: it depends on the loader",)

_FETCHING = (
    f"a loader's worker has {STREAMS_A_WORKER} requests under way, and begins at most "
    f"{FETCHED_BEFORE_S:g} s before the clock"
)


def read_from(name: str, facts: Facts, *, whole: bool) -> Reading:
    """Data by their name, read in whole shards or files, or sample by sample."""
    found = facts.data.get(name)
    if found is None:
        why = (f"what {name} holds: it could not be looked at",)
        where = "" if not split_name(name)[2] else "bucket"
        amazon = where in facts.stores and facts.stores[where].is_amazon
        return Reading(UNKNOWN, UNKNOWN, UNKNOWN, where, amazon, OPENING, why, ())
    is_files = split_name(name)[0] in AS_FILES
    by_object = whole or is_files
    return Reading(
        bytes=found.bytes,
        unit=found.object_bytes if by_object else found.sample_bytes,
        units=found.objects if by_object else found.samples,
        store=found.store,
        is_amazon=bool(found.store) and facts.stores[found.store].is_amazon,
        opening=_opening(found, is_files),
        unknown=() if found.bytes.high is not None else (f"how large {name} will be",),
        assumed=(),
    )


def _opening(found: DataFacts, is_files: bool) -> Requests:
    return listing(int(found.objects.high or 1)) if is_files and found.store else OPENING


def loader(params: Params, facts: Facts, timeout_s: float) -> Predicted:
    """A loader with nothing behind it; a cold one reads an epoch at most, or those it is told."""
    epochs: int | None = params.get("epochs")
    seconds = 0.0 if epochs else float(params["seconds"])
    start_s = START_S.get(params["loader"], OTHER_START_S)
    cold = params["cache"] == "cold"
    lasts = Bounds(0.0 if cold else seconds, timeout_s)
    whole_s, unknown = (None, _EPOCHS) if epochs else (seconds + start_s, ())
    if not params["data"]:
        return Predicted(lasts, whole_s, unknown=unknown, assumed=(_STARTS,))
    found = read_from(params["data"], facts, whole=params["loader"] in _WHOLE)
    if found.store and params.get("access") == "file":
        predicted = _downloaded(params, facts, lasts, whole_s)
    elif found.store and epochs:
        # Their number bounds what is read, whatever their time.
        read = found.repeated(epochs).over(_streams(params), timeout_s, lasts, start_s, once=True)
        tables = up_to((1 + _streams(params)) * _tables_bytes(params, facts))
        predicted = replace(read, store_read=read.store_read.plus(tables))
    elif found.store:
        predicted = found.over(_streams(params), seconds, lasts, start_s)
    else:
        predicted = Predicted(
            seconds=lasts,
            likely_s=whole_s,
            disk_read=up_to(found.repeated(epochs or 1).bytes.high),
            unknown=found.unknown,
            assumed=(*found.assumed, _STARTS, *_random(params["loader"])),
        )
    return _with(predicted, None, (*predicted.unknown, *unknown)) if epochs else predicted


def _downloaded(params: Params, facts: Facts, lasts: Bounds, loop_s: float | None) -> Predicted:
    """Every object once, to a disk; what is then read of it may come from the page cache."""
    found = read_from(params["data"], facts, whole=True)
    epochs = params.get("epochs", 1)
    many = found.units.high
    known = many is not None and found.bytes.high is not None
    tables = _tables_bytes(params, facts)
    download_s = (found.bytes.high or 0.0) / DOWNLOADED_BYTES_PER_S
    most = None
    if many is not None:
        most = (
            OPENING * (2 + _streams(params))
            + listing(int(_LISTED * many))
            + Requests(gets=int(many))
        )
    return Predicted(
        seconds=lasts,
        likely_s=loop_s + download_s if loop_s is not None and known else None,
        disk_read=up_to(found.repeated(epochs).bytes.high),
        disk_written=found.bytes.plus(up_to(tables)),
        store_read=found.bytes.plus(up_to(3 * tables)),  # once to copy, twice to look
        store=found.store,
        requests=(Requests(gets=int(found.units.low), lists=1), most),
        unknown=found.unknown,
        assumed=(*found.assumed, _STARTS, _DOWNLOADING),
    )


def _tables_bytes(params: Params, facts: Facts) -> float:
    """Manifest, labels and table of samples, at most: what opening a data set reads."""
    found = facts.data.get(params["data"])
    samples = found.samples.high if found is not None else None
    return 100_000.0 + 250.0 * (samples or 0.0)


def training(params: Params, facts: Facts, timeout_s: float) -> Predicted:
    """A training loop of so many steps an epoch; each reads no more than there is."""
    epochs = int(params.get("epochs", 1))
    likely_s, unknown = _loop_s(params)
    start_s = START_S.get(params["loader"], OTHER_START_S)
    lasts = Bounds(0.0, timeout_s)
    whole_s = None if likely_s is None else likely_s + start_s
    if not params["data"]:
        return Predicted(lasts, whole_s, unknown=unknown, assumed=(_STARTS,))
    # What is held in memory is read beforehand, sample by sample, and once.
    held = params.get("input") in HELD_RUNGS
    once = read_from(params["data"], facts, whole=params["loader"] in _WHOLE and not held)
    found = once if held else once.repeated(epochs)
    if held and whole_s is not None:
        whole_s += params["steps"] * params["batch_size"] / HELD_PER_S
    holding = (_HOLDING,) if held else ()
    if found.store and params.get("access") == "file":
        copied = _downloaded(params, facts, lasts, whole_s)
        return _with(copied, copied.likely_s, (*copied.unknown, *unknown))
    if found.store:
        streams = MOST_THREADS if held else _streams(params) * _ranks(params, facts)
        # The time of a loop is not known: its epochs bound it, whatever their time.
        over = found.over(streams, timeout_s, lasts, start_s, once=True)
        over = replace(over, assumed=(*over.assumed, *holding))
        return _with(over, whole_s, (*over.unknown, *unknown))
    return Predicted(
        seconds=lasts,
        likely_s=whole_s,
        disk_read=up_to(found.bytes.high),
        unknown=(*found.unknown, *unknown),
        assumed=(*found.assumed, _STARTS, *holding, *_random(params["loader"])),
    )


_STARTS = "a loop starts within 1 to 5 s, by its loader, beside the seconds that it measures"


def _with(found: Predicted, likely_s: float | None, unknown: tuple[str, ...]) -> Predicted:
    return replace(found, likely_s=likely_s, unknown=unknown)


def _streams(params: Params) -> int:
    """Requests at a time, of all processes that load."""
    processes = int(params.get("processes", 1))
    return STREAMS_A_WORKER * max(1, int(params["workers"])) * processes


def _ranks(params: Params, facts: Facts) -> int:
    """Processes that read: ranks have their own workers, and a part each of the same epoch."""
    devices = params.get("devices", 1)
    return max(1, facts.gpus) if devices == "all" else int(devices)


def _random(name: str) -> tuple[str, ...]:
    if name not in BY_SAMPLE:
        return ()
    return ("what read-ahead adds to reads of single samples is not counted",)


def _loop_s(params: Params) -> tuple[float | None, tuple[str, ...]]:
    """How long the device takes for its steps, where that is described."""
    rate = params.get("images_per_s")
    if params.get("preset") in PRESETS:
        rate = PRESETS[params["preset"]].images_per_s
    if rate:
        steps = params["steps"] * int(params.get("epochs", 1))
        return steps * params["batch_size"] / float(rate), ()
    if params["consumer"] == "null" and params["loader"] in SYNTHETIC:
        return 0.0, ()
    what = "the model and the device" if params["consumer"] != "null" else "the loader"
    return None, (f"how long a training loop of {params['group']} takes: it depends on {what}",)
