"""PURE. Findings about the measurement itself: how far its figures can be trusted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dataprep.message_text import counted
from iobench.analysis.finding_remarks import remark_on
from iobench.analysis.finding_rules import ENOUGH_REPEATS, make_finding
from iobench.analysis.loops import Loop
from iobench.analysis.repeats import Repeats, by_settings, is_scattered, metric_values, rate_metric
from iobench.data.existing import folder_key
from iobench.machine.storage_kinds import kind_name, reach
from iobench.results.numbers import percent, precise_number
from iobench.results.result import Finding, Result
from iobench.results.trial import Trial
from iobench.results.wording import params_words

_REACH_FINDINGS = {
    "memory": "target-in-memory",
    "layers": "target-in-layers",
    "network": "target-over-network",
}
"""The code of the finding about a target, by how its storage is reached."""
_MAX_OVERHEAD = 0.01
"""Maximum share of a step, or of a CPU, that the measurement itself may take."""
_MIN_SAMPLED_S = 10
"""Minimum duration of a run for a finding about sampling. In a shorter run, most of the sampling
time is spent on opening files."""
_NFS_KINDS = ("nfs", "efs", "fsx-nfs")
"""Kinds of storage that are mounted by NFS."""
_LITTLE_READ_AHEAD_KB = 128
"""Up to this value of ``read_ahead_kb``, NFS reads little ahead."""


def measurement_findings(result: Result, loops: Sequence[Loop]) -> Iterator[Finding]:
    """Yield findings about the measurement: first about the run, then about each loop."""
    done = [trial for trial in result.trials if trial.status == "done"]
    yield from _few_repeats(result)
    yield from _unfinished(result)
    yield from _suspended(done)
    yield from _own_stores(result)
    for loop in loops:
        yield from _loop_findings(loop)
    is_any_loop_resident = any(loop.is_cache_resident for loop in loops)
    for finding in _cache_findings("", [trial for trial in done if trial.kind != "train"]):
        if finding.code != "cache-resident" or not is_any_loop_resident:
            yield finding
    yield from _most_scattered_point(done)
    yield from _timing_overhead(done)
    yield from _sampling_overhead(done)
    yield from _target_findings(result, done)


def _few_repeats(result: Result) -> Iterator[Finding]:
    """Yield a finding if each point has too few repeats for an interval of 95 %."""
    repeats = int(result.config.get("repeats", 0))
    if 0 < repeats < ENOUGH_REPEATS:
        evidence = f"{counted(repeats, 'repeat')} of each point: intervals cover less than 95 %"
        remark = remark_on("few-repeats", repeats=ENOUGH_REPEATS)
        yield make_finding("few-repeats", evidence, remark)


def _unfinished(result: Result) -> Iterator[Finding]:
    """Yield a finding if fewer trials were run than planned."""
    planned = result.references.get("planned")
    if isinstance(planned, int) and len(result.trials) < planned:
        evidence = f"{len(result.trials):,} of {planned:,} trials were run"
        yield make_finding("unfinished", evidence, remark_on("unfinished"))


def _suspended(done: Sequence[Trial]) -> Iterator[Finding]:
    """Yield a finding if the processes of trials were stopped for a while."""
    suspended_s = {}
    for trial in done:
        seconds = trial.metrics.get("stood_still_s")
        if seconds:
            suspended_s[trial.id] = seconds
    if suspended_s:
        longest = max(suspended_s, key=lambda trial_id: suspended_s[trial_id])
        evidence = (
            f"{counted(len(suspended_s), 'trial')} suspended, at most for "
            f"{suspended_s[longest]:g} s: {longest}"
        )
        yield make_finding("stood-still", evidence, remark_on("stood-still"))


def _own_stores(result: Result) -> Iterator[Finding]:
    """Yield a finding about object stores that run on this machine."""
    stores = result.environment.get("stores") or {}
    labels = [label for label, store in stores.items() if store.get("kind") == "own-server"]
    if labels:
        evidence = (
            f"{', '.join(labels)}: server and client share CPUs and memory, and there is no "
            "network between them"
        )
        yield make_finding("store-on-this-machine", evidence, remark_on("store-on-this-machine"))


def _loop_findings(loop: Loop) -> Iterator[Finding]:
    """Yield findings about the page cache, the repeats and the device of a loop."""
    trials: list[Trial] = []
    for repeats in loop.inputs.values():
        trials += repeats
    yield from _cache_findings(loop.group, trials)
    for source, repeats in loop.inputs.items():
        if is_scattered(repeats):
            name = f"{loop.group}, {source}"
            yield _scattered(name, repeats, "samples_per_s", loop.group)
    if loop.emulated:
        evidence = f"{loop.group}: the device sleeps for each step and computes nothing"
        yield make_finding("emulated", evidence, remark_on("emulated"), of=loop.group)


def _cache_findings(group: str, trials: Sequence[Trial]) -> Iterator[Finding]:
    """Yield findings about the page cache of trials.

    Later epochs may be read from it, or it was not in the requested state.

    Args:
        group: the group of the loop; empty for trials of probes and loaders.
        trials: completed trials.
    """
    prefix = f"{group}: " if group else ""
    colds = [trial.cold for trial in trials if trial.cold is not None]
    if any(cold.cache_resident for cold in colds):
        evidence = f"{prefix}later epochs may read no disk"
        yield make_finding("cache-resident", evidence, remark_on("cache-resident"), of=group)
    not_cold = [cold for cold in colds if cold.asked == "cold" and cold.label == "warm"]
    if not_cold:
        trials_words = counted(len(not_cold), "trial")
        evidence = f"{prefix}{trials_words} not proved cold: {not_cold[0].why}"
        yield make_finding("not-shown-cold", evidence, remark_on("not-shown-cold"), of=group)
    warm = [cold for cold in colds if cold.asked == "warm" and cold.label == "warm"]
    not_warm = [cold for cold in warm if cold.why]
    if not_warm:
        trials_words = counted(len(not_warm), "trial")
        evidence = f"{prefix}{trials_words} read storage: {not_warm[0].why}"
        yield make_finding("not-all-warm", evidence, remark_on("not-all-warm"), of=group)


def _scattered(name: str, repeats: Repeats, metric: str, group: str = "") -> Finding:
    """Return the finding that repeats differ widely."""
    rates = metric_values(repeats, metric)
    unit = "MB/s" if metric == "mb_per_s" else "samples/s"
    evidence = f"{name}: {precise_number(min(rates))} to {precise_number(max(rates))} {unit}"
    return make_finding("scattered", evidence, remark_on("scattered"), of=group)


def _most_scattered_point(done: Sequence[Trial]) -> Iterator[Finding]:
    """Yield a finding about the probe or loader whose repeats differ most."""
    scattered = []
    kinds = dict.fromkeys(trial.kind for trial in done)
    for kind in kinds:
        if kind in ("train", "watch"):
            continue
        metric = rate_metric(kind)
        for params, repeats in by_settings(done, kind):
            if is_scattered(repeats, metric):
                rates = metric_values(repeats, metric)
                name = params_words(kind, params)
                scattered.append((max(rates) / min(rates), name, repeats, metric))
    if scattered:
        _, name, repeats, metric = max(scattered, key=lambda point: point[0])
        if len(scattered) > 1:
            name += f" (and {counted(len(scattered) - 1, 'more point')})"
        yield _scattered(name, repeats, metric)


def _timing_overhead(done: Sequence[Trial]) -> Iterator[Finding]:
    """Yield a finding if timing the steps takes more than 1 % of a step."""
    shares = {trial.id: float(trial.metrics.get("harness_share") or 0.0) for trial in done}
    worst = max(shares, key=lambda trial_id: shares[trial_id], default="")
    if worst and shares[worst] > _MAX_OVERHEAD:
        evidence = f"timing a step takes {percent(shares[worst])} of it in {worst}"
        yield make_finding("instrumentation", evidence, remark_on("instrumentation"))


def _sampling_overhead(done: Sequence[Trial]) -> Iterator[Finding]:
    """Yield a finding if the samplers of the machine take more than 1 % of a CPU."""
    total_s = cpu_s = 0.0
    for trial in done:
        cpu_share = trial.metrics.get("sampling_core_share")
        if cpu_share is not None:
            total_s += trial.seconds
            cpu_s += float(cpu_share) * trial.seconds
    if total_s >= _MIN_SAMPLED_S and cpu_s / total_s > _MAX_OVERHEAD:
        evidence = f"sampling the machine takes {percent(cpu_s / total_s)} of a CPU"
        yield make_finding("sampling", evidence, remark_on("sampling"))


def _target_findings(result: Result, done: Sequence[Trial]) -> Iterator[Finding]:
    """Yield findings about the kind of storage behind a target."""
    targets = _used_targets(result, done)
    for location, code in _REACH_FINDINGS.items():
        names = []
        for label, target in targets.items():
            if reach(target["kind"]) == location:
                names.append(f"{label} ({kind_name(target['kind'])})")
        if names:
            yield make_finding(code, ", ".join(names), remark_on(code))
    for label, target in targets.items():
        device = target.get("device")
        if isinstance(device, Mapping) and device.get("rotational") is True:
            yield make_finding("target-rotates", label, remark_on("target-rotates"))
        read_ahead_kb = target.get("read_ahead_kb")
        is_nfs = target["kind"] in _NFS_KINDS
        if is_nfs and isinstance(read_ahead_kb, int) and read_ahead_kb <= _LITTLE_READ_AHEAD_KB:
            evidence = f"{label}: read_ahead_kb is {read_ahead_kb}"
            remark = remark_on("nfs-reads-little-ahead")
            yield make_finding("nfs-reads-little-ahead", evidence, remark)


def _used_targets(result: Result, done: Sequence[Trial]) -> dict[str, Mapping[str, Any]]:
    """Return the targets of a known kind that completed trials read or wrote, by label."""
    targets = result.environment.get("targets") or {}
    labels = set()
    for trial in done:
        data = str(trial.params.get("data", ""))
        if trial.kind == "disk":
            labels.add(str(trial.params["target"]))
        elif data.endswith("@disk"):
            labels.add(folder_key(data, targets))
    used = {}
    for label, target in targets.items():
        has_kind = isinstance(target, Mapping) and isinstance(target.get("kind"), str)
        if label in labels and has_kind:
            used[label] = target
    return used
