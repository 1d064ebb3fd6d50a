"""Run a config: each trial is measured, logged and shown, one after the other."""

from __future__ import annotations

import contextlib
import datetime
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dataprep.counted import counted
from dataprep.credentials import without_credentials
from dataprep.names import escape
from iobench.analysis.analyse import summarised
from iobench.child import reason
from iobench.child_process import run_isolated
from iobench.clock import since_1970_s
from iobench.config import BenchConfig
from iobench.data.given import local_folders, made_anew, making, require_given
from iobench.data.settings import LOCAL, BucketSettings
from iobench.display import Lines
from iobench.errors import NothingRan, Unavailable
from iobench.loops.loader_grid import saturated
from iobench.machine.environment import describe
from iobench.machine.object_stores import OWN_SERVER, describe_store, endpoint_of
from iobench.places import Places
from iobench.plan import clashes, in_config_order, others, places_of, trials
from iobench.references import references
from iobench.result import STEADY_STATE, Result, run_line, trial_line, usable
from iobench.rundir import (
    REPORT,
    add_line,
    begin_log,
    new_run_id,
    open_run,
    run_lock,
    scratch_folder,
    write_results,
)
from iobench.trial import Outcome, Status, Trial, TrialSpec


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
) -> Run:
    """Measure what ``config`` asks for; write everything to ``folder``.

    ``forecast`` is the prediction; it is stored with the result.

    Raises:
        RunConflict: ``folder`` holds another run, or this one without ``resume``, or a run is at
            work there.
        NothingRan: all trials were skipped; the report says why.
        ConfigError: ``folder`` cannot be written, or the data to read do not exist.
        KeyboardInterrupt: after a report of the trials so far.
    """
    specs = trials(config)
    if not specs:
        raise NothingRan("the config asks for nothing: give disk, object_store, loaders, training")
    if any("/" not in name for spec in specs for name in places_of(spec)):
        require_given(config.data)
    begun = replace(_begun(config, specs), forecast=forecast or {})
    limits = references(config, begun.environment)
    with run_lock(folder):
        continued = open_run(folder, config, begun.environment, resume=resume)
        result = continued or begun
        counts = Counter(trial.status for trial in result.trials)
        again = [f"{counts[why]:,} {why}" for why in ("failed", "skipped") if counts[why]]
        if again:
            display.note(f"tried again: {', '.join(again)}")
        measured = [trial for trial in result.trials if trial.status == "done"]
        known = {**result.references, **limits, "planned": len(specs)}
        # Trials that are kept decide by which rule the rates of the run were measured.
        rates = result.rates if measured else begun.rates
        result = replace(result, references=known, trials=tuple(measured), rates=rates)
        begin_log(folder, result)
        try:
            # If this run was killed, its files and objects may still be in any of its places.
            used = {name for spec in specs for name in places_of(spec)} if continued else set()
            places = Places(config, display.note, result.run_id, used)
            _measure(config, specs, measured, folder, display, places, result, known)
        finally:
            # Also after Ctrl-C: a report of what there is.
            ordered = in_config_order(config, measured)
            result = summarised(replace(result, trials=tuple(ordered)))
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
) -> None:
    """Run the trials that are not in ``measured``, and add them to it and to the log.

    ``places`` are entered meanwhile. ``known`` are the references of ``result``; facts about the
    data are added to them.
    """
    done = {trial.id for trial in measured}
    to_come = [spec for spec in specs if spec.id not in done]
    with usable(folder):
        fingerprints = dict(known.get("fingerprints", {}) if done else {})
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
                trial, outcome = _refused(spec, "skipped", why), Outcome({})
            else:
                trial, outcome = _one(config, spec, places, folder, display, fingerprints)
                if trial.status == "skipped":
                    hopeless[point] = trial.reason
            for name, place in places.found(places_of(spec)).items():
                if (made := making(place)) is not None:
                    known["making"] = {**known.get("making", {}), name: made}
            if fingerprints != known.get("fingerprints"):
                known["fingerprints"] = {**fingerprints}
                add_line(folder, run_line(result))
            add_line(folder, trial_line(trial, outcome.series, outcome.samples, outcome.spans))
            measured.append(trial)
            display.end(trial)


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


def _one(
    config: BenchConfig,
    spec: TrialSpec,
    places: Places,
    folder: Path,
    display: Lines,
    fingerprints: dict[str, str],
) -> tuple[Trial, Outcome]:
    names = places_of(spec)
    try:
        found = {name: places.get(name) for name in names}
    except Unavailable as error:
        return _refused(spec, "skipped", str(error)), Outcome({})
    except Exception as error:  # noqa: BLE001  anything from a third-party store
        return _refused(spec, "failed", reason(error)), Outcome({})
    if why := made_anew(fingerprints, found):
        return _refused(spec, "failed", why), Outcome({})
    # The wall clock for the date; a monotonic one for the duration.
    started_s, begun_s = time.time(), time.monotonic()
    downloads = spec.params.get("access") == "file"
    with scratch_folder(folder) if downloads else contextlib.nullcontext() as scratch:
        status, outcome, why = run_isolated(
            spec,
            found,
            timeout_s=config.trial_timeout_s,
            environment=places.environment(names),
            progress=display.progress,
            sampling=config.sampling,
            scratch=scratch,
        )
    outcome = outcome or Outcome({})
    trial = replace(
        _refused(spec, status, why),
        metrics=outcome.metrics,
        cold=outcome.cold,
        started_s=round(started_s, 3),
        seconds=round(time.monotonic() - begun_s, 3),
        time_zero_s=since_1970_s(outcome.origin_s) if outcome.origin_s is not None else 0.0,
    )
    return trial, outcome


def _refused(spec: TrialSpec, status: Status, why: str) -> Trial:
    told = without_credentials(why)
    return Trial(spec.id, spec.kind, spec.params, spec.repeat, status, reason=told)
