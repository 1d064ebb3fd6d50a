"""PURE. A training loop under each input: what it could take, what it got, where the rest went.

With ``T1`` seconds for the samples resident on the device, ``T3`` from a warm cache and ``T2``
from disk or store: preparation stall ``(T3 - T1) / T2``, fetch stall ``(T2 - T3) / T2`` (after
Mohan et al., "Analyzing and mitigating data stalls in DNN training", VLDB 2021, whose formulas
assume no overlap). ``au_ceiling`` is the rate achieved over the rate on resident data. Ratios
are taken within repeats, whose trials ran one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from iobench.badges import shown
from iobench.stats import estimate
from iobench.summary.points import cold_label, figure
from iobench.trial import Trial

# What a loop got, by preference: from the farthest that was measured.
_FARTHEST = ("store", "cold", "warm")


# What is done to each image: supplies of other images are no match for this loop.
_WORK = ("image_size", "augment", "normalise", "colour_jitter", "pca_noise")


def leading(groups: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The loop of which a run's verdict and first figures speak; empty where there is none.

    The first whose device was seen fed from its own memory, else the first.
    """
    known = (group for group in groups if group.get("au_ceiling"))
    return next(known, groups[0] if groups else {})


def training(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """One entry a group, in the order of the trials."""
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.kind == "train" and trial.status == "done":
            groups.setdefault(trial.params["group"], []).append(trial)
    return [_group(name, members) for name, members in groups.items()]


def _group(name: str, trials: Sequence[Trial]) -> dict[str, Any]:
    by_input: dict[str, dict[int, Trial]] = {}
    for trial in trials:
        by_input.setdefault(trial.params["input"], {})[trial.repeat] = trial
    farthest = next((source for source in _FARTHEST if source in by_input), None)
    achieved = list(by_input[farthest].values()) if farthest else []
    params, metrics = trials[0].params, trials[0].metrics
    real = next((trial for trial in trials if trial.params["data"]), trials[0])
    return {
        "group": name,
        **{key: params.get(key) for key in ("consumer", "model", "batch_size", "loader")},
        **{key: params.get(key) for key in ("workers", *_WORK)},
        "data": real.params["data"],
        **{key: metrics.get(key) for key in ("device", "devices", "precision", "emulated")},
        "input": farthest,
        "label": cold_label(achieved),
        "badge": shown([trial.cold for trial in achieved if trial.cold is not None]),
        "cold_proved": bool(achieved) and cold_label(achieved) == "cold",
        "cache_resident": any(t.cold is not None and t.cold.cache_resident for t in achieved),
        "consumes": _rate(by_input.get("synthetic")),
        "warm": _rate(by_input.get("warm")),
        "cold": _rate(by_input.get("cold")),
        "store": _rate(by_input.get("store")),
        "achieved": figure(achieved, "samples_per_s"),
        "au_mlperf": figure(achieved, "au_mlperf"),
        **_stalls(by_input, farthest),
    }


def _rate(trials: Mapping[int, Trial] | None) -> dict[str, Any] | None:
    return figure(list(trials.values()), "samples_per_s") if trials else None


def _stalls(
    by_input: Mapping[str, Mapping[int, Trial]], farthest: str | None
) -> dict[str, dict[str, Any] | None]:
    far = by_input.get(farthest or "", {})
    device, warm = by_input.get("synthetic", {}), by_input.get("warm", {})
    # Only what came from memory parts preparing from fetching.
    split = farthest in ("cold", "store") and all(_is_warm(trial) for trial in warm.values())
    return {
        "au_ceiling": _paired(lambda t1, t2: t1 / t2, device, far),
        "stall_fraction": _paired(lambda t1, t2: (t2 - t1) / t2, device, far),
        "preparation_stall": (
            _paired(lambda t1, t3, t2: (t3 - t1) / t2, device, warm, far) if split else None
        ),
        "fetch_stall": _paired(lambda t3, t2: (t2 - t3) / t2, warm, far) if split else None,
    }


def _is_warm(trial: Trial) -> bool:
    return trial.cold is None or (trial.cold.label == "warm" and not trial.cold.why)


def _paired(formula: Callable[..., float], *sides: Mapping[int, Trial]) -> dict[str, Any] | None:
    """``formula`` of seconds a sample, over the repeats in which every side has a rate."""
    rates = [
        {repeat: rate for repeat, t in side.items() if (rate := t.metrics.get("samples_per_s"))}
        for side in sides
    ]
    repeats = set.intersection(*(set(side) for side in rates))
    values = [formula(*(1 / side[repeat] for side in rates)) for repeat in sorted(repeats)]
    return asdict(estimate(values)) if values else None
