"""PURE. Findings about the measurement itself, which qualify its figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dataprep.counted import counted
from iobench.analysis.loops import Loop, scatters
from iobench.analysis.points import by_point, values
from iobench.analysis.rules import ENOUGH, found
from iobench.data.given import read_from
from iobench.machine.storage_kinds import kind_name, reach
from iobench.numbers import percent, precise_number
from iobench.result import Finding, Result
from iobench.trial import Trial
from iobench.words import params_words

_METRICS = {"disk": "mb_per_s", "object": "mb_per_s"}
_MEMORY_ADVICE = "use a data set of at least 5 times the memory"
_KINDS = (
    ("target-in-memory", "memory", "give a path on the disk that is meant"),
    ("target-in-layers", "layers", "mount the disk that is meant, and give a path on it"),
    ("target-over-network", "network", "read cold as cold on this host; server cache unknown"),
)


def qualifiers(result: Result, loops: Sequence[Loop]) -> Iterator[Finding]:
    """Findings about the measurement: of the run, then of each loop."""
    done = [trial for trial in result.trials if trial.status == "done"]
    yield from _of_run(result, done)
    for loop in loops:
        yield from _cold(loop.group, [t for trials in loop.inputs.values() for t in trials])
        for source, trials in loop.inputs.items():
            if scatters(trials):
                yield _scattered(f"{loop.group}, {source}", trials, "samples_per_s", loop.group)
        if loop.emulated:
            said = f"{loop.group}: the device sleeps for each step and computes nothing"
            yield found("emulated", said, "measure the real loop before you buy", of=loop.group)
    resident = any(loop.is_cache_resident for loop in loops)
    for finding in _cold("", [trial for trial in done if trial.kind != "train"]):
        if finding.code != "cache-resident" or not resident:
            yield finding
    yield from _scattered_points(done)
    yield from _instruments(done)
    yield from _targets(result, done)


def _of_run(result: Result, done: Sequence[Trial]) -> Iterator[Finding]:
    repeats = int(result.config.get("repeats", 0))
    if 0 < repeats < ENOUGH:
        said = f"{counted(repeats, 'repeat')} of each point: intervals cover less than 95 %"
        yield found("few-repeats", said, f"set repeats: {ENOUGH}")
    planned = result.references.get("planned")
    if isinstance(planned, int) and len(result.trials) < planned:
        said = f"{len(result.trials):,} of {planned:,} trials were run"
        yield found("unfinished", said, "iobench run --resume continues it")
    still = {t.id: s for t in done if (s := t.metrics.get("stood_still_s"))}
    if still:
        longest = max(still, key=lambda name: still[name])
        said = (
            f"{counted(len(still), 'trial')} suspended, at most for {still[longest]:g} s: {longest}"
        )
        yield found("stood-still", said, "measure again into another folder")
    stores = result.environment.get("stores") or {}
    own = [label for label, store in stores.items() if store.get("kind") == "own-server"]
    if own:
        said = f"{', '.join(own)}: server and client share CPUs and memory, no network is between"
        yield found("store-on-this-machine", said, "measure the store that you train from")


def _cold(of: str, trials: Sequence[Trial]) -> Iterator[Finding]:
    """Cold or warm trials that were not proved to be so; data below 5 times the memory."""
    named = f"{of}: " if of else ""
    colds = [trial.cold for trial in trials if trial.cold is not None]
    if any(cold.cache_resident for cold in colds):
        said = f"{named}later epochs may read no disk"
        yield found("cache-resident", said, _MEMORY_ADVICE, of=of)
    not_cold = [cold for cold in colds if cold.asked == "cold" and cold.label == "warm"]
    if not_cold:
        said = f"{named}{counted(len(not_cold), 'trial')} not proved cold: {not_cold[0].why}"
        yield found("not-shown-cold", said, "read their figures as warm", of=of)
    not_warm = [cold for cold in colds if cold.asked == "warm" == cold.label and cold.why]
    if not_warm:
        said = f"{named}{counted(len(not_warm), 'trial')} read storage: {not_warm[0].why}"
        yield found("not-all-warm", said, "use fewer images, or more memory", of=of)


def _scattered(named: str, trials: Sequence[Trial], metric: str, of: str = "") -> Finding:
    rates = values(trials, metric)
    unit = "MB/s" if metric == "mb_per_s" else "samples/s"
    said = f"{named}: {precise_number(min(rates))} to {precise_number(max(rates))} {unit}"
    return found("scattered", said, "repeat with nothing else running", of=of)


def _scattered_points(done: Sequence[Trial]) -> Iterator[Finding]:
    """The probe or loader whose repeats differ most."""
    wide = []
    for kind in dict.fromkeys(trial.kind for trial in done if trial.kind not in ("train", "watch")):
        metric = _METRICS.get(kind, "samples_per_s")
        for params, trials in by_point(done, kind):
            if scatters(trials, metric):
                rates = values(trials, metric)
                wide.append((max(rates) / min(rates), params_words(kind, params), trials, metric))
    if wide:
        _, named, trials, metric = max(wide, key=lambda one: one[0])
        more = f" (and {len(wide) - 1} more points)" if len(wide) > 1 else ""
        yield _scattered(f"{named}{more}", trials, metric)


def _instruments(done: Iterable[Trial]) -> Iterator[Finding]:
    """Where the loop's own clock takes over 1 % of a step, or sampling over 1 % of a CPU."""
    trials = list(done)
    shares = {t.id: float(t.metrics.get("harness_share") or 0.0) for t in trials}
    worst = max(shares, key=lambda name: shares[name], default="")
    if worst and shares[worst] > 0.01:
        said = f"timing a step takes {percent(shares[worst])} of it in {worst}"
        yield found("instrumentation", said, "take larger batches")
    key = "sampling_core_share"
    sampled = [trial for trial in trials if trial.metrics.get(key) is not None]
    whole_s = sum(trial.seconds for trial in sampled)
    spent_s = sum(float(trial.metrics[key]) * trial.seconds for trial in sampled)
    # Of some seconds, opening what is read is most.
    if whole_s >= 10 and spent_s / whole_s > 0.01:
        said = f"reading the machine takes {percent(spent_s / whole_s)} of a CPU"
        yield found("sampling", said, "set sampling.per_s lower")


