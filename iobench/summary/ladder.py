"""PURE. The ladder of each training loop, as the summary keeps it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from iobench.badges import short
from iobench.ladder import HOST_RUNGS, RUNGS, THREE, WORDS, Ladder, Rung, ladder, within
from iobench.loaders.own import FROM_MEMORY
from iobench.stats import Estimate
from iobench.summary.points import cold_label, figure
from iobench.trial import Trial

NOT_ASKED = "not asked for (training.inputs)"


def ladders(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """One entry a training loop of which a rung was measured, in the order of the trials.

    Estimates are of seconds a sample, ``share`` and ``stall_share`` of the time of the farthest
    rung. ``not_measured`` says why, for each rung that is missing.
    """
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.kind == "train":
            groups.setdefault(trial.params["group"], []).append(trial)
    found = (_entry(name, members) for name, members in groups.items())
    return [entry for entry in found if entry["rungs"]]


def _entry(group: str, trials: Sequence[Trial]) -> dict[str, Any]:
    by_input: dict[str, list[Trial]] = {}
    for trial in trials:
        by_input.setdefault(str(trial.params["input"]), []).append(trial)
    done = {
        name: [trial for trial in members if trial.status == "done"]
        for name, members in by_input.items()
    }
    found = ladder({name: _seconds(members) for name, members in done.items()})
    params = trials[0].params
    metrics = next((trial.metrics for trial in trials if trial.status == "done"), {})
    return {
        "group": group,
        **{key: params.get(key) for key in ("loader", "consumer", "workers", "pin_memory")},
        **{key: metrics.get(key) for key in ("device", "devices", "emulated")},
        "rungs": [_rung(rung, done[rung.rung]) for rung in found.rungs],
        "path": list(found.path),
        "farthest": found.path[-1] if found.path else None,
        "stall": _kept(found.stall),
        "stall_share": _kept(found.stall_share),
        "not_measured": _missing(found, by_input, str(params.get("loader", ""))),
    }


def largest(entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The rung on the way to the farthest that costs most and can be told from none.

    None where the ladder has no rung between the device and reading, since three tell what stalls
    tell, and where that rung has others in it that were not measured.
    """
    path = entry["path"]
    if not any(rung not in THREE for rung in path):
        return None
    told = [rung for rung in entry["rungs"] if rung["rung"] in path and _costs(rung)]
    most = max(told, key=lambda rung: float(rung["share"]["median"]), default=None)
    return most if most is not None and not most["within"] else None


def _costs(rung: Mapping[str, Any]) -> bool:
    return bool(rung["tells"] and rung["share"] and rung["share"]["median"] > 0)


def _seconds(trials: Sequence[Trial]) -> dict[int, float]:
    rates = {trial.repeat: trial.metrics.get("samples_per_s") for trial in trials}
    return {repeat: 1 / float(rate) for repeat, rate in rates.items() if rate}


def _rung(rung: Rung, trials: Sequence[Trial]) -> dict[str, Any]:
    return {
        "rung": rung.rung,
        "words": _words(rung, trials),
        "input": rung.rung,
        "samples_per_s": figure(trials, "samples_per_s"),
        "seconds_per_sample": _kept(rung.seconds),
        "label": cold_label(trials),
        "badge": short([trial.cold for trial in trials if trial.cold is not None]),
        "above": rung.above,
        "within": list(within(rung.rung, rung.above)) if rung.above else [],
        "part": _kept(rung.part),
        "share": _kept(rung.share),
        "tells": rung.tells,
    }


def _words(rung: Rung, trials: Sequence[Trial]) -> str:
    """What is real in it beside the rung above, and what else that was not measured by itself."""
    own = WORDS[rung.rung]
    if rung.rung == "copy":
        on_cpu = str(trials[0].metrics.get("device", "")).endswith(("thread", "threads"))
        pinned = "pinned" if trials[0].params.get("pin_memory") else "not pinned"
        own = "+ batch in host memory (CPU: no copy)" if on_cpu else f"{own} ({pinned})"
    more = (
        [other for other in within(rung.rung, rung.above) if other != "warm"] if rung.above else []
    )
    if not more:
        return own
    said = "all preparing" if tuple(more) == HOST_RUNGS else ", ".join(more)
    return f"+ {said}, {own.removeprefix('+ ')}"


def _kept(found: Estimate | None) -> dict[str, Any] | None:
    return None if found is None else asdict(found)


def _missing(found: Ladder, by_input: Mapping[str, Sequence[Trial]], loader: str) -> dict[str, str]:
    measured = {rung.rung for rung in found.rungs}
    return {
        rung: _why(rung, by_input.get(rung, ()), loader) for rung in RUNGS if rung not in measured
    }


def _why(rung: str, trials: Sequence[Trial], loader: str) -> str:
    reasons = dict.fromkeys(f"{trial.status}: {trial.reason}" for trial in trials)
    if reasons:
        return "; ".join(reasons)
    if rung not in THREE and loader not in FROM_MEMORY:
        return f"three rungs are what there is of loader {loader}"
    return NOT_ASKED
