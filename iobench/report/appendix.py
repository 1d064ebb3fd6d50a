"""PURE. The appendix of the page: collapsed sections with all results, and the glossary."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from dataprep.message_text import counted
from iobench.analysis.analyse import Analysis
from iobench.analysis.epoch_cost import cost_lines, epoch_cost
from iobench.analysis.hosts import on_all_hosts
from iobench.analysis.loop_entries import loop_entry
from iobench.analysis.loops import Loop
from iobench.analysis.mlperf import pass_marks
from iobench.analysis.repeats import is_number
from iobench.analysis.sizing import scale, scale_lines
from iobench.analysis.summary_rows import access_rows, processes_rows
from iobench.consumers.accelerators import ACCELERATORS
from iobench.machine.storage_kinds import kind_name
from iobench.report import counting_rules, epoch_starts, hosts, latencies, ranks, watched_section
from iobench.report.glossary import DEFINITIONS
from iobench.report.tables import Section, Table
from iobench.results import badges
from iobench.results.numbers import duration, number, precise_percent, size, with_interval
from iobench.results.result import Result
from iobench.results.statistics import Estimate
from iobench.results.trial import Trial
from iobench.results.wording import model_words, params_words, samples_words
from iobench.trials.ladder import RUNGS

_MAX_ROWS = 400
_RATE_UNITS = {
    "mb_per_s": "MB/s",
    "iops": "IOPS",
    "requests_per_s": "requests/s",
}
_LOOP_FIGURES = (
    ("samples/s that the device can consume", "consumes"),
    ("samples/s, warm", "warm"),
    ("samples/s, cold", "cold"),
    ("samples/s from the object store", "store"),
    ("share of the device's rate (au_ceiling)", "au_ceiling"),
    ("au_mlperf", "au_mlperf"),
    ("au_mlperf of the slowest rank", "au_mlperf_slowest"),
    ("loss", "stall_fraction"),
    ("waiting", "waiting_fraction"),
    ("preparation stall", "preparation_stall"),
    ("fetch stall", "fetch_stall"),
    ("time to first batch", "time_to_first_batch_s"),
    ("start of a later epoch", "epoch_start_s"),
    ("share of the time in starts of epochs", "epoch_start_share"),
)
_SECONDS_FIGURES = ("time_to_first_batch_s", "epoch_start_s")
_IS_MET_WORDS = {True: "yes", False: "no", None: "unknown"}
_SHARE_FIGURES = {
    *("au_ceiling", "au_mlperf", "au_mlperf_slowest", "stall_fraction", "waiting_fraction"),
    *("preparation_stall", "fetch_stall", "epoch_start_share"),
}


def sections(analysis: Analysis) -> list[Section]:
    """The sections of the appendix. A section without content is left out."""
    result = analysis.result
    without_fewer_hosts = on_all_hosts(result)
    watched_rows = watched_section.rows(analysis.summary["watched"])
    all_sections = [
        Section("findings", f"Findings ({len(analysis.findings)})", [_findings(analysis)]),
        Section("together", "Several hosts", list(hosts.tables(result)), lines=hosts.notes(result)),
        Section("loops", "Training loops", list(_loops(analysis))),
        Section(
            "watched",
            "Watched loops",
            [Table("", watched_section.COLUMNS, watched_rows)],
            lines=list(watched_section.notes(result.trials)),
        ),
        Section(
            "counted", "How the rates were counted", counting_rules.tables(without_fewer_hosts)
        ),
        Section("first-batch", "Starts of epochs", epoch_starts.tables(without_fewer_hosts)),
        Section(
            "latencies", "Latencies of steps and requests", latencies.tables(without_fewer_hosts)
        ),
        Section(
            "compared",
            "Access modes, processes and devices",
            list(_side_by_side(analysis, without_fewer_hosts)),
        ),
        Section("predictions", "Predicted and measured rates", [_predictions(analysis)]),
        Section("hosts", "Hosts and cost", lines=list(_hosts_and_cost(analysis))),
        Section("cold", "Whether each trial was cold or warm", [_page_cache(result)]),
        Section("trials", f"All trials ({len(result.trials)})", [_trials(result)]),
        Section("machine", "Machine, storage and versions", list(_machine(result.environment))),
        Section(
            "config",
            "How to run it again",
            lines=_how_to_measure_again(result),
            code=_config_yaml(result),
        ),
        Section(
            "definitions", "Definitions and sources", [_accelerator_rates()], terms=DEFINITIONS
        ),
    ]
    return [section for section in all_sections if _has_content(section)]


def _has_content(section: Section) -> bool:
    has_rows = any(table.rows for table in section.tables)
    return bool(has_rows or section.lines or section.terms)


def _findings(analysis: Analysis) -> Table:
    ranks_of_severity = {"problem": 0, "warning": 1, "info": 2}
    ranked = sorted(
        analysis.findings,
        key=lambda finding: (not finding.primary, ranks_of_severity.get(finding.severity, 3)),
    )
    rows = [
        [
            finding.severity,
            finding.title or finding.code,
            finding.evidence,
            finding.advice,
            finding.code,
        ]
        for finding in ranked
    ]
    return Table("", ("severity", "finding", "evidence", "advice", "code"), rows)


def _loops(analysis: Analysis) -> Iterator[Table]:
    """The figures of all loops, their ladders, the rules of MLPerf Storage, and their ranks."""
    if not analysis.loops:
        return
    yield _loop_figures(analysis.loops)
    for loop in analysis.loops:
        yield _ladder(loop)
    for mark in pass_marks(analysis.result, analysis.loops):
        rows = [
            [requirement.rule, requirement.measured, _IS_MET_WORDS[requirement.is_met]]
            for requirement in mark.requirements
        ]
        yield Table(
            f"{mark.group}: {mark.model} on {mark.device}",
            ("MLPerf Storage asks for", "measured", "met"),
            rows,
            "Only mlpstorage, the benchmark's own program, gives results of MLPerf Storage.",
        )
    for loop in analysis.loops:
        yield from ranks.tables(loop)


def _loop_figures(loops: Sequence[Loop]) -> Table:
    """A row for each figure and a column for each loop."""
    figures_by_loop: list[Mapping[str, Any]] = [loop_entry(loop) for loop in loops]
    rows = []
    for title, key in _LOOP_FIGURES:
        text_of: Callable[[float], str] = number
        if key in _SHARE_FIGURES:
            text_of = precise_percent
        elif key in _SECONDS_FIGURES:
            text_of = duration
        cells = [_estimate_cell(figures.get(key), text_of) for figures in figures_by_loop]
        if any(cells):
            rows.append([title, *cells])
    for key in ("loader", "data", "workers", "batch_size", "device", "precision", "label"):
        cells = [str(figures.get(key) or "") for figures in figures_by_loop]
        rows.append([key.replace("_", " "), *cells])
    groups = [str(figures["group"]) for figures in figures_by_loop]
    return Table("", ("figure", *groups), rows)


def _ladder(loop: Loop) -> Table:
    """A row for each rung of a loop's ladder."""
    rows = []
    for rung in loop.ladder.rungs:
        cost, share, remark = "", "", ""
        if rung.cost is not None:
            cost = with_interval(rung.cost, duration)
            remark = "" if rung.differs_from_zero else "not distinguishable from zero"
        if rung.share is not None:
            share = precise_percent(rung.share.median)
        rows.append(
            [loop.rung_words(rung), with_interval(rung.seconds, duration), cost, share, remark]
        )
    missing = [f"{rung}: {loop.not_measured[rung]}" for rung in RUNGS if rung in loop.not_measured]
    note = f"Not measured: {'; '.join(missing)}." if missing else ""
    columns = ("rung", "time per sample", "cost of the part", "share of the step", "remark")
    return Table(f"Ladder: {loop.group}", columns, rows, note)


