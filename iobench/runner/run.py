"""Run a config: measure its trials one after the other, log each trial, and write the report."""

from __future__ import annotations

import contextlib
import datetime
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dataprep.message_text import counted
from dataprep.name_encoding import escape
from iobench.analysis.analyse import summarised
from iobench.config.benchmark import BenchConfig
from iobench.config.plan import (
    from_other_packages,
    in_config_order,
    location_names,
    name_clashes,
    on_hosts,
    trials,
)
from iobench.config.references import references as configured_references
from iobench.data.existing import check_existing_data, local_folders, sharding_run
from iobench.data.settings import LOCAL, BucketSettings
from iobench.errors import NothingRan
from iobench.machine.environment import describe
from iobench.machine.object_stores import (
    OWN_SERVER,
    StoreDescription,
    describe_store,
    endpoint_of,
)
from iobench.results.result import (
    STEADY_STATE,
    HostFacts,
    Result,
    errors_naming,
    run_line,
    trial_line,
)
from iobench.results.trial import Outcome, Trial, TrialSpec
from iobench.runner.hosts.leader import Leader
from iobench.runner.locations import Locations
from iobench.runner.progress import Lines
from iobench.runner.run_folder import (
    REPORT,
    add_line,
    begin_log,
    new_run_id,
    open_run,
    run_lock,
    write_results,
)
from iobench.runner.trial_runner import TrialRunner, trial_without_figures
from iobench.trials.loader_grid import too_many_workers

_MAX_SHOWN_REASONS = 3
"""The maximum number of reasons in the message of a run whose trials were all skipped."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run that has ended: its result, and the folder with its report."""

    result: Result
    folder: Path

    @property
    def exit_code(self) -> int:
        """The exit code of the command: 1 if a trial failed, else 0."""
        return int(any(trial.status == "failed" for trial in self.result.trials))

    @property
    def counts(self) -> str:
        """The numbers of trials, with a line for each status and reason: ``12 trials done``."""
        trials = self.result.trials
        done = sum(trial.status == "done" for trial in trials)
        lines = [f"{counted(done, 'trial')} done"]
        for status in ("skipped", "failed"):
            reasons = Counter(trial.reason for trial in trials if trial.status == status)
            for reason, count in reasons.items():
                lines.append(f"{count} {status}: {escape(reason)}")
        return "\n".join(lines)


def run(
    config: BenchConfig,
    folder: Path,
    display: Lines,
    *,
    resume: bool = False,
    forecast: Mapping[str, Any] | None = None,
    leader: Leader | None = None,
    host_counts: Sequence[int] = (),
) -> Run:
    """Measure all trials of a config, and write the log, the result and the report.

    Args:
        config: the config of the run.
        folder: the run folder, which receives all files.
        display: shows the progress.
        resume: whether to continue the run in ``folder``.
        forecast: the totals of the forecast, which are saved with the result. A resumed run keeps
            the totals with which it began.
        leader: the leader of a run on several hosts; None if this host measures alone.
        host_counts: smaller numbers of hosts on which each trial is measured as well.

    Raises:
        RunConflict: ``folder`` holds a run that cannot be continued; or it holds this run, but
            ``resume`` is not set; or another process uses ``folder`` for a run.
        NothingRan: the config has no trials, or all trials were skipped. If trials were skipped,
            the report has the reasons.
        ConfigError: ``folder`` cannot be written, or the data to read do not exist.
        ResultError: the run in ``folder`` is damaged.
        SchemaTooNew: a newer version wrote the run in ``folder``.
        StoreError: a file of the run cannot be written, or the rendezvous cannot be used.
        KeyboardInterrupt: the user pressed Ctrl-C. The report with the trials so far is written.
    """
    specs = on_hosts(trials(config), host_counts)
    if not specs:
        raise NothingRan(
            "the config has no trials: add at least one of disk, object_store, loaders and training"
        )
    # The names of probe targets have a slash, such as disk/LABEL. The other names are data sets.
    if any("/" not in name for name in _location_names(specs)):
        check_existing_data(config.data)
    empty_result = replace(
        new_result(config, specs), forecast=forecast or {}, hosts=_host_facts(leader)
    )
    environment = empty_result.environment
    new_references = configured_references(config, environment)
    with run_lock(folder):
        hosts = leader.hosts if leader is not None else 1
        earlier_result = open_run(folder, config, environment, resume=resume, hosts=hosts)
        result = earlier_result or empty_result
        kept_trials = [trial for trial in result.trials if _is_complete(trial)]
        _show_repeated_trials(display, result.trials, len(kept_trials))
        is_resumed = earlier_result is not None
        if leader is not None:
            leader.start(result.run_id, config.order_seed, resumed=is_resumed)
        # The analysis compares this number with the trials that have ended on all hosts.
        planned = sum("hosts" not in spec.params for spec in specs)
        references = {**result.references, **new_references, "planned": planned}
        # Kept trials follow the rate rule of the version that measured them.
        rates = result.rates if kept_trials else empty_result.rates
        result = replace(result, references=references, trials=tuple(kept_trials), rates=rates)
        begin_log(folder, result)
        measured = list(kept_trials)
        try:
            # A run that was killed has not removed the files and objects of its probes.
            earlier_names = _location_names(specs) if is_resumed else set()
            locations = Locations(config, display.note, result.run_id, earlier_names)
            remaining_trials = _RemainingTrials(
                config, folder, display, locations, result, references, leader
            )
            remaining_trials.measure(specs, measured)
        finally:
            # After an error or Ctrl-C, the results are written with the trials that have ended.
            ordered = in_config_order(config, measured)
            result = replace(result, trials=tuple(ordered), hosts=_host_facts(leader))
            result = summarised(result)
            write_results(folder, result)
    _require_a_measured_trial(result, folder)
    return Run(result, folder)


