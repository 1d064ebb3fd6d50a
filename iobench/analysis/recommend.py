"""PURE. What to change, best first, each with its predicted gain.

A change is one setting of the loader or one form of the data. Its gain is measured where loops with
and without it ran; else it is the ratio of two predictions, in which what both are off by cancels.
The best remedy of the primary cause is taken, then the best change on top of it, until none gains
5 %. A prediction counts only where the same model, without having seen the loop, comes within 20 %
of what the loop got.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from dataprep.formats import DEFAULT_FORMAT
from iobench.analysis.capacity import Capacities, Prediction, Setting, setting_of
from iobench.analysis.curve import FEWEST_COUNTS, REACH, at_workers, extrapolated
from iobench.analysis.loops import FARTHEST, Loop
from iobench.analysis.points import Repeats, kept, rate_of, times
from iobench.loaders.own import FORMAT_READ, GIVE_UINT8
from iobench.numbers import size
from iobench.result import Result
from iobench.stats import Estimate

WORTH = 1.05
"""Smallest gain of a change that is recommended."""
_ABOVE_1 = 1.005
"""Lower end of an interval that does not reach 1 in the two decimals that are shown."""
_EQUAL = 1.02
"""Rates closer than this are equal: the first of them is taken."""
MEMORY_SHARE = 0.8
"""Share of the machine's memory that workers may take."""
ALLOWED = 0.10
"""Error of a prediction within which the model holds."""
_USABLE = 0.20
_EASIER = 1.05
"""A change that is easier to make comes first if the better one gains less than so much more."""
_CHANGE_TRAINING = ("colour_jitter", "pca_noise")
"""Settings that change what the model sees: only proposed where they are a remedy."""
NORMALISE_ON_DEVICE = "Hand over uint8 and normalise on the device: a quarter of the bytes"
_MAKES_SHARDS = {"sharding", "resize", "shard_size"}
_UNSIZED = {"photos", "originals"}

Basis = Literal["measured", "predicted", "not predicted"]


@dataclass(frozen=True, slots=True)
class Recommendation:
    """One change.

    Attributes:
        setting: what it is about, such as ``workers``.
        action: what to do, in words.
        gain: times the rate with all recommendations before it; None where it is not predicted.
        basis: how the gain is known.
        rate: samples/s then.
        limit: what limits then.
        config: dotted keys of the run's config, with their values.
        command: the command to run; empty where a key is all.
        code: the same in a training script.
        value, now: the setting's values.
        why: evidence, or why no gain is predicted.
    """

    setting: str
    action: str
    gain: Estimate | None = None
    basis: Basis = "not predicted"
    rate: float | None = None
    limit: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""
    code: str = ""
    value: Any = None
    now: Any = None
    why: str = ""

    def as_dict(self) -> dict[str, Any]:
        """As ``result.json`` stores it."""
        return {**asdict(self), "config": dict(self.config)}


