"""PURE. What the model says of configurations that were run, beside what they gave.

Held out is what no capacity was fitted to: training loops with real data, loaders over a cold disk
or a store, and each number of workers left out of its own law.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from iobench.loaders.own import UNDECODED
from iobench.stats import Estimate
from iobench.summary.points import by_point, cold_label
from iobench.trial import Trial
from iobench.whatif.capacities import Capacities, Rates, is_direct, rate_of
from iobench.whatif.laws import left_out
from iobench.whatif.predict import Part, Prediction, combined, fetched, predict
from iobench.whatif.setting import Setting, Source, of_loader, of_loop

ALLOWED = 0.10
"""Error from which on the model does not hold."""

_HELD = "decode"
_SOURCES: dict[str, Source] = {"warm": "warm", "cold": "cold", "store": "store", _HELD: "warm"}


@dataclass(frozen=True, slots=True)
class Check:
    """One configuration: predicted, and measured.

    ``scope`` is what an error here speaks about: a training loop, or a loader over one form of
    data. ``kind``: ``loop``, ``loader``, ``workers`` (left out of its own law) or ``store``.
    ``held``: the ladder's rung ``decode``, whose encoded samples lie in memory; to the model that
    is reading from a warm cache.
    """

    scope: str
    kind: str
    prediction: Prediction
    measured: Estimate
    held: bool = False

    @property
    def error(self) -> float | None:
        """Predicted / measured - 1; None without a prediction."""
        rate = self.prediction.rate
        return None if rate is None else rate.median / self.measured.median - 1

    @property
    def counts(self) -> bool:
        """Whether it bears on the model: nothing that it needs was left unmeasured."""
        return self.prediction.is_whole

    def lifted(self) -> dict[str, Any] | None:
        """What would be the limit if the part that is it were none, and at which rate.

        Of loops with workers; None where no other part is known.
        """
        found = self.prediction
        others = [part for part in found.parts if part.name != found.limited_by]
        if found.rate is None or not found.setting.workers or not others:
            return None
        rate, limited_by = combined(others, in_turn=False)
        gain = rate.median / found.rate.median
        return {"limited_by": limited_by, "predicted": asdict(rate), "times": gain}

    def as_dict(self) -> dict[str, Any]:
        """As ``result.json`` keeps it."""
        found = self.prediction
        return {
            "lifted": self.lifted() if self.kind == "loop" and self.counts else None,
            "scope": self.scope,
            "kind": self.kind,
            "configuration": {
                **found.setting.as_dict(),
                **({"input": _HELD} if self.held else {}),
            },
            "predicted": asdict(found.rate) if found.rate else None,
            "limited_by": found.limited_by,
            "parts": {part.name: part.rate.median for part in found.parts},
            "if_serial": found.if_serial,
            "missing": list(found.missing),
            "measured": asdict(self.measured),
            "error": self.error,
            "held_out": self.counts,
        }


def checks(trials: Sequence[Trial], known: Capacities) -> list[Check]:
    """Of every configuration that was run and has a prediction, or lacks a part of one."""
    return [*_of_loops(trials, known), *_of_loaders(trials, known), *_of_laws(known)]


def scope_of(setting: Setting) -> str:
    """The loop, or ``torch-map over shards``."""
    if setting.loop:
        return setting.loop
    return f"{setting.loader} over {setting.kind}" if setting.kind else setting.loader


def _of_loops(trials: Sequence[Trial], known: Capacities) -> Iterator[Check]:
    for params, repeats in by_point(trials, "train"):
        source, rate = _SOURCES.get(str(params["input"])), rate_of(repeats)
        if source is None or rate is None or not is_direct(params):
            continue
        # What was not shown to be cold is a loop of unknown storage.
        if source == "cold" and cold_label(repeats) not in ("cold", ""):
            continue
        devices = int(repeats[0].metrics.get("devices") or 1)
        setting = of_loop(params, source, devices)
        held = params["input"] == _HELD
        yield Check(setting.loop, "loop", predict(known, setting), rate, held)


def _of_loaders(trials: Sequence[Trial], known: Capacities) -> Iterator[Check]:
    """Those that read a cold disk or a store: their decoding was measured warm, reading alone."""
    for params, repeats in by_point(trials, "loader"):
        rate, label = rate_of(repeats), cold_label(repeats)
        remote = str(params.get("data", "")).endswith("@s3")
        if rate is None or not is_direct(params) or (label != "cold" and not remote):
            continue
        setting = of_loader(params, "store" if remote else "cold")
        if params["loader"] == "raw":
            if remote and (part := fetched(known, setting)) is not None:
                yield Check(scope_of(setting), "store", _of_part(setting, part), rate)
        elif params["loader"] not in UNDECODED and params.get("decode", True):
            yield Check(scope_of(setting), "loader", predict(known, setting), rate)


def _of_laws(known: Capacities) -> Iterator[Check]:
    for name, group in (("decode", known.decoded), ("disk", known.read), ("store", known.streamed)):
        for rates in group:
            for workers, rate in _left_out(rates).items():
                setting = rates.setting.changed(workers=workers)
                part = Part(name, Estimate(rate, rate, rate, 0.0, 1), "the other points")
                found = _of_part(setting, part)
                yield Check(scope_of(setting), "workers", found, rates.points[workers])


def _left_out(rates: Rates) -> dict[int, float]:
    points = {w: rate.median for w, rate in rates.points.items() if w > 0}
    return left_out(rates.law, points) if rates.law else {}


def _of_part(setting: Setting, part: Part) -> Prediction:
    rate, limited_by = combined([part], in_turn=False)
    return Prediction(setting, rate, limited_by, (part,), rate.median, ())