def _require_a_measured_trial(result: Result, folder: Path) -> None:
    """Check that at least one trial of a run was not skipped.

    Raises:
        NothingRan: all trials were skipped. The message has some of the reasons.
    """
    if any(trial.status != "skipped" for trial in result.trials):
        return
    reasons = sorted({trial.reason for trial in result.trials})
    shown_reasons = "; ".join(reasons[:_MAX_SHOWN_REASONS])
    raise NothingRan(
        f"no trial could run: {shown_reasons}; {folder / REPORT} has the reason of each trial"
    )


class _RemainingTrials:
    """Measures the trials of a run that are not kept from before, and adds each to the log.

    Args:
        config: the config of the run.
        folder: the run folder.
        display: shows the progress.
        locations: the locations of data, disks and stores. The files and objects of probes are
            removed from them at the end.
        result: the result of the run, with the trials that are kept from before.
        references: the same object as ``result.references``. It is changed: facts about the data
            are added after each trial that uses the data.
        leader: the leader of a run on several hosts; None if this host measures alone.
    """

    def __init__(
        self,
        config: BenchConfig,
        folder: Path,
        display: Lines,
        locations: Locations,
        result: Result,
        references: dict[str, Any],
        leader: Leader | None,
    ) -> None:
        self._config, self._folder, self._display = config, folder, display
        self._locations, self._result, self._references = locations, result, references
        self._leader = leader
        fingerprints: dict[str, str] = {}
        # If trials are kept, the data must still have the fingerprints of those trials. Otherwise
        # the data may have changed, and new fingerprints are recorded.
        if result.trials:
            with errors_naming(folder):
                fingerprints = dict(references.get("fingerprints", {}))
        self._fingerprints = fingerprints
        self._runner = TrialRunner(config, locations, folder, display, fingerprints)
        self._skip_reasons: dict[str, str] = {}
        """The reasons why points were skipped, by point: the trial's id without its repeat."""

    def measure(self, specs: Sequence[TrialSpec], measured: list[Trial]) -> None:
        """Measure the trials of ``specs`` that are not in ``measured``, and add them to it.

        Each trial is added to ``measured`` as soon as it ends. The caller therefore has all trials
        so far if this method is interrupted.
        """
        done_ids = {trial.id for trial in measured}
        remaining = [spec for spec in specs if spec.id not in done_ids]
        for line in name_clashes(remaining):
            self._display.note(line)
        self._display.start([spec.kind for spec in remaining], len(done_ids))
        with contextlib.ExitStack() as stack:
            stack.callback(self._display.stop)
            stack.enter_context(self._locations)
            for spec in remaining:
                self._display.begin(spec)
                trial, outcome = self._measure_or_skip(spec, measured)
                self._add_facts_about_data(spec)
                data = trial_line(trial, outcome.series, outcome.samples, outcome.spans)
                add_line(self._folder, data)
                measured.append(trial)
                self._display.end(trial)

    def _measure_or_skip(self, spec: TrialSpec, measured: Sequence[Trial]) -> tuple[Trial, Outcome]:
        """Measure a trial, or skip it without trying.

        A trial is skipped without trying if an earlier repeat of the same point was skipped, for
        example because a framework is missing. With ``more_workers_gain``, a loader is also skipped
        if the trials in ``measured`` show that more workers gain too little.
        """
        point = spec.id.rpartition("/")[0]
        reason = self._skip_reasons.get(point, "")
        min_gain = self._config.more_workers_gain
        if not reason and min_gain is not None:
            reason = too_many_workers(spec, measured, min_gain)
        if reason:
            return trial_without_figures(spec, "skipped", reason), Outcome({})
        if self._leader is not None:
            trial, outcome = self._leader.measure(spec, self._runner.measure)
        else:
            trial, outcome = self._runner.measure(spec)
        if trial.status == "skipped":
            self._skip_reasons[point] = trial.reason
        return trial, outcome

    def _add_facts_about_data(self, spec: TrialSpec) -> None:
        """Add facts about the data of a trial to the references.

        The facts are the fingerprints of the data, and how their shards were made. New
        fingerprints are also logged, so that a run that is killed has them.
        """
        for name, location in self._locations.resolved(location_names(spec)).items():
            sharding = sharding_run(location)
            if sharding is not None:
                facts_by_name = self._references.get("making", {})
                self._references["making"] = {**facts_by_name, name: asdict(sharding)}
        if self._fingerprints != self._references.get("fingerprints"):
            self._references["fingerprints"] = dict(self._fingerprints)
            # The result shares the dictionary of references, so this line has the new facts.
            add_line(self._folder, run_line(self._result))


