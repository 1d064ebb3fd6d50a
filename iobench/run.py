"""Run a config: each trial is measured, logged and shown, one after the other."""

from __future__ import annotations

import contextlib
import datetime
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dataprep.counted import counted
from dataprep.names import escape
from iobench.analysis.analyse import summarised
from iobench.config import BenchConfig
from iobench.data.existing import check_existing_data, local_folders, sharding_run
from iobench.data.settings import LOCAL, BucketSettings
from iobench.display import Lines
from iobench.errors import NothingRan
from iobench.hosts.first_host import FirstHost
from iobench.loops.loader_grid import saturated
from iobench.machine.environment import describe
from iobench.machine.object_stores import OWN_SERVER, describe_store, endpoint_of
from iobench.places import Places
from iobench.plan import clashes, in_config_order, on_hosts, others, places_of, trials
from iobench.references import references
from iobench.result import STEADY_STATE, HostFacts, Result, run_line, trial_line, usable
from iobench.rundir import (
    REPORT,
    add_line,
    begin_log,
    new_run_id,
    open_run,
    run_lock,
    write_results,
)
from iobench.trial import Outcome, Trial, TrialSpec
from iobench.trial_runner import TrialRunner, not_measured


@dataclass(frozen=True, slots=True)
class Run:
    """The outcome of a run. ``exit_code``: 1 if a trial failed, else 0."""

    result: Result
    folder: Path

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return int(any(trial.status == "failed" for trial in self.result.trials))

    @property
    def counts(self) -> str:
        """``12 trials done, 3 skipped, 1 failed``, with the reasons."""
        trials = self.result.trials
        lines = [f"{counted(sum(trial.status == 'done' for trial in trials), 'trial')} done"]
        for status in ("skipped", "failed"):
            reasons = Counter(trial.reason for trial in trials if trial.status == status)
            lines += [f"{count} {status}: {escape(why)}" for why, count in reasons.items()]
        return "\n".join(lines)


def run(
    config: BenchConfig,
    folder: Path,
    display: Lines,
    *,
    resume: bool = False,
    forecast: Mapping[str, Any] | None = None,
    first: FirstHost | None = None,
    host_counts: Sequence[int] = (),
) -> Run:
    """Measure what ``config`` asks for; write everything to ``folder``.

    ``forecast`` is the prediction; it is stored with the result. If this is the first of several
    hosts, ``first`` leads the others; each point is then also measured on ``host_counts`` hosts.

    Raises:
        RunConflict: ``folder`` holds another run, or this one without ``resume``, or a run is at
            work there.
        NothingRan: all trials were skipped; the report says why.
        ConfigError: ``folder`` cannot be written, or the data to read do not exist.
        KeyboardInterrupt: after a report of the trials so far.
    """
    specs = on_hosts(trials(config), host_counts)
    if not specs:
        raise NothingRan("the config asks for nothing: give disk, object_store, loaders, training")
    if any("/" not in name for spec in specs for name in places_of(spec)):
        check_existing_data(config.data)
    begun = replace(_begun(config, specs), forecast=forecast or {}, hosts=_hosts(first))
    limits = references(config, begun.environment)
    with run_lock(folder):
        hosts = first.hosts if first is not None else 1
        continued = open_run(folder, config, begun.environment, resume=resume, hosts=hosts)
        result = continued or begun
        measured = [trial for trial in result.trials if _is_complete(trial)]
        counts = Counter(trial.status for trial in result.trials)
        again = [f"{counts[why]:,} {why}" for why in ("failed", "skipped") if counts[why]]
        if without_hosts := counts["done"] - len(measured):
            again.append(f"{without_hosts:,} without some of the hosts")
        if again:
            display.note(f"tried again: {', '.join(again)}")
        if first is not None:
            first.start(result.run_id, config.order_seed, resumed=continued is not None)
        planned = sum("hosts" not in spec.params for spec in specs)
        known = {**result.references, **limits, "planned": planned}
        # Trials that are kept decide by which rule the rates of the run were measured.
        rates = result.rates if measured else begun.rates
        result = replace(result, references=known, trials=tuple(measured), rates=rates)
        begin_log(folder, result)
        try:
            # If this run was killed, its files and objects may still be in any of its places.
            used = {name for spec in specs for name in places_of(spec)} if continued else set()
            places = Places(config, display.note, result.run_id, used)
            _measure(config, specs, measured, folder, display, places, result, known, first)
        finally:
            # Also after Ctrl-C: a report of what there is.
            ordered = in_config_order(config, measured)
            result = replace(result, trials=tuple(ordered), hosts=_hosts(first))
            result = summarised(result)
            write_results(folder, result)
    if all(trial.status == "skipped" for trial in result.trials):
        reasons = "; ".join(sorted({trial.reason for trial in result.trials})[:3])
        raise NothingRan(f"no trial could run: {reasons}; {folder / REPORT} lists each")
    return Run(result, folder)