def _targets(result: Result, done: Iterable[Trial]) -> Iterator[Finding]:
    """Findings about the kind of storage behind a target."""
    used = _used(result, done)
    for code, wanted, advice in _KINDS:
        labels = [label for label, target in used.items() if reach(target["kind"]) == wanted]
        if labels:
            named = ", ".join(f"{label} ({kind_name(used[label]['kind'])})" for label in labels)
            yield found(code, named, advice)
    for label, target in used.items():
        device = target.get("device")
        if isinstance(device, Mapping) and device.get("rotational") is True:
            yield found("target-rotates", label, "read whole shards in order: a seek costs most")
        ahead_kb = target.get("read_ahead_kb")
        is_nfs = target["kind"] in ("nfs", "efs", "fsx-nfs")
        if is_nfs and isinstance(ahead_kb, int) and ahead_kb <= 128:
            said = f"{label}: read_ahead_kb is {ahead_kb}"
            yield found("nfs-reads-little-ahead", said, "raise read_ahead_kb of its bdi in sysfs")


def _used(result: Result, done: Iterable[Trial]) -> dict[str, Mapping[str, Any]]:
    """Targets with a kind that completed trials read or wrote, by label."""
    described = result.environment.get("targets") or {}
    labels = set()
    for trial in done:
        name = str(trial.params.get("data", ""))
        if trial.kind == "disk":
            labels.add(str(trial.params["target"]))
        elif name.endswith("@disk"):
            labels.add(read_from(name, described))
    return {
        label: target
        for label, target in described.items()
        if label in labels and isinstance(target, Mapping) and isinstance(target.get("kind"), str)
    }