def _is_complete(trial: Trial) -> bool:
    """Whether a trial has results of all its hosts. A resumed run does not measure it again."""
    return trial.status == "done" and (trial.hosts is None or not trial.hosts.missing)


def _show_repeated_trials(display: Lines, trials: Sequence[Trial], kept: int) -> None:
    """Show how many trials of an earlier run are measured again, and why.

    Args:
        display: shows the line.
        trials: the trials of the earlier run.
        kept: how many of them are not measured again.
    """
    counts = Counter(trial.status for trial in trials)
    repeated = [f"{counts[key]:,} {key}" for key in ("failed", "skipped") if counts[key]]
    incomplete = counts["done"] - kept
    if incomplete:
        repeated.append(f"{incomplete:,} without some of the hosts")
    if repeated:
        display.note(f"trials measured again: {', '.join(repeated)}")


def _host_facts(leader: Leader | None) -> tuple[HostFacts, ...]:
    """Facts about each host; empty for a run on a single host."""
    return tuple(leader.host_facts()) if leader is not None else ()


def _location_names(specs: Sequence[TrialSpec]) -> set[str]:
    """The names of all data, disk targets and stores that trials use."""
    names: set[str] = set()
    for spec in specs:
        names.update(location_names(spec))
    return names


def new_result(config: BenchConfig, specs: Sequence[TrialSpec]) -> Result:
    """The result of a new run: this machine and the config, but no trials yet.

    Args:
        config: the config of the run.
        specs: the trials that will be measured.
    """
    folders = local_folders(config.data)
    if config.disk is not None:
        for target in config.disk.targets:
            folders[target.label] = Path(target.path).expanduser()
    environment: Mapping[str, Any] = describe(folders, _describe_stores(config, specs))
    plugins = from_other_packages(specs)
    if plugins:
        environment = {**environment, "from other packages": plugins}
    return Result(
        run_id=new_run_id(),
        name=config.name,
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        environment=environment,
        config=config.model_dump(mode="json"),
        rates=STEADY_STATE,
    )


def _describe_stores(
    config: BenchConfig, specs: Sequence[TrialSpec]
) -> dict[str, StoreDescription]:
    """A description of each object store that trials use, by its label.

    The label of a probe's store is that of its target. The label of the store from which loaders
    read is ``data``.
    """
    buckets: dict[str, BucketSettings] = {}
    if any("@s3" in name for name in _location_names(specs)):
        data = config.data
        uri = data.shards or data.source or ""
        is_remote = "://" in uri  # Local data are copied to ``data.bucket``.
        buckets["data"] = BucketSettings(uri=uri, store=data.store) if is_remote else data.bucket
    if config.object_store is not None:
        for target in config.object_store.targets:
            buckets[target.label] = target
    descriptions: dict[str, StoreDescription] = {}
    for label, bucket in buckets.items():
        if bucket.uri == LOCAL:
            descriptions[label] = OWN_SERVER
        else:
            endpoint_url, region = endpoint_of(bucket.store)
            descriptions[label] = describe_store(bucket.uri, endpoint_url, region)
    return descriptions