def _measure(
    config: BenchConfig,
    specs: Sequence[TrialSpec],
    measured: list[Trial],
    folder: Path,
    display: Lines,
    places: Places,
    result: Result,
    known: dict[str, Any],
    first: FirstHost | None,
) -> None:
    """Run the trials that are not in ``measured``, and add them to it and to the log.

    ``places`` are entered meanwhile. ``known`` are the references of ``result``; facts about the
    data are added to them.
    """
    done = {trial.id for trial in measured}
    to_come = [spec for spec in specs if spec.id not in done]
    with usable(folder):
        fingerprints = dict(known.get("fingerprints", {}) if done else {})
    runner = TrialRunner(config, places, folder, display, fingerprints)
    hopeless: dict[str, str] = {}
    for line in clashes(to_come):
        display.note(line)
    display.start([spec.kind for spec in to_come], len(done))
    with contextlib.ExitStack() as stack:
        stack.callback(display.stop)
        stack.enter_context(places)
        for spec in to_come:
            display.begin(spec)
            # If a framework is missing, it is missing in every repeat.
            point = spec.id.rpartition("/")[0]
            why = hopeless.get(point, "")
            if not why and config.more_workers_gain is not None:
                why = saturated(spec, measured, config.more_workers_gain)
            if why:
                trial, outcome = not_measured(spec, "skipped", why), Outcome({})
            else:
                if first is not None:
                    trial, outcome = first.measure(spec, runner.measure)
                else:
                    trial, outcome = runner.measure(spec)
                if trial.status == "skipped":
                    hopeless[point] = trial.reason
            for name, place in places.found(places_of(spec)).items():
                if (shards := sharding_run(place)) is not None:
                    known["making"] = {**known.get("making", {}), name: asdict(shards)}
            if fingerprints != known.get("fingerprints"):
                known["fingerprints"] = {**fingerprints}
                add_line(folder, run_line(result))
            add_line(folder, trial_line(trial, outcome.series, outcome.samples, outcome.spans))
            measured.append(trial)
            display.end(trial)


def _is_complete(trial: Trial) -> bool:
    """Whether a trial need not be measured again when its run is resumed."""
    return trial.status == "done" and (trial.hosts is None or not trial.hosts.missing)


def _hosts(first: FirstHost | None) -> tuple[HostFacts, ...]:
    return tuple(first.described()) if first is not None else ()


def _begun(config: BenchConfig, specs: Sequence[TrialSpec]) -> Result:
    disks = config.disk.targets if config.disk else ()
    targets = local_folders(config.data)
    brought = others(specs)
    targets |= {target.label: Path(target.path).expanduser() for target in disks}
    return Result(
        run_id=new_run_id(),
        name=config.name,
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        environment=describe(targets, _stores(config, specs))
        | ({"from other packages": brought} if brought else {}),
        config=config.model_dump(mode="json"),
        rates=STEADY_STATE,
    )


def _stores(config: BenchConfig, specs: Sequence[TrialSpec]) -> dict[str, Mapping[str, Any]]:
    """A description of each object store that trials use, by label; ``data`` has the images."""
    named: dict[str, BucketSettings] = {}
    if any("@s3" in name for spec in specs for name in places_of(spec)):
        data = config.data
        uri = data.shards or data.source or ""
        named["data"] = BucketSettings(uri=uri, store=data.store) if "://" in uri else data.bucket
    if config.object_store is not None:
        named |= {target.label: target for target in config.object_store.targets}
    return {
        label: OWN_SERVER
        if bucket.uri == LOCAL
        else describe_store(bucket.uri, *endpoint_of(bucket.store))
        for label, bucket in named.items()
    }
