"""PURE. Findings about watched loops: how much their input costs, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iobench.analysis.finding_remarks import remark_on
from iobench.analysis.finding_rules import (
    BUSY_SHARE,
    FINE_SHARE,
    IDLE_SHARE,
    LATE_BATCH_S,
    make_finding,
)
from iobench.analysis.input_cost import InputCost, input_cost
from iobench.analysis.loop_findings import outlier_findings
from iobench.results.numbers import percent, rough_number
from iobench.results.result import Finding
from iobench.results.statistics import estimate
from iobench.results.trial import Metrics, Trial


def watched_findings(trials: Sequence[Trial]) -> Iterator[Finding]:
    """Yield the findings of each watched loop."""
    for trial in trials:
        if trial.kind == "watch" and trial.status == "done":
            name = f"loop over {trial.params.get('loader', '')}"
            yield from _input_findings(name, trial.metrics)
            yield from _late_first_batch(name, trial.metrics)
            yield from _epoch_starts(name, trial.metrics)
            yield from outlier_findings(name, trial.metrics)


def _input_findings(name: str, metrics: Metrics) -> Iterator[Finding]:
    """Yield a finding if the input costs much, or if a replay showed that it costs little.

    How busy the CPUs were decides the cause.
    """
    cost = input_cost(metrics)
    if cost is None:
        return
    evidence = _cost_words(name, metrics, cost)
    share = cost.as_estimate
    if cost.by == "loss" and cost.grade == "fine":
        yield make_finding("slow-device", evidence, share=share)
    if cost.grade == "high":
        code = _cause_of_waiting(metrics)
        evidence += _cpu_words(metrics, code)
        yield make_finding(code, evidence, remark_on(code), share=share)


def _cause_of_waiting(metrics: Metrics) -> str:
    """Return the code of the cause, by how busy the CPUs were and by which programs."""
    busy_share = metrics.get("cpu_busy_share")
    if busy_share is None or IDLE_SHARE <= busy_share < BUSY_SHARE:
        return "waiting"
    if busy_share < IDLE_SHARE:
        return "waiting-workers"
    if metrics.get("loop_cpu_share", busy_share) < busy_share / 2:
        return "waiting-others"
    return "waiting-preparation"


def _cpu_words(metrics: Metrics, code: str) -> str:
    """Return how busy the CPUs were, and the figure that supports the cause."""
    busy_share = metrics.get("cpu_busy_share")
    text = "" if busy_share is None else f"; CPUs {percent(busy_share)} busy"
    mb_per_s = metrics.get("disk_read_mb_per_s")
    if code == "waiting-workers" and mb_per_s is not None:
        text += f", disks gave {mb_per_s:,.0f} MB/s"
    if code == "waiting-others":
        text += f", {percent(metrics['loop_cpu_share'])} by the loop and its workers"
    return text


def _cost_words(name: str, metrics: Metrics, cost: InputCost) -> str:
    """Return the figure by which a watched loop is graded, and how long the host waits."""
    host_share = metrics.get("wait_share")
    if cost.by == "loss":
        text = f"{name}: its loader costs {cost.text} of its rate"
        if host_share is not None:
            text += f"; it waits {percent(host_share)} of its time"
        return text
    subject = f"{name}: its GPU" if cost.by == "device" else f"{name}:"
    text = f"{subject} waits for data {cost.text} of its time"
    if cost.by == "device" and host_share is not None:
        text += f", the host {percent(host_share)}"
    return text


def _late_first_batch(name: str, metrics: Metrics) -> Iterator[Finding]:
    """Yield a finding if the first batch comes late.

    It must come after 10 s or more, and after at least 5 % of the time of all steps.
    """
    first_s = metrics.get("time_to_first_batch_s") or 0.0
    seconds = metrics.get("seconds") or 0.0
    if first_s >= LATE_BATCH_S and first_s >= FINE_SHARE * seconds:
        evidence = f"{name}: {first_s:.0f} s to the first batch, {seconds:.0f} s of steps"
        yield make_finding("late-first-batch", evidence, remark_on("watched-late-first-batch"))


def _epoch_starts(name: str, metrics: Metrics) -> Iterator[Finding]:
    """Yield a finding if the starts of epochs take a large share of the time."""
    share = metrics.get("epoch_start_share") or 0.0
    owner = "its"
    idle_share = metrics.get("device_wait_share")
    if idle_share is not None:
        # Runs of earlier versions lack the GPU's share of the starts. It is at most its idle time.
        share = metrics.get("device_epoch_start_share", min(share, idle_share))
        owner = "its GPU's"
    if share > FINE_SHARE:
        start_s = metrics.get("epoch_start_s") or 0.0
        evidence = (
            f"{name}: the starts of epochs take {percent(share)} of {owner} time, "
            f"{rough_number(start_s)} s each"
        )
        remark = remark_on("watched-epoch-starts")
        yield make_finding("epoch-starts", evidence, remark, share=estimate([share]))
