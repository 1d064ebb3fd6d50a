"""PURE. The appendix of the page: collapsed sections with all results, and the glossary."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from dataprep.message_text import counted
from iobench.analysis.analyse import Analysis
from iobench.analysis.epoch_cost import cost_lines, epoch_cost
from iobench.analysis.hosts import without_fewer_hosts
from iobench.analysis.loop_entries import loop_entry
from iobench.analysis.loops import Loop
from iobench.analysis.mlperf import PassMark, pass_marks
from iobench.analysis.repeats import is_number
from iobench.analysis.sizing import scale, scale_lines
from iobench.consumers.accelerators import ACCELERATORS
from iobench.machine.storage_kinds import kind_name
from iobench.report import (
    counting_rules,
    epoch_starts,
    hosts,
    latencies,
    ranks,
    side_by_side,
    watched_section,
)
from iobench.report.glossary import DEFINITIONS
from iobench.report.tables import Section, Table, estimate_cell, first_rows
from iobench.results import badges
from iobench.results.numbers import duration, number, precise_percent, size, with_interval
from iobench.results.result import Result
from iobench.results.trial import Trial
from iobench.results.wording import model_words, params_words, samples_words
from iobench.trials.ladder import RUNGS

_RATE_UNITS = {
    "mb_per_s": "MB/s",
    "iops": "IOPS",
    "requests_per_s": "requests/s",
}
"""The units of the rates of probes, by the name of the metric."""
_LOOP_FIGURES: Sequence[tuple[str, str, Callable[[float], str]]] = (
    ("samples/s that the device can consume", "consumes", number),
    ("samples/s, warm", "warm", number),
    ("samples/s, cold", "cold", number),
    ("samples/s from the object store", "store", number),
    ("share of the device's rate (au_ceiling)", "au_ceiling", precise_percent),
    ("au_mlperf", "au_mlperf", precise_percent),
    ("au_mlperf of the slowest rank", "au_mlperf_slowest", precise_percent),
    ("loss", "stall_fraction", precise_percent),
    ("waiting", "waiting_fraction", precise_percent),
    ("preparation stall", "preparation_stall", precise_percent),
    ("fetch stall", "fetch_stall", precise_percent),
    ("time to first batch", "time_to_first_batch_s", duration),
    ("start of a later epoch", "epoch_start_s", duration),
    ("share of the time in starts of epochs", "epoch_start_share", precise_percent),
)
"""The rows of the table of loops: the title, the key of a loop's figure, and how it is written."""
_IS_MET_WORDS = {True: "yes", False: "no", None: "unknown"}
_LOOP_SETTINGS = ("loader", "data", "workers", "batch_size", "device", "precision", "label")
"""The settings of a loop that are the last rows of the table of loops."""


def sections(analysis: Analysis) -> list[Section]:
    """The sections of the appendix. A section without content is left out."""
    all_sections = [*_result_sections(analysis), *_run_sections(analysis.result)]
    all_sections.append(
        Section("definitions", "Definitions and sources", [_accelerator_rates()], terms=DEFINITIONS)
    )
    return [section for section in all_sections if _has_content(section)]


def _result_sections(analysis: Analysis) -> list[Section]:
    """The sections about figures and findings. Most of them leave out trials on fewer hosts."""
    result = analysis.result
    full_result = without_fewer_hosts(result)
    side_by_side_tables = list(side_by_side.tables(analysis, full_result))
    return [
        Section("findings", f"Findings ({len(analysis.findings)})", [_findings(analysis)]),
        Section("together", "Several hosts", list(hosts.tables(result)), lines=hosts.notes(result)),
        Section("loops", "Training loops", list(_loops(analysis))),
        _watched_loops(analysis),
        Section("counted", "How the rates were counted", counting_rules.tables(full_result)),
        Section("first-batch", "Starts of epochs", epoch_starts.tables(full_result)),
        Section("latencies", "Latencies of steps and requests", latencies.tables(full_result)),
        Section("compared", "Access modes, processes and devices", side_by_side_tables),
        Section("predictions", "Predicted and measured rates", [_predictions(analysis)]),
        Section("hosts", "Hosts and cost", lines=list(_hosts_and_cost(analysis))),
    ]