@dataclass(frozen=True, slots=True)
class Check:
    """A measured loop, and what loaders and device alone predict for it."""

    group: str
    setting: Setting
    prediction: Prediction
    measured: Estimate

    @property
    def error(self) -> float | None:
        """Predicted / measured - 1; None without a prediction."""
        rate = self.prediction.rate
        return None if rate is None else rate.median / self.measured.median - 1

    def as_dict(self) -> dict[str, Any]:
        """As ``result.json`` stores it."""
        return {
            "group": self.group,
            "configuration": self.setting.as_dict(),
            "predicted": kept(self.prediction.rate),
            "limited_by": self.prediction.limit,
            "missing": list(self.prediction.missing),
            "measured": kept(self.measured),
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class Situation:
    """The current setting, and everything that was measured.

    ``key`` is the dotted key of the config that describes it; ``rate`` what it gets.
    """

    result: Result
    known: Capacities
    now: Setting
    repeats: Repeats
    rate: Estimate
    key: str
    loop: Loop | None
    error: float | None

    @property
    def is_usable(self) -> bool:
        """Whether predictions may be used: they were near this loop, or no loop tests them.

        A device that computes on the CPUs of its workers is not modelled without a test.
        """
        if self.error is None:
            return self.loop is None or not self.loop.on_processors
        return abs(self.error) <= _USABLE

    def limit(self) -> str:
        """The part that is the limit now; empty if the model cannot say."""
        found = self.known.predict(self.now)
        return found.limit if found.rate is not None and self.is_usable else ""


@dataclass(frozen=True, slots=True)
class _Change:
    """A candidate: the setting after it, and how to make it."""

    setting: str
    to: Setting
    action: str
    value: Any
    now: Any
    effort: int
    config: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""
    code: str = ""


def situation(result: Result, known: Capacities, loop: Loop | None) -> Situation | None:
    """The situation of a loop with data, else of the first loader; None without both."""
    if loop is not None:
        source = next((one for one in FARTHEST if one in loop.inputs), None)
        if source is None or (rate := loop.rate(source)) is None:
            return None
        now = setting_of(loop.inputs[source][0].params, source, loop.devices)  # type: ignore[arg-type]
        error = _check(loop, known, source).error
        repeats = loop.inputs[source]
        return Situation(result, known, now, repeats, rate, f"training.{loop.index}", loop, error)
    for setting, repeats in known.alone.items():
        if (rate := rate_of(repeats)) is not None:
            return Situation(result, known, setting, repeats, rate, "loaders.0", None, None)
    return None


def checks(loops: Sequence[Loop], of: Mapping[str, Capacities]) -> list[Check]:
    """Each loop over data, and what loaders and device alone predict for it."""
    return [
        _check(loop, of[loop.group], source)
        for loop in loops
        for source in FARTHEST
        if source in loop.inputs and loop.rate(source) is not None
    ]


@dataclass(frozen=True, slots=True)
class Advice:
    """What to change, and what would have no effect.

    ``without_effect`` are settings whose best other value gains less than 5 %, or not for certain;
    ``not_measured`` those of which the run tells nothing.
    """

    changes: tuple[Recommendation, ...] = ()
    without_effect: tuple[str, ...] = ()
    not_measured: tuple[str, ...] = ()


def advise(found: Situation, remedies: Sequence[str] = ()) -> Advice:
    """The changes that gain, each on top of those before.

    Settings in ``remedies``, which can remedy the primary cause, come before all others.
    """
    made: list[Recommendation] = []
    now, rate, done = found.now, found.rate.median, set[str]()
    judged: set[str] = set()
    while True:
        gains = []
        for change in _best_values(found, now, remedies):
            gained = gain_of(found, now, change.to)
            judged.add(change.setting)
            if change.setting not in done and gained is not None:
                gains.append((gained, change))
        good = [pair for pair in gains if is_worth(pair[0][0])]
        if not good:
            break
        good = [pair for pair in good if pair[1].setting in remedies] or good
        most = max(gain.median for (gain, _), _ in good)
        near = [pair for pair in good if pair[0][0].median * _EASIER >= most]
        (gain, basis), change = min(near, key=lambda pair: (pair[1].effort, -pair[0][0].median))
        rate *= gain.median
        predicted = found.known.predict(change.to)
        made.append(
            Recommendation(
                *(change.setting, change.action, gain, basis, rate),
                limit=predicted.limit,
                config=change.config,
                command=change.command,
                code=change.code,
                value=change.value,
                now=change.now,
                why=_why(found, change.to, basis, predicted.basis),
            )
        )
        now = change.to
        # Shards are written once: another form of the data comes in place of this one.
        done |= _MAKES_SHARDS if change.setting in _MAKES_SHARDS else {change.setting}
    changes = (*made, *_more_processors(found, now, rate))
    settings = _settings_of(found)
    chosen = {change.setting for change in changes}
    return Advice(
        changes,
        tuple(name for name in settings if name in judged - chosen),
        tuple(name for name in settings if name not in judged),
    )


def is_worth(gain: Estimate) -> bool:
    """Whether a gain is at least 5 % and its interval does not reach 1."""
    return gain.median >= WORTH and gain.low >= _ABOVE_1


def counts_of(known: Capacities, setting: Setting) -> list[int]:
    """The numbers of workers of each device with which this loader was measured, in order."""
    counts = set()
    for measured in (*known.alone, *known.loops):
        same = (measured.loader, measured.kind) == (setting.loader, setting.kind)
        if same and measured.all_workers % setting.devices == 0:
            counts.add(measured.all_workers // setting.devices)
    return sorted(counts - {0})


def _why(found: Situation, to: Setting, basis: Basis, seen: str) -> str:
    if basis == "measured":
        return "loops with both were run"
    taken, memory = found.known.memory_of(to), found.known.memory_bytes
    if to.workers == found.now.workers or not taken or not memory:
        return seen
    return f"{seen}; takes about {size(taken)} of {size(memory)} of memory"


def _settings_of(found: Situation) -> list[str]:
    """Settings that this loader has."""
    now, named = found.now, ["workers", "prefetch"]
    if now.packing in ("photos", "files"):
        named.append("sharding")
    if now.packing in _UNSIZED or now.packing == "shards":
        named.append("resize")
    if now.packing in ("shards", "originals") and now.loader != "torch-map":
        named.append("shard_size")
    if now.source == "store":
        named.append("stage")
    if now.loader == "torch-map":
        named.append("loader")
    if found.loop is not None and found.loop.on_gpu:
        named.append("pin_memory")
    if found.loop is not None and hands_over_float32(found.loop):
        named.append("normalise")
    return named


def gain_of(found: Situation, now: Setting, then: Setting) -> tuple[Estimate, Basis] | None:
    """Times the rate of ``now``; None where it was not measured and cannot be predicted."""
    known = found.known
    there = known.loops if found.loop is not None else known.alone
    before = found.repeats if now == found.now else there.get(now, ())
    measured = times(there.get(then, ()), before)
    if measured is not None:
        return measured, "measured"
    if not found.is_usable:
        return None
    after, current = known.predict(then), known.predict(now)
    if after.rate is None or current.rate is None:
        return None
    if after.limit == current.limit == "decode" and found.loop is not None:
        one, other = (
            known.alone.get(side.changed(source="warm", devices=1), ()) for side in (then, now)
        )
        if (rounds := times(one, other)) is not None:
            return rounds, "predicted"
    base = current.rate
    if after.limit == "device" and now == found.now:
        base = found.rate  # the device's own rate is not off by what the loader's is
    low, high = after.rate.low / base.high, after.rate.high / base.low
    off = abs(found.error or 0.0)
    repeats = min(after.rate.repeats, base.repeats)
    middle = after.rate.median / base.median
    return Estimate(
        middle, min(low, middle / (1 + off)), max(high, middle * (1 + off)), 0, repeats
    ), "predicted"


def times_words(gain: Estimate) -> str:
    """``1.60 times (1.45 to 1.76)``."""
    if gain.low < gain.high:
        return f"{gain.median:.2f} times ({gain.low:.2f} to {gain.high:.2f})"
    return f"{gain.median:.2f} times"


def _check(loop: Loop, known: Capacities, source: str) -> Check:
    repeats = loop.inputs[source]
    setting = setting_of(repeats[0].params, source, loop.devices)  # type: ignore[arg-type]
    rate = rate_of(repeats)
    assert rate is not None  # noqa: S101  callers ask for loops with a rate
    return Check(loop.group, setting, known.predict(setting, from_loops=False), rate)


def _best_values(found: Situation, now: Setting, remedies: Sequence[str]) -> Iterator[_Change]:
    """The best value of each setting: the first that comes within 2 % of the best."""
    by_setting: dict[str, list[_Change]] = {}
    for change in _candidates(found, now):
        if change.setting in _CHANGE_TRAINING and change.setting not in remedies:
            continue
        by_setting.setdefault(change.setting, []).append(change)
    for changes in by_setting.values():
        rates = []
        for change in changes:
            gained = gain_of(found, now, change.to)
            if gained is not None:
                rates.append((gained[0].median, change))
        if rates:
            best = max(rate for rate, _ in rates)
            yield next(change for rate, change in rates if rate * _EQUAL >= best)


def _candidates(found: Situation, now: Setting) -> Iterator[_Change]:
    """Changes that are possible for this loader; of a setting the preferred value first."""
    yield from _workers(found, now)
    yield from _varied(found, now)
    yield from _normalised_on_the_device(found, now)
    yield from _loaders(found, now)
    yield from _staged(found, now)
    yield from _forms(found, now)


def _workers(found: Situation, now: Setting) -> Iterator[_Change]:
    known = found.known
    counts = counts_of(known, now)
    numbers = set(counts)
    if len(counts) >= FEWEST_COUNTS:
        numbers.add(_most_workers(known, now, REACH * counts[-1]))
    for number in sorted(numbers - {0, now.workers}):
        if (
            number < now.workers
            and found.loop is not None
            and known.loops.get(now.changed(workers=number)) is None
        ):
            continue  # fewer bring nothing, unless loops have shown it
        yield _Change(
            "workers",
            now.changed(workers=number),
            f"Use {number} loader worker{'s' * (number != 1)} instead of {now.workers}",
            *(number, now.workers, 0),
            config={f"{found.key}.workers": number},
            code=_script(now, f"num_workers={number}"),
        )


def _most_workers(known: Capacities, now: Setting, most: int) -> int:
    """The largest number of workers to propose: within CPUs, if these decide, and memory."""
    if now.source != "store" and known.processors:
        most = min(most, max(1, int(known.processors) // now.devices))
    limit = MEMORY_SHARE * known.memory_bytes if known.memory_bytes else math.inf
    measured = max(counts_of(known, now))
    while most > measured and (known.memory_of(now.changed(workers=most)) or 0.0) > limit:
        most -= 1
    return most


def _varied(found: Situation, now: Setting) -> Iterator[_Change]:
    """Prefetch, pinned memory and augmentations, at values that were measured."""
    known, work = found.known, dict(now.work)
    for name in _CHANGE_TRAINING:
        if work.get(name):
            yield _Change(
                name,
                now.changed(work=tuple({**work, name: False}.items())),
                f"Leave out {name.replace('_', ' ')}",
                *(False, True, 1),
                config={f"{found.key}.{name}": False},
            )
    table = known.loops if found.loop is not None else known.alone
    for setting in (*table, *known.alone):
        if setting.prefetch != now.prefetch:
            number = setting.prefetch
            yield _Change(
                "prefetch",
                now.changed(prefetch=number),
                f"Prefetch {number} batches a worker instead of {now.prefetch}",
                *(number, now.prefetch, 0),
                config={f"{found.key}.prefetch": number},
                code=_script(now, f"prefetch_factor={number}"),
            )
        on_gpu = found.loop is not None and found.loop.on_gpu
        if on_gpu and setting.pin_memory and not now.pin_memory:
            yield _Change(
                "pin_memory",
                now.changed(pin_memory=True),
                "Copy batches from pinned memory",
                *(True, False, 0),
                config={f"{found.key}.pin_memory": True},
                code=_script(now, "pin_memory=True"),
            )


def _normalised_on_the_device(situation: Situation, now: Setting) -> Iterator[_Change]:
    """A loader that hands over float32 may hand over uint8, which the device normalises.

    A device that is the CPU takes time to normalise, which no loader measured alone shows. There
    the change is proposed only if a loop with it was measured.
    """
    loop = situation.loop
    if loop is None or not hands_over_float32(loop):
        return
    work = dict(now.work)
    uint8 = now.changed(work=tuple({**work, "normalise": False}.items()))
    if not work["normalise"] or (loop.on_processors and uint8 not in situation.known.loops):
        return
    yield _Change(
        "normalise",
        uint8,
        NORMALISE_ON_DEVICE,
        *("device", "host", 1),
        config={f"{situation.key}.normalise_on": "device"},
        code="dataprep.normalise(images)",
    )


def hands_over_float32(loop: Loop) -> bool:
    """Whether the loop's loader normalises images that it could hand over as uint8."""
    trains_in_torch = loop.params.get("consumer") not in ("tensorflow", "mxnet")
    gives_uint8 = loop.params.get("loader") in GIVE_UINT8
    return trains_in_torch and gives_uint8 and bool(loop.params.get("normalise", True))


def _loaders(found: Situation, now: Setting) -> Iterator[_Change]:
    """``torch-map``, which reads records at random, may become ``torch-iterable``."""
    if now.loader == "torch-map":
        yield _Change(
            "loader",
            now.changed(loader="torch-iterable"),
            "Read shards in sequence instead of single records",
            *("torch-iterable", now.loader, 0),
            config={f"{found.key}.loader": "torch-iterable"},
            code="dataprep.to_torch(dataset, iterable=True, batch_size=...)",
        )


def _staged(found: Situation, now: Setting) -> Iterator[_Change]:
    """Shards on a store may be copied to a local disk first."""
    if now.source != "store" or now.packing not in ("shards", "originals"):
        return
    data = found.result.config.get("data") or {}
    output = data.get("shards") or "OUTPUT"
    measured = [
        source
        for source in ("cold", "warm")
        if now.changed(source=source) in found.known.loops
        or found.known.predict(now.changed(source=source)).rate is not None
    ]
    for source in measured[:1]:
        yield _Change(
            "stage",
            now.changed(source=source),
            "Copy the shards to a local disk before training",
            *("local disk", "store", 1),
            config={"data.shards": "DEST", f"{found.key}.inputs": f"[synthetic, {source}]"},
            command=f"dataprep stage {output} DEST",
        )


def _forms(found: Situation, now: Setting) -> Iterator[_Change]:
    """The same images packed, resized or in shards of another size, as loaders have read them."""
    data: Mapping[str, Any] = found.result.config.get("data") or {}
    family = now.loader.partition("-")[0]
    seen: dict[tuple[str, str], Setting] = {}
    for setting in (*found.known.alone, *found.known.loops):
        follows = setting.loader == now.loader or (
            now.loader.endswith("-folder") and setting.loader.partition("-")[0] == family
        )
        if follows and setting.work == now.work and setting.form != now.form:
            seen.setdefault((setting.loader, setting.form), setting)
    candidates = [now.changed(loader=s.loader, form=s.form) for s in seen.values()]
    candidates.sort(key=lambda to: -(_side(to, data) or 0))  # no pixels are given up for nothing
    for to in candidates:
        yield from _form(found, now, to, data)


def _form(
    found: Situation, now: Setting, to: Setting, data: Mapping[str, Any]
) -> Iterator[_Change]:
    side, before = _side(to, data), _side(now, data)
    if to.packing not in ("shards", "originals"):
        return  # dataprep writes shards
    config = {f"{found.key}.loader": to.loader, f"{found.key}.data": to.form}
    record_format = FORMAT_READ.get(to.loader, DEFAULT_FORMAT)
    formats = "" if record_format == DEFAULT_FORMAT else f" --format {record_format}"
    command = f"dataprep shard --source {data.get('source') or 'SOURCE'} --output OUTPUT{formats}"
    if side != before and side is not None:
        if data.get("shards") or side < now.image_size:
            return  # what given shards were made of is not known, and images would grow
        what = f"Store images at {side} pixels" + (f" instead of {before}" if before else "")
        packs = "" if now.packing in ("shards", "originals") else ", packed into shards"
        yield _Change(
            *("resize", to, f"{what}{packs}", side, before, 2),
            config=config,
            command=f"{command} --size {side}",
        )
    elif now.packing in ("photos", "files"):
        yield _Change(
            *("sharding", to, "Pack the images into shards", True, False, 2),
            config=config,
            command=command + (f" --size {side}" if side else ""),
        )
    elif to.form.endswith("MB") and to.loader not in ("torch-map",):
        size = to.form.partition("-")[2]
        now_size = now.form.partition("-")[2] or f"{int(data.get('shard_size') or 0) / 1e6:.0f}MB"
        yield _Change(
            *("shard_size", to, f"Write shards of {size}", size, now_size, 2),
            config=config,
            command=f"{command} --shard-size {size}",
        )


def _side(setting: Setting, data: Mapping[str, Any]) -> int | None:
    """Short side of the stored images in pixels; None if they have the source's size."""
    if setting.packing in _UNSIZED or data.get("shards"):
        return None
    return setting.side or data.get("size")


def _script(now: Setting, argument: str) -> str:
    return f"DataLoader({argument})" if now.loader.startswith("torch") else ""


def _more_processors(found: Situation, now: Setting, rate: float) -> Iterator[Recommendation]:
    """More CPUs, if decoding is the limit and all CPUs have a worker.

    The gain comes from the curve of workers up to the CPUs, of which each had a CPU of its own. It
    needs as many measured counts as any extrapolation, and reaches no further.
    """
    known, takes = found.known, found.known.takes
    if found.loop is None or takes is None or not known.processors or not found.is_usable:
        return
    there = int(known.processors)
    if known.predict(now).limit != "decode" or now.all_workers < there:
        return
    curve = {n: point for n, point in known.curve(now).items() if 0 < n <= there}
    base = at_workers(curve, there, None)
    if base is None or len(curve) < FEWEST_COUNTS:
        return
    rates = {n: extrapolated(curve, n) for n in range(there + 1, REACH * max(curve) + 1)}
    predicted = {n: point for n, point in rates.items() if point is not None}
    enough = [n for n, point in predicted.items() if point.median >= takes.median]
    wanted = min(enough, default=max(predicted, default=0))
    if not wanted:
        return
    after = predicted[wanted]
    most = takes.median / rate
    gain = Estimate(
        min(after.median / base.median, most),
        min(after.low / base.high, most),
        min(after.high / base.low, takes.high / rate),
        0.0,
        after.repeats,
    )
    if not is_worth(gain):
        return
    about = f"about {wanted} for this device" if enough else f"{wanted} or more"
    yield Recommendation(
        "processors",
        f"Use a machine with more CPUs: {about} instead of {known.processors:g}",
        gain,
        "predicted",
        rate * gain.median,
        limit="device" if enough else "decode",
        value=wanted,
        now=known.processors,
        why=f"the curve of {', '.join(map(str, sorted(curve)))} workers on this machine",
    )
