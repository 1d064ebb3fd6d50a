"""PURE. What training costs: each place that the loop read, and what would pay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iobench.cost.breakeven import Training, resizing, staging
from iobench.cost.prices import known
from iobench.cost.rates import Rate, loop_rates
from iobench.result import Result
from iobench.summary.training import leading, training


def cost(result: Result, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Of the loop that is named, else of which the verdict speaks; ``asked`` are the keys of
    ``CostSettings``.

    JSON values. ``rows``: an epoch from each place that was measured, in dollars by part;
    ``breakevens``: resizing beforehand, staging; ``missing``: prices that nobody told, with the
    key to give; ``unknown``: why there is nothing to say.
    """
    groups = training(result.trials)
    name = asked.get("group")
    group = leading([each for each in groups if name in (None, each["group"])])
    rates = loop_rates(result, group) if group else []
    prices = known(result, asked, {rate.side for rate in rates})
    epochs = int(asked.get("epochs") or 1)
    found: dict[str, Any] = {"epochs": epochs, "currency": prices.currency}
    samples = asked.get("samples") or _samples(rates)
    if not rates or not samples:
        why = "give cost.samples" if rates else "no training loop read stored data"
        if name is not None and not group:
            why = f"no training loop is called {name!r}"
        return {**found, "rows": [], "breakevens": [], "missing": [], "unknown": why}
    asked_of = Training(result, group, float(samples), epochs, prices)
    return {
        **found,
        "group": group["group"],
        "emulated": bool(group.get("emulated")),
        "samples": float(samples),
        "samples_given": asked.get("samples") is not None,
        "instance_usd_per_h": prices.hour_usd,
        "rows": [asked_of.epoch(rate) for rate in rates],
        "breakevens": [resizing(asked_of), staging(asked_of)],
        "basis": list(prices.basis),
        "missing": list(prices.missing),
        "unknown": "",
    }


def _samples(rates: list[Rate]) -> float | None:
    """Of the data that the loop reads."""
    return next((float(round(rate.samples)) for rate in rates if rate.samples), None)