def _run_sections(result: Result) -> list[Section]:
    """The sections about the run itself: its trials, its machine and its config."""
    again = _how_to_measure_again(result)
    return [
        Section("cold", "Whether each trial was cold or warm", [_page_cache(result)]),
        Section("trials", f"All trials ({len(result.trials)})", [_trials(result)]),
        Section("machine", "Machine, storage and versions", list(_machine(result.environment))),
        Section("config", "How to run it again", lines=again, code=_config_yaml(result)),
    ]


def _has_content(section: Section) -> bool:
    """Whether a section has a row, a sentence or a term. A config alone is no content."""
    has_rows = any(table.rows for table in section.tables)
    return bool(has_rows or section.lines or section.terms)


def _findings(analysis: Analysis) -> Table:
    """A row for each finding: the primary finding first, then problems, warnings and infos."""
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


def _watched_loops(analysis: Analysis) -> Section:
    """The section with a row for each watched loop, and with the limits of the figures."""
    rows = watched_section.rows(analysis.summary["watched"])
    notes = list(watched_section.notes(analysis.result.trials))
    table = Table("", watched_section.COLUMNS, rows)
    return Section("watched", "Watched loops", [table], lines=notes)


def _loops(analysis: Analysis) -> Iterator[Table]:
    """The figures of all loops, their ladders, the rules of MLPerf Storage, and their ranks."""
    if not analysis.loops:
        return
    yield _loop_figures(analysis.loops)
    for loop in analysis.loops:
        yield _ladder(loop)
    for mark in pass_marks(analysis.result, analysis.loops):
        yield _mlperf_rules(mark)
    for loop in analysis.loops:
        yield from ranks.tables(loop)


def _loop_figures(loops: Sequence[Loop]) -> Table:
    """A row for each figure and setting, and a column for each loop."""
    figures_by_loop: list[Mapping[str, Any]] = [loop_entry(loop) for loop in loops]
    rows = []
    for title, key, text_of in _LOOP_FIGURES:
        cells = [estimate_cell(figures.get(key), text_of) for figures in figures_by_loop]
        if any(cells):
            rows.append([title, *cells])
    for key in _LOOP_SETTINGS:
        cells = [str(figures.get(key) or "") for figures in figures_by_loop]
        rows.append([key.replace("_", " "), *cells])
    groups = [str(figures["group"]) for figures in figures_by_loop]
    return Table("", ("figure", *groups), rows)


def _mlperf_rules(mark: PassMark) -> Table:
    """A row for each rule of MLPerf Storage, with the measured figure."""
    rows = []
    for requirement in mark.requirements:
        is_met = _IS_MET_WORDS[requirement.is_met]
        rows.append([requirement.rule, requirement.measured, is_met])
    title = f"{mark.group}: {mark.model} on {mark.device}"
    columns = ("MLPerf Storage asks for", "measured", "met")
    note = "Only mlpstorage, the benchmark's own program, gives results of MLPerf Storage."
    return Table(title, columns, rows, note)


def _ladder(loop: Loop) -> Table:
    """A row for each rung of a loop's ladder."""
    rows = []
    for rung in loop.ladder.rungs:
        time = with_interval(rung.seconds, duration)
        cost, share, remark = "", "", ""
        if rung.cost is not None:
            cost = with_interval(rung.cost, duration)
            remark = "" if rung.differs_from_zero else "not distinguishable from zero"
        if rung.share is not None:
            share = precise_percent(rung.share.median)
        rows.append([loop.rung_words(rung), time, cost, share, remark])
    missing = [f"{rung}: {loop.not_measured[rung]}" for rung in RUNGS if rung in loop.not_measured]
    note = f"Not measured: {'; '.join(missing)}." if missing else ""
    columns = ("rung", "time per sample", "cost of the part", "share of the step", "remark")
    return Table(f"Ladder: {loop.group}", columns, rows, note)


def _predictions(analysis: Analysis) -> Table:
    """A row for each measured rate of a loop that was also predicted."""
    rows = []
    for check in analysis.checks:
        prediction, setting = check.prediction, check.setting
        limit = prediction.limit or f"not measured: {', '.join(prediction.missing)}"
        name = f"{check.group}, {setting.source}, {counted(setting.workers, 'worker')}"
        predicted = number(prediction.rate.median) if prediction.rate is not None else ""
        error = precise_percent(check.error) if check.error is not None else ""
        rows.append([name, predicted, with_interval(check.measured), error, limit])
    columns = ("loop", "predicted samples/s", "measured samples/s", "error", "predicted limit")
    note = "The predictions use measurements of the loaders and of the device, not of the loop."
    return Table("", columns, rows, note)