def _side_by_side(analysis: Analysis, result: Result) -> Iterator[Table]:
    """Tables that compare access modes, loader processes, emulated accelerators and devices."""
    modes = [
        [
            f"{row.params['access']}, {row.params['loader']}, "
            f"{row.params.get('workers', 0)} workers",
            _interval_cell(row.figures.get("first_epoch_s"), duration),
            _interval_cell(row.figures.get("steady_samples_per_s"), number),
            _interval_cell(row.figures.get("disk_needed_bytes"), size),
            _interval_cell(row.figures.get("memory_needed_bytes"), size),
            _interval_cell(row.figures.get("store_requests"), number),
        ]
        for row in access_rows(result.trials)
    ]
    yield Table(
        "Access modes",
        (
            "access mode",
            "first epoch",
            "samples/s in later epochs",
            "disk space",
            "memory",
            "requests to the store",
        ),
        modes,
    )
    processes = [
        [
            f"{row.params['loader']}, {row.params['data']}",
            str(row.processes),
            _interval_cell(row.samples_per_s, number),
            _interval_cell(row.efficiency, precise_percent),
        ]
        for row in processes_rows(result.trials)
    ]
    yield Table(
        "Loader processes", ("loader", "processes", "samples/s", "scaling efficiency"), processes
    )
    yield ranks.side_by_side(analysis.summary["accelerators"])
    devices = [
        [
            f"{entry['model']}, {entry['input']}",
            str(entry["devices"]),
            _estimate_cell(entry["samples_per_s"], number),
            _estimate_cell(entry["efficiency"], precise_percent),
        ]
        for entry in analysis.summary["scaling"]
    ]
    yield Table(
        "Devices",
        ("loop", "devices", "samples/s", "scaling efficiency"),
        devices,
        "Published efficiencies: 97.5 % from 4 to 8 GPUs, 92 % at 64 GPUs, 90 % at 256 GPUs.",
    )


