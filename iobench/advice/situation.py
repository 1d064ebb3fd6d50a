"""PURE. What a run says is used now, and all that it measured beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iobench.advice.entry import WORTH
from iobench.loaders.own import UNDECODED
from iobench.result import Result
from iobench.stats import Estimate, ratio
from iobench.summary.points import by_point, cold_label, in_pairs
from iobench.trial import Params, Trial
from iobench.whatif import Capacities, Prediction, Setting, measured, predict
from iobench.whatif.capacities import is_direct, rate_of
from iobench.whatif.setting import Source, of_loader, of_loop

_CONSUMER = ("consumer", "model", "precision", "preset", "images_per_s")
_FARTHEST: tuple[Source, ...] = ("store", "cold", "warm")
Repeats = Sequence[Trial]


@dataclass(frozen=True, slots=True)
class Situation:
    """Now, the model, and every loader alone.

    Attributes:
        now: the leading training loop fed from the farthest place; without loops the first loader
            of the config.
        repeats: its trials.
        place: ``disk`` or ``s3``: where its data lie.
        key: dotted, of what the config says of it: ``training.0`` or ``loaders.0``.
        alone: trials of loaders that decode, by setting.
        loops: trials of loops of the same device and model by setting, the group left out of it.
        holds: whether the model holds for ``now``; ``why_not`` says why it does not.
    """

    result: Result
    known: Capacities
    now: Setting
    repeats: Repeats
    place: str
    key: str
    alone: Mapping[Setting, Repeats]
    loops: Mapping[Setting, Repeats]
    holds: bool
    why_not: str

    @property
    def of(self) -> str:
        """The loop, or the loader and what it reads."""
        if self.now.loop:
            return self.now.loop
        return f"{self.now.loader} over {self.now.form}" if self.now.form else self.now.loader

    @property
    def rate(self) -> Estimate:
        """What it gets now."""
        found = rate_of(self.repeats)
        assert found is not None  # noqa: S101  only what has a rate is a situation
        return found

    @property
    def loader(self) -> Setting:
        """The loader of now, with nothing behind it."""
        return self.now.changed(loop="", devices=1)

    @property
    def sated(self) -> str:
        """That the loop gets what its device takes, to 2 %, in words; empty where it does not."""
        taken = self.known.loops.get(self.now.loop)
        rate = taken.rungs.get("synthetic") if taken is not None else None
        if rate is None or self.rate.median * WORTH < rate.median:
            return ""
        return (
            f"the loop gets {self.rate.median:,.0f} of the {rate.median:,.0f} samples/s that its "
            "device takes"
        )

    @property
    def shares_processors(self) -> bool:
        """Whether a loop computes on the processors that its workers use."""
        taken = self.known.loops.get(self.now.loop)
        return taken is not None and taken.on_processor

    @property
    def readers(self) -> int:
        """Processes that share the shards: workers of all ranks."""
        return max(self.now.all_workers, 1)

    @property
    def has_gpu(self) -> bool:
        """Whether the machine has one."""
        return bool(self.result.environment.get("gpus"))

    @property
    def limited_by(self) -> str:
        """The part that decides now; empty where the model does not hold or lacks a part.

        A loader alone, from the page cache, decodes and does nothing else.
        """
        found = self.predicted(self.now)
        alone = not self.now.loop and self.now.source == "warm"
        return found.limited_by if found.is_whole and (alone or self.holds) else ""

    def predicted(self, setting: Setting) -> Prediction:
        """By the model, whether it holds or not."""
        return predict(self.known, setting)

    def _decoding(self, setting: Setting) -> Repeats:
        return self.alone.get(_of_loader(setting), ())

    def gain_of(self, setting: Setting) -> tuple[Estimate, str] | None:
        """How many times the rate of now, and on which basis.

        Measured where the setting itself was; else by the model, where it holds and lacks nothing:
        the ratio of two predictions, in which what both are off by cancels. Where decoding limits
        both, it is that of their loaders within rounds, in which a machine's moods cancel too.
        """
        there = self.loops if setting.loop else self.alone
        found = paired(there.get(setting.changed(loop=""), ()), self.repeats)
        if found is not None:
            return found, "measured"
        then, now = self.predicted(setting), self.predicted(self.now)
        if not (self.holds and then.is_whole and now.is_whole and then.rate and now.rate):
            return None
        if then.limited_by == now.limited_by == "decode":
            sides = (self._decoding(setting), self._decoding(self.now))
            if (rounds := paired(*sides)) is not None:
                return rounds, "model"
        low, high = then.rate.low / now.rate.high, then.rate.high / now.rate.low
        repeats = min(then.rate.repeats, now.rate.repeats)
        return Estimate(then.rate.median / now.rate.median, low, high, 0.0, repeats), "model"


def _of_loader(setting: Setting) -> Setting:
    """The loader of a loop alone, from a warm cache: what decodes there."""
    return setting.changed(loop="", devices=1, source="warm")


def paired(trials: Repeats, others: Repeats) -> Estimate | None:
    """Times the rate of ``others``, within rounds; None where they have none together."""
    pairs = [pair for pair in in_pairs(trials, others, "samples_per_s") if pair[1] > 0]
    return ratio([a for a, _ in pairs], [b for _, b in pairs]) if pairs else None


def situation(
    result: Result, model: Mapping[str, Any], group: str | None = None
) -> Situation | None:
    """Of a run with a training loop over data, or a loader that decodes; else None.

    ``model`` is what ``whatif`` says of the run; ``group`` is the loop that is meant, where it is
    another than the leading one.
    """
    found = _loop(result, group) or (_loader(result) if group is None else None)
    if found is None:
        return None
    now, repeats, key = found
    scopes = {str(scope["scope"]): scope for scope in model.get("scopes", ())}
    scope = scopes.get(now.loop, {}) if now.loop else _of_loader_scope(scopes, now)
    holds = bool(scope.get("holds"))
    why = str(scope.get("why") or "no configuration was held out to test the model")
    return Situation(
        result=result,
        known=measured(result.trials, result.environment),
        now=now,
        repeats=repeats,
        place=str(repeats[0].params.get("data", "")).partition("@")[2],
        key=key,
        alone=dict(_alone(result.trials)),
        loops=dict(_loops(result.trials, _consumer(repeats))) if now.loop else {},
        holds=holds,
        why_not="" if holds else why,
    )


def _of_loader_scope(scopes: Mapping[str, Any], now: Setting) -> Mapping[str, Any]:
    found: Mapping[str, Any] = scopes.get(f"{now.loader} over {now.kind}" if now.kind else "", {})
    return found or scopes.get(now.loader, {})


def _loop(result: Result, wanted: str | None) -> tuple[Setting, Repeats, str] | None:
    """That which is wanted, else the first whose device was seen fed from its own memory, else the
    first."""
    order = list(
        dict.fromkeys(str(t.params.get("group")) for t in result.trials if t.kind == "train")
    )
    points = by_point(result.trials, "train")
    resident = {str(params["group"]) for params, _ in points if params["input"] == "synthetic"}
    among = [group for group in order if wanted in (None, group)]
    for group in sorted(among, key=lambda group: (group not in resident, order.index(group))):
        for source in _FARTHEST:
            for params, repeats in points:
                is_it = str(params["group"]) == group and params["input"] == source
                if is_it and is_direct(params) and rate_of(repeats):
                    setting = of_loop(params, source, _devices(repeats))
                    return setting, repeats, f"training.{order.index(group)}"
    return None


def _loader(result: Result) -> tuple[Setting, Repeats, str] | None:
    for setting, repeats in _alone(result.trials):
        return setting, repeats, "loaders.0"
    return None


def _alone(trials: Sequence[Trial]) -> Iterator[tuple[Setting, Repeats]]:
    for params, repeats in by_point(trials, "loader"):
        if params["loader"] in UNDECODED - {"mock"} or not is_direct(params):
            continue
        source = _source(params, cold_label(repeats))
        if source is not None and rate_of(repeats) is not None:
            yield of_loader(params, source), repeats


def _loops(trials: Sequence[Trial], consumer: str) -> Iterator[tuple[Setting, Repeats]]:
    for params, repeats in by_point(trials, "train"):
        if params["input"] not in _FARTHEST or _consumer(repeats) != consumer:
            continue
        if is_direct(params) and rate_of(repeats) is not None:
            setting = of_loop(params, params["input"], _devices(repeats))
            yield setting.changed(loop=""), repeats


def _consumer(repeats: Repeats) -> str:
    """What takes the batches: loops that differ in it are not compared."""
    first = repeats[0]
    return repr([first.metrics.get("device"), *(first.params.get(key) for key in _CONSUMER)])


def _devices(repeats: Repeats) -> int:
    return int(repeats[0].metrics.get("devices") or 1)


def _source(params: Params, label: str) -> Source | None:
    """What a loader's data came from; None where it was asked cold and not shown so."""
    if str(params.get("data", "")).endswith("@s3"):
        return "store"
    if params.get("cache", "warm") == "cold":
        return "cold" if label == "cold" else None
    return "warm"