def _hosts_and_cost(analysis: Analysis) -> Iterator[str]:
    """Lines about a planned cluster or else about the parts' rates, and about the cost."""
    config, loop = analysis.result.config, analysis.loop
    scale_settings = config.get("scale")
    if scale_settings:
        yield from scale_lines(scale(analysis.result, analysis.capacities, loop, scale_settings))
    elif analysis.supplies:
        for supply in analysis.supplies:
            rate = ""
            if supply.samples_per_s:
                rate = f"{number(supply.samples_per_s)} samples/s: "
            yield f"{supply.part}: {rate}{supply.basis}"
    cost_settings = config.get("cost")
    if cost_settings:
        yield from cost_lines(epoch_cost(analysis.result, loop, cost_settings))


def _page_cache(result: Result) -> Table:
    """A row for each done trial that has a state of the page cache, with the evidence for it.

    The note has the limits of all trials, each once.
    """
    rows = []
    limits: list[str] = []
    for trial in result.trials:
        cold = trial.cold
        if cold is None:
            continue
        limits += [str(limit) for limit in cold.limits]
        if trial.status == "done":
            share, ratio = "unknown", "unknown"
            if is_number(cold.resident_before):
                share = precise_percent(cold.resident_before)
            if is_number(cold.physical_ratio):
                ratio = number(cold.physical_ratio)
            rows.append([_trial_name(trial), cold.asked, cold.label, share, ratio, cold.why])
    distinct_limits = dict.fromkeys(limits)
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
    return first_rows(columns, rows, "trials", [note, *distinct_limits])


def _trials(result: Result) -> Table:
    """A row for each trial, with its rates, or with the reason why it has none."""
    rows = []
    for trial in result.trials:
        outcome = _rates(trial) if trial.status == "done" else trial.reason
        cold = badges.trial_badge(trial.cold)
        rows.append([_trial_name(trial), trial.status, outcome, cold, duration(trial.seconds)])
    columns = ("trial", "status", "result", "page cache", "duration")
    return first_rows(columns, rows, "trials")


def _rates(trial: Trial) -> str:
    """``877 samples/s, 96.5 MB/s``: all rates of a trial."""
    rates = []
    samples = samples_words(trial.metrics, number)
    if samples:
        rates.append(samples)
    for metric, unit in _RATE_UNITS.items():
        if is_number(trial.metrics.get(metric)):
            rates.append(f"{number(trial.metrics[metric])} {unit}")
    return ", ".join(rates)


def _trial_name(trial: Trial) -> str:
    """The parameters and the repeat of a trial, from 1: ``loader torch-map, 2 workers #1``."""
    try:
        point = params_words(trial.kind, trial.params)
    except (LookupError, TypeError, ValueError):
        # A trial of another version of iobench may lack parameters, or have others.
        point = trial.kind
    return f"{point} #{trial.repeat + 1}"


def _machine(environment: Mapping[str, Any]) -> Iterator[Table]:
    """Tables of the storage, of the machine's other properties, and of the libraries."""
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
    """The names and values of nested properties: ``gpus / 1 / name``, ``H100``.

    Sizes in bytes have a unit. Properties without a value are left out.

    Args:
        properties: the properties.
        parent: the name of the property that contains them; empty at the top.
    """
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
    """Sentences with the commands that measure again."""
    if "watch" in result.config:
        sentences = "The loop was watched with iobench.watch(loader)."
        has_replay = any("replay_steps" in trial.metrics for trial in result.trials)
        if not has_replay:
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
    # The config goes through JSON, so that values for which YAML has no type become text.
    config = json.loads(json.dumps(result.config, default=str))
    if not config:
        return ""
    return str(yaml.safe_dump(config, sort_keys=False, allow_unicode=True)).rstrip()


def _accelerator_rates() -> Table:
    """The published rates of accelerators, with their sources."""
    rows = []
    for accelerator in ACCELERATORS:
        for rate in accelerator.rates:
            model, samples_per_s = model_words(rate.model), number(rate.samples_per_s)
            rows.append([rate.name, model, samples_per_s, rate.work_kind.value, rate.source])
    columns = ("accelerator", "model", "images/s", "kind of rate", "source")
    return Table("Accelerators", columns, rows)