def _predictions(analysis: Analysis) -> Table:
    rows = []
    for check in analysis.checks:
        prediction, setting = check.prediction, check.setting
        limit = prediction.limit or f"not measured: {', '.join(prediction.missing)}"
        rows.append(
            [
                f"{check.group}, {setting.source}, {counted(setting.workers, 'worker')}",
                number(prediction.rate.median) if prediction.rate is not None else "",
                with_interval(check.measured),
                precise_percent(check.error) if check.error is not None else "",
                limit,
            ]
        )
    return Table(
        "",
        ("loop", "predicted samples/s", "measured samples/s", "error", "predicted limit"),
        rows,
        "The predictions use measurements of the loaders and of the device, not of the loop.",
    )


def _hosts_and_cost(analysis: Analysis) -> Iterator[str]:
    config, loop = analysis.result.config, analysis.loop
    scale_settings = config.get("scale")
    if scale_settings:
        yield from scale_lines(scale(analysis.result, analysis.capacities, loop, scale_settings))
    elif analysis.supplies:
        for supply in analysis.supplies:
            rate = f"{number(supply.samples_per_s)} samples/s: " if supply.samples_per_s else ""
            yield f"{supply.part}: {rate}{supply.basis}"
    cost_settings = config.get("cost")
    if cost_settings:
        yield from cost_lines(epoch_cost(analysis.result, loop, cost_settings))


def _page_cache(result: Result) -> Table:
    """For each trial, whether it was cold or warm, and the evidence."""
    rows = []
    limits: dict[str, None] = {}
    for trial in result.trials:
        cold = trial.cold
        if cold is None:
            continue
        limits.update(dict.fromkeys(map(str, cold.limits)))
        if trial.status != "done":
            continue
        before, ratio = cold.resident_before, cold.physical_ratio
        rows.append(
            [
                _trial_name(trial),
                cold.asked,
                cold.label,
                precise_percent(before) if is_number(before) else "unknown",
                number(ratio) if is_number(ratio) else "unknown",
                cold.why,
            ]
        )
    columns = (
        "trial",
        "requested",
        "verified as",
        "share in the page cache before",
        "bytes from storage / bytes read",
        "reason",
    )
    note = (
        "The share in the page cache is counted by cachestat or mincore before the trial. The "
        "bytes from storage are counted by the kernel."
    )
    return Table("", columns, rows[:_MAX_ROWS], " ".join([note, *limits]))


def _trials(result: Result) -> Table:
    rows = []
    for trial in result.trials:
        rates = []
        samples = samples_words(trial.metrics, number)
        if samples:
            rates.append(samples)
        for name, unit in _RATE_UNITS.items():
            if is_number(trial.metrics.get(name)):
                rates.append(f"{number(trial.metrics[name])} {unit}")
        outcome = ", ".join(rates) if trial.status == "done" else trial.reason
        cold = badges.trial_badge(trial.cold)
        rows.append([_trial_name(trial), trial.status, outcome, cold, duration(trial.seconds)])
    note = ""
    if len(rows) > _MAX_ROWS:
        note = f"These are the first {_MAX_ROWS} trials. The raw result has all."
    columns = ("trial", "status", "result", "page cache", "duration")
    return Table("", columns, rows[:_MAX_ROWS], note)


