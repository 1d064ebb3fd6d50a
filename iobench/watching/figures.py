"""PURE. A watched loader's steps as an outcome: rates, waits, and what is unknown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from iobench.machine.sampling import Columns, Samples
from iobench.stats import quantiles
from iobench.trial import Outcome
from iobench.watching.tally import MOST_STEPS, Tally

WAITING = (
    "waiting for data is the time that the loop spent in next() on the host, the start of each "
    "epoch included; a GPU may have been computing meanwhile what was handed to it before"
)
CEILING = (
    "what the device could take was not measured: that takes the same loop on data in its own "
    "memory (iobench run, training, inputs: synthetic)"
)
ONE_RUN = "one run of one script: no interval"
UNTOLD = "the samples of a batch could not be told: watch(loader, batch_size=N) tells them"
KILLED = "the script ended without a word: steps of its last second may be missing"


def outcome(
    tally: Tally,
    samples: Samples,
    *,
    step_cost_s: float,
    processors: int = 1,
    notes: Sequence[str] = (),
) -> Outcome:
    """Of a tally with at least one step that counts, on a machine of so many ``processors``."""
    origin_s = tally.origin_s or 0.0
    metrics = {**_rates(tally), **_waits(tally)}
    metrics |= {
        "harness_step_s": step_cost_s,
        "harness_share": _share(step_cost_s * tally.steps, tally.seconds),
        "sampling_core_share": samples.core_share,
        "sampling_notes": list(samples.notes),
        "notes": [*notes, *_notes(tally)],
    }
    meanwhile = within(samples.columns, origin_s, tally.ended_s)
    return Outcome(
        metrics={**metrics, **_meanwhile(meanwhile, processors)},
        series=_series(tally, origin_s),
        origin_s=origin_s,
        samples=meanwhile,
    )


def why_nothing(tally: Tally) -> str:
    """What is wrong with a tally that has no step that counts."""
    if tally.origin_s is None:
        return "no batch came through this loader: is it the one that the loop iterates over?"
    return "no step after the first was seen to end: nothing can be said of the loop"


def within(columns: Columns, begin_s: float, end_s: float) -> dict[str, Sequence[float | None]]:
    """Rows from ``begin_s`` to ``end_s``, timed from the former; empty columns left out."""
    times = columns.get("time_s", ())
    kept = [
        i for i, time_s in enumerate(times) if time_s is not None and begin_s <= time_s <= end_s
    ]
    cut = {name: [values[i] for i in kept] for name, values in columns.items()}
    filled = {name: values for name, values in cut.items() if any(v is not None for v in values)}
    if not kept:
        return {}
    return {
        **filled,
        "time_s": [time_s - begin_s for time_s in cut["time_s"] if time_s is not None],
    }


def _rates(tally: Tally) -> dict[str, Any]:
    metrics: dict[str, Any] = {}
    if not math.isnan(tally.samples):
        metrics |= {
            "samples_per_s": _share(tally.samples, tally.seconds),
            "samples": int(tally.samples),
        }
    return {**metrics, "seconds": tally.seconds, "steps": tally.steps, "epochs": tally.epochs}


def _waits(tally: Tally) -> dict[str, Any]:
    metrics: dict[str, Any] = {
        "wait_share": _share(tally.wait_s, tally.seconds),
        "time_to_first_batch_s": tally.first_batch_s,
        "first_step_s": tally.first_step_s,
    }
    if tally.starts:
        metrics["epoch_start_s"] = tally.start_wait_s / tally.starts
        metrics["epoch_start_share"] = _share(tally.start_wait_s, tally.seconds)
    if tally.idle_s is not None:
        metrics["device_wait_share"] = _share(tally.idle_s, tally.seconds)
    for name, column in (
        ("step_s", [step.step_s for step in tally.detail]),
        ("batch_wait_s", [step.wait_s for step in tally.detail]),
    ):
        metrics |= {f"{name}_{q}": value for q, value in quantiles(column).items()}
    return metrics


def _meanwhile(columns: Columns, processors: int) -> dict[str, float]:
    """Means over the loop: how busy all processors were, how busy by it, what the disks gave."""
    busy = [_mean(columns.get(f"cpu.{name}_share", ())) for name in ("user", "system", "steal")]
    read = _mean(columns.get("disk.read_bytes_per_s", ()))
    own = [_mean(columns.get(f"tree.{name}_cores", ())) for name in ("user", "system")]
    metrics = {}
    if None not in own:
        metrics["loop_cpu_share"] = sum(cores for cores in own if cores is not None) / processors
    if None not in busy:
        metrics["cpu_busy_share"] = sum(share for share in busy if share is not None)
    if read is not None:
        metrics["disk_read_mb_per_s"] = read / 1e6
    return metrics


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _series(tally: Tally, origin_s: float) -> Mapping[str, Sequence[float]]:
    """As of a training loop; what a device computed is not known, so that column is not there."""
    return {
        "step_end_s": list(accumulate(step.step_s for step in tally.detail)),
        "time_s": [step.ended_s - origin_s for step in tally.detail],
        "wait_s": [step.wait_s for step in tally.detail],
        "epoch": [step.epoch for step in tally.detail],
    }


def _notes(tally: Tally) -> list[str]:
    notes = [WAITING, CEILING, ONE_RUN]
    if tally.elsewhere_s > 0:
        notes.append(
            f"{tally.elsewhere_s:,.3g} s within its steps were whole passes over other watched "
            "loaders, such as validation: they are in none of its figures"
        )
    if math.isnan(tally.samples):
        notes.append(UNTOLD)
    if tally.steps > MOST_STEPS:
        notes.append(
            f"series and quantiles are of the last {MOST_STEPS:,} of {tally.steps:,} steps; "
            "shares and rates are of all"
        )
    return notes


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
