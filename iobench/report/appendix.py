"""PURE. The collapsed part of the page: tables of all results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from dataprep.counted import counted
from iobench import badges
from iobench.analysis.analyse import Analysis
from iobench.analysis.epoch_cost import cost_lines, epoch_cost
from iobench.analysis.hosts import on_all_hosts
from iobench.analysis.mlperf import pass_marks
from iobench.analysis.repeats import is_number
from iobench.analysis.sizing import scale, scale_lines
from iobench.analysis.summary_rows import access_rows, processes_rows
from iobench.consumers.accelerators import ACCELERATORS
from iobench.ladder import RUNGS
from iobench.machine.storage_kinds import kind_name
from iobench.report import counted as counted_rates
from iobench.report import hosts, latencies, ranks, starts, watched
from iobench.report.numbers import number, percent, seconds, size, with_interval
from iobench.report.tables import Section, Table
from iobench.result import Result
from iobench.stats import Estimate
from iobench.trial import Trial
from iobench.words import model_words, params_words, samples_words

_MOST_ROWS = 400
_RATES = {
    "mb_per_s": "MB/s",
    "iops": "IOPS",
    "requests_per_s": "requests/s",
}
_LOOP_FIGURES = (
    ("the device consumes, samples/s", "consumes"),
    ("warm, samples/s", "warm"),
    ("cold, samples/s", "cold"),
    ("from the object store, samples/s", "store"),
    ("share of the device's rate (au_ceiling)", "au_ceiling"),
    ("au_mlperf", "au_mlperf"),
    ("au_mlperf of the slowest rank", "au_mlperf_slowest"),
    ("loss", "stall_fraction"),
    ("waiting", "waiting_fraction"),
    ("preparation stall", "preparation_stall"),
    ("fetch stall", "fetch_stall"),
    ("time to first batch", "time_to_first_batch_s"),
    ("start of later epochs", "epoch_start_s"),
    ("starts, share of the time", "epoch_start_share"),
)
_SECONDS = ("time_to_first_batch_s", "epoch_start_s")
_MET = {True: "yes", False: "no", None: "unknown"}
_SHARES = {
    *("au_ceiling", "au_mlperf", "au_mlperf_slowest", "stall_fraction", "waiting_fraction"),
    *("preparation_stall", "fetch_stall", "epoch_start_share"),
}

DEFINITIONS: Mapping[str, str] = {
    "loss": (
        "(T2 - T1) / T2, where T1 are the loop's seconds on data in the device's memory and T2 "
        "from the farthest place measured: how much longer a step takes, as a share of the longer "
        "step. Contention for the CPUs is included. Of a watched loop with a replay, T1 is the "
        "time of a step on repeated batches."
    ),
    "waiting": (
        "The share of a step in which the device has no batch. It differs from the loss where "
        "loading also slows the device's own work."
    ),
    "au_ceiling": (
        "1 - loss: samples/s, divided by those of the same loop on data in the device's memory."
    ),
    "au_mlperf": (
        "Compute time / running time, without the first step, as MLPerf Storage defines it. Its "
        "pass marks are for its own workloads (presets named -mlperf); beside them the report "
        "lists what else its rules ask for. A host may wait while its device computes, so it "
        "differs from au_ceiling. Of several ranks it is the mean, as MLPerf Storage's DLIO "
        "computes it; the slowest rank stands beside it."
    ),
    "preparation stall": (
        "(T3 - T1) / T2, where T3 are the seconds from a warm page cache: decoding, "
        "augmenting, collating and copying. After Mohan et al., VLDB 2021."
    ),
    "fetch stall": "(T2 - T3) / T2: reading from the disk or the store.",
    "ladder": (
        "The same loop run again with one real part more each time. A part costs the difference to "
        "the rung above, and the parts add up to the loss. The bar is made of medians of rungs; "
        "verdict and findings give medians of shares, which can differ by a percent or two."
    ),
    "start of an epoch": (
        "The time from the request of an epoch to its first batch. Where whole epochs were "
        "measured, the rate includes the starts, and the ladder has a rung for them: the seconds a "
        "sample that the nearest loop with samples from memory spent in starts. What the starts of "
        "farther loops take beyond that is in their rungs. A rate in a steady state has no start "
        "in it."
    ),
    "balance": (
        "Fetched samples / consumed samples in the time that counts, samples of partial batches "
        "included. In a steady state both are equal."
    ),
    "replay": (
        "Of a watched loop: some of its batches are handed out again for a number of steps, so "
        "that the loader is not waited for. The last half of these steps gives the ceiling, the "
        "loop's rate without its loader. Batches that are copied to the device are copied in these "
        "steps, too."
    ),
    "cold, warm": (
        "Cold: at most 1 % of the files' pages were in the page cache before, and storage "
        "gave at least 95 % of the bytes. Warm: anything else. Direct: O_DIRECT, past the cache. "
        "On NFS, Lustre and FUSE: cold on this host; server cache unknown."
    ),
    "5 times the memory": (
        "Of smaller data, later epochs may come from the page cache instead of the disk."
    ),
    "confidence": (
        "High: at least 6 repeats and an interval whose half-width is below 5 % of the median; "
        "medium: below 15 %; else low. Low as well for a smoke run of up to 3 repeats, for "
        "scattered repeats, for figures that are no evidence, and where cold was not proved. "
        "Storage under an emulated device, or a store on the same machine, is never high."
    ),
    "emulated device": "Batches are taken at a fixed rate and nothing is computed.",
    "hosts together": (
        "Several hosts run each trial at the same time. The sum adds the rates of all hosts, each "
        "over its own measurement. All other figures and tables are those of host 0 while all "
        "hosts measured. Evenness is the rate of the slowest host / that of the median host."
    ),
    "spread of starts": (
        "The largest possible time between the first and the last start of a trial on several "
        "hosts. Each host knows by its own clock when the signal to begin was not there yet and "
        "when it was there. Clocks of different hosts are never compared."
    ),
    "measured at the same time": (
        "The time from the last start to the first end on several hosts / the time from the first "
        "start to the last end. Below 1, a host had the storage to itself for a while, and the sum "
        "is more than all hosts get at the same time."
    ),
    "interval": (
        "Of a median: the exact order-statistic interval. From 6 repeats on it covers 95 %."
    ),
    "predicted": (
        "The minimum of the rates of device, loader and storage, each measured separately. More "
        "workers than were measured are predicted from a curve of at least three counts, up to "
        "twice the largest."
    ),
    "scattered": (
        "Repeats differ by more than a factor of 1.5: the range is shown. By more than a factor "
        "of 2: no finding and no prediction uses the figure."
    ),
}
"""Every term on the page."""


def sections(found: Analysis) -> list[Section]:
    """All parts that have content."""
    result = found.result
    compared = on_all_hosts(result)
    made = [
        Section("findings", f"Findings ({len(found.findings)})", _findings(found)),
        Section("together", "Several hosts", list(hosts.tables(result)), lines=hosts.notes(result)),
        Section("loops", "Training loops", list(_loops(found))),
        Section(
            "watched",
            "Watched loops",
            [Table("", watched.COLUMNS, watched.rows(found.summary["watched"]))],
            lines=list(watched.notes(result.trials)),
        ),
        Section("counted", "How the rates were counted", counted_rates.tables(compared)),
        Section("first-batch", "Starts of epochs", starts.tables(compared)),
        Section("latencies", "Latencies of steps and requests", latencies.tables(compared)),
        Section("compared", "Access modes, processes, devices", list(_compared(found, compared))),
        Section("predictions", "Prediction beside measurement", _predictions(found)),
        Section("hosts", "Hosts and cost", lines=list(_hosts(found))),
        Section("cold", "Cold or warm: the proof of each trial", _cold(result)),
        Section("trials", f"All trials ({len(result.trials)})", _trials(result)),
        Section("machine", "Machine, storage, versions", list(_machine(result.environment))),
        Section("config", "How to run it again", lines=_again(result), code=_config(result)),
        Section("definitions", "Definitions and sources", [_rates()], terms=DEFINITIONS),
    ]
    return [one for one in made if any(t.rows for t in one.tables) or one.lines or one.terms]


def _findings(found: Analysis) -> list[Table]:
    order = {"problem": 0, "warning": 1, "info": 2}
    ranked = sorted(found.findings, key=lambda f: (not f.primary, order.get(f.severity, 3)))
    rows = [[f.severity, f.title or f.code, f.evidence, f.advice, f.code] for f in ranked]
    return [Table("", ("severity", "finding", "evidence", "what to do", "code"), rows)]


def _loops(found: Analysis) -> Iterator[Table]:
    stored = [loop.as_dict() for loop in found.loops]
    if not stored:
        return
    rows = []
    for words, key in _LOOP_FIGURES:
        say = percent if key in _SHARES else seconds if key in _SECONDS else number
        cells = [_told(one.get(key), say) for one in stored]
        rows += [[words, *cells]] if any(cells) else []
    for key in ("loader", "data", "workers", "batch_size", "device", "precision", "label"):
        rows.append([key.replace("_", " "), *(str(one.get(key) or "") for one in stored)])
    yield Table("", ("figure", *(str(one["group"]) for one in stored)), rows)
    for loop in found.loops:
        rungs = [
            [
                loop.rung_words(rung),
                with_interval(rung.seconds, seconds),
                with_interval(rung.part, seconds) if rung.part is not None else "",
                percent(rung.share.median) if rung.share is not None else "",
                ""
                if rung.part is None or rung.differs_from_zero
                else "not distinguishable from zero",
            ]
            for rung in loop.ladder.rungs
        ]
        missing = [f"{r}: {loop.not_measured[r]}" for r in RUNGS if r in loop.not_measured]
        note = f"Not measured: {'; '.join(missing)}." if missing else ""
        columns = ("rung", "a sample", "adds", "share of the whole", "")
        yield Table(f"Ladder: {loop.group}", columns, rungs, note)
    for mark in pass_marks(found.result, found.loops):
        rules = [[one.rule, one.measured, _MET[one.is_met]] for one in mark.requirements]
        note = "Only mlpstorage, the benchmark's own program, gives results of MLPerf Storage."
        asked = ("MLPerf Storage asks for", "measured", "met")
        yield Table(f"{mark.group}: {mark.model} on {mark.device}", asked, rules, note)
    for loop in found.loops:
        yield from ranks.tables(loop)


def _compared(found: Analysis, result: Result) -> Iterator[Table]:
    trials = result.trials
    modes = [
        [
            f"{row['access']}, {row['loader']}, {row.get('workers', 0)} workers",
            _told(row["first_epoch_s"], seconds),
            _told(row["steady_samples_per_s"], number),
            _told(row["disk_needed_bytes"], size),
            _told(row["memory_needed_bytes"], size),
            _told(row["store_requests"], number),
        ]
        for row in (row.as_dict() for row in access_rows(trials))
    ]
    columns = ("mode", "first epoch", "later epochs, samples/s", "disk", "memory", "requests")
    yield Table("Access modes", columns, modes)
    processes = [
        [
            f"{row['loader']}, {row['data']}",
            str(row["processes"]),
            _told(row["samples_per_s"], number),
            _told(row["efficiency"], percent),
        ]
        for row in (row.as_dict() for row in processes_rows(trials))
    ]
    yield Table("Loader processes", ("loader", "processes", "samples/s", "efficiency"), processes)
    scaled = [
        [
            f"{row['model']}, {row['input']}",
            str(row["devices"]),
            _told(row["samples_per_s"], number),
            _told(row["efficiency"], percent),
        ]
        for row in found.summary["scaling"]
    ]
    yield ranks.side_by_side(found.summary["accelerators"])
    note = "Published: 97.5 % from 4 to 8 GPUs, 92 % at 64, 90 % at 256."
    yield Table("Devices", ("loop", "devices", "samples/s", "scaling efficiency"), scaled, note)


def _predictions(found: Analysis) -> list[Table]:
    rows = []
    for check in found.checks:
        rate, error = check.prediction.rate, check.error
        workers = counted(check.setting.workers, "worker")
        rows.append(
            [
                f"{check.group}, {check.setting.source}, {workers}",
                number(rate.median) if rate is not None else "",
                with_interval(check.measured),
                percent(error) if error is not None else "",
                check.prediction.limit or f"not measured: {', '.join(check.prediction.missing)}",
            ]
        )
    note = "Predicted from loaders and device alone, without having seen the loop."
    return [Table("", ("loop", "predicted", "measured", "error", "limit"), rows, note)]


def _hosts(found: Analysis) -> Iterator[str]:
    config, loop = found.result.config, found.loop
    if asked := config.get("scale"):
        yield from scale_lines(scale(found.result, found.capacities, loop, asked))
    elif found.supplies:
        for one in found.supplies:
            rate = f"{number(one.samples_per_s)} samples/s: " if one.samples_per_s else ""
            yield f"{one.part}: {rate}{one.basis}"
    if asked := config.get("cost"):
        yield from cost_lines(epoch_cost(found.result, loop, asked))


def _cold(result: Result) -> list[Table]:
    rows = []
    for trial in result.trials:
        cold = trial.cold
        if cold is None or trial.status != "done":
            continue
        before, ratio = cold.resident_before, cold.physical_ratio
        rows.append(
            [
                _named(trial),
                cold.asked,
                cold.label,
                percent(before) if is_number(before) else "unknown",
                number(ratio) if is_number(ratio) else "unknown",
                cold.why,
            ]
        )
    columns = ("trial", "asked", "shown", "in memory before", "physical / logical", "why")
    note = "Before: pages in memory, by cachestat or mincore. After: bytes that storage gave."
    limits = dict.fromkeys(
        str(limit) for trial in result.trials if trial.cold for limit in trial.cold.limits
    )
    return [Table("", columns, rows[:_MOST_ROWS], " ".join([note, *limits]))]


def _trials(result: Result) -> list[Table]:
    rows = []
    for trial in result.trials:
        rates = [
            f"{number(trial.metrics[name])} {unit}"
            for name, unit in _RATES.items()
            if is_number(trial.metrics.get(name))
        ]
        if samples := samples_words(trial.metrics, number):
            rates.insert(0, samples)
        shown = ", ".join(rates) if trial.status == "done" else trial.reason
        rows.append(
            [
                _named(trial),
                trial.status,
                shown,
                badges.trial_badge(trial.cold),
                seconds(trial.seconds),
            ]
        )
    note = f"The first {_MOST_ROWS}; the raw result has all." if len(rows) > _MOST_ROWS else ""
    columns = ("trial", "status", "result", "cache", "took")
    return [Table("", columns, rows[:_MOST_ROWS], note)]


def _named(trial: Trial) -> str:
    try:
        words = params_words(trial.kind, trial.params)
    except (LookupError, TypeError, ValueError):  # params of another version
        words = trial.kind
    return f"{words} #{trial.repeat + 1}"


def _machine(environment: Mapping[str, Any]) -> Iterator[Table]:
    targets = environment.get("targets") or {}
    stores = environment.get("stores") or {}
    storage = [
        [
            label,
            kind_name(str(one.get("kind", ""))),
            str(one.get("name", "")),
            str(one.get("why", "")),
        ]
        for label, one in {**targets, **stores}.items()
        if isinstance(one, Mapping)
    ]
    yield Table("Storage", ("label", "kind", "name", "evidence"), storage)
    apart = ("targets", "stores", "libraries")
    rest = {key: value for key, value in environment.items() if key not in apart}
    yield Table("Machine", ("what", "value"), [list(pair) for pair in _flat(rest)])
    libraries = environment.get("libraries") or {}
    rows = [[str(name), str(version)] for name, version in libraries.items()]
    yield Table("Libraries", ("library", "version"), rows)


def _flat(value: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, below in value.items():
        name = f"{above} / {key}" if above else str(key).replace("_", " ")
        if isinstance(below, Mapping):
            yield from _flat(below, name)
        elif isinstance(below, (list, tuple)) and any(isinstance(b, Mapping) for b in below):
            yield from _flat({str(i): item for i, item in enumerate(below, start=1)}, name)
        elif str(key).endswith("_bytes") and isinstance(below, int) and below > 0:
            yield name.removesuffix(" bytes"), size(below)
        elif below not in (None, "", [], ()):
            yield name, json.dumps(below) if isinstance(below, (list, tuple)) else str(below)


def _again(result: Result) -> list[str]:
    if "watch" in result.config:
        sentences = "The script was watched with iobench.watch(loader)."
        if not any("replay_steps" in trial.metrics for trial in result.trials):
            sentences += " To measure the loop without its loader: iobench.watch(loader, replay=8)."
        command = "dataprep init, then iobench run configs/bench/train-resnet50.yaml"
        return [f"{sentences} To measure each part of the input: {command}"]
    if result.hosts:
        return [
            f"Save this as config.yaml and run on each of {len(result.hosts)} hosts: iobench run "
            f"config.yaml --hosts {len(result.hosts)} --host I --rendezvous URI"
        ]
    return ["Save this as config.yaml and run: iobench run config.yaml"]


def _config(result: Result) -> str:
    plain = json.loads(json.dumps(result.config, default=str))
    return str(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)).rstrip() if plain else ""


def _rates() -> Table:
    rows = [
        [
            rate.name,
            model_words(rate.model),
            number(rate.samples_per_s),
            rate.meaning.value,
            rate.source,
        ]
        for accelerator in ACCELERATORS
        for rate in accelerator.rates
    ]
    columns = ("accelerator", "model", "img/s", "the rate of", "source")
    return Table("Accelerators", columns, rows)


def _told(stored: Any, say: Any) -> str:
    return with_interval(Estimate(**stored), say) if stored else ""