def _trial_name(trial: Trial) -> str:
    """The name of a trial in a table."""
    try:
        point = params_words(trial.kind, trial.params)
    except (LookupError, TypeError, ValueError):
        # A trial of another version of iobench may lack parameters, or have others.
        point = trial.kind
    return f"{point} #{trial.repeat + 1}"


def _machine(environment: Mapping[str, Any]) -> Iterator[Table]:
    targets = environment.get("targets") or {}
    stores = environment.get("stores") or {}
    storage_rows = []
    for label, storage in {**targets, **stores}.items():
        if isinstance(storage, Mapping):
            kind = kind_name(str(storage.get("kind", "")))
            name, evidence = str(storage.get("name", "")), str(storage.get("why", ""))
            storage_rows.append([label, kind, name, evidence])
    yield Table("Storage", ("label", "kind", "name", "evidence"), storage_rows)
    shown_elsewhere = ("targets", "stores", "libraries")
    machine = {key: value for key, value in environment.items() if key not in shown_elsewhere}
    yield Table("Machine", ("property", "value"), [list(pair) for pair in _flattened(machine)])
    libraries = environment.get("libraries") or {}
    rows = [[str(name), str(version)] for name, version in libraries.items()]
    yield Table("Libraries", ("library", "version"), rows)


def _flattened(properties: Mapping[str, Any], parent: str = "") -> Iterator[tuple[str, str]]:
    """The names and values of nested properties: ``gpus / 1 / name``, ``H100``."""
    for key, value in properties.items():
        name = f"{parent} / {key}" if parent else str(key).replace("_", " ")
        is_list = isinstance(value, (list, tuple))
        if isinstance(value, Mapping):
            yield from _flattened(value, name)
        elif is_list and any(isinstance(item, Mapping) for item in value):
            yield from _flattened({str(i): item for i, item in enumerate(value, start=1)}, name)
        elif str(key).endswith("_bytes") and isinstance(value, int) and value > 0:
            yield name.removesuffix(" bytes"), size(value)
        elif value not in (None, "", [], ()):
            yield name, json.dumps(value) if is_list else str(value)


def _how_to_measure_again(result: Result) -> list[str]:
    """The commands that measure again."""
    if "watch" in result.config:
        sentences = "The loop was watched with iobench.watch(loader)."
        if not any("replay_steps" in trial.metrics for trial in result.trials):
            sentences += " To measure the loop without its loader: iobench.watch(loader, replay=8)."
        commands = "dataprep init, then iobench run configs/bench/train-resnet50.yaml"
        return [f"{sentences} To measure each part of the input: {commands}"]
    if result.hosts:
        return [
            f"Save this as config.yaml, then run on each of {len(result.hosts)} hosts: iobench run "
            f"config.yaml --hosts {len(result.hosts)} --host I --rendezvous URI"
        ]
    return ["Save this as config.yaml, then run: iobench run config.yaml"]


def _config_yaml(result: Result) -> str:
    """The config as YAML; empty if the result has none."""
    # Values that YAML has no type for, such as paths, become text.
    config = json.loads(json.dumps(result.config, default=str))
    if not config:
        return ""
    return str(yaml.safe_dump(config, sort_keys=False, allow_unicode=True)).rstrip()


def _accelerator_rates() -> Table:
    """The published rates of accelerators, with their sources."""
    rows = [
        [
            rate.name,
            model_words(rate.model),
            number(rate.samples_per_s),
            rate.work_kind.value,
            rate.source,
        ]
        for accelerator in ACCELERATORS
        for rate in accelerator.rates
    ]
    columns = ("accelerator", "model", "images/s", "kind of rate", "source")
    return Table("Accelerators", columns, rows)


def _interval_cell(estimate: Estimate | None, text_of: Callable[[float], str]) -> str:
    """An estimate with its interval; empty if there is none."""
    return with_interval(estimate, text_of) if estimate is not None else ""


def _estimate_cell(estimate: Mapping[str, Any] | None, text_of: Callable[[float], str]) -> str:
    """An estimate of the summary with its interval; empty if there is none."""
    return with_interval(Estimate(**estimate), text_of) if estimate else ""
