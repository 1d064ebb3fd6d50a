"""A config into a result: trials one by one, saved one by one."""

from __future__ import annotations

import contextlib
import datetime
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dataprep.counted import counted
from dataprep.credentials import without_credentials
from dataprep.errors import DataprepError
from dataprep.names import escape
from iobench.alone import alone
from iobench.analysis.analyse import summarised
from iobench.config import BenchConfig
from iobench.data.given import SameData, local_folders, making, require_given
from iobench.data.settings import LOCAL, BucketSettings, DataSettings
from iobench.display import Display
from iobench.errors import NothingRan, Unavailable
from iobench.isolation import run_isolated
from iobench.loops.loader_grid import saturated
from iobench.machine.environment import describe
from iobench.machine.object_stores import describe_store, endpoint_of
from iobench.others import clashes, others
from iobench.places import Places
from iobench.plan import places_of, trials
from iobench.references import references
from iobench.result import Result, usable
from iobench.rundir import RunDirectory
from iobench.trial import Outcome, Place, Status, Trial, TrialSpec
from iobench.trial_log import run_line, trial_line


@dataclass(frozen=True, slots=True)
class Run:
    """How a run came out. ``exit_code``: 1 where a trial failed, 0 otherwise."""

    result: Result
    folder: Path

    @property
    def exit_code(self) -> int:
        """What the command line ends with."""
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
    display: Display,
    *,
    resume: bool = False,
    forecast: Mapping[str, Any] | None = None,
) -> Run:
    """Measure what ``config`` asks for into ``folder``; what is there already is kept.

    ``forecast`` is what was predicted of it, and is kept with what comes out.

    Raises:
        RunConflict: ``folder`` holds another run, or this one without ``resume``, or a run is at
            work there.
        NothingRan: all trials were skipped; the report says why.
        ConfigError: ``folder`` cannot be written, or what is to be read is not there.
        KeyboardInterrupt: after what was measured has been reported.
    """
    specs = trials(config)
    if not specs:
        raise NothingRan("the config asks for nothing: give disk, object_store, loaders, training")
    if any("/" not in name for spec in specs for name in places_of(spec)):
        require_given(config.data)
    directory = RunDirectory(folder)
    begun = replace(_begun(config, specs), forecast=forecast or {})
    held_against = references(config, begun.environment)
    with alone(folder):
        result = directory.open(config, begun.environment, resume=resume) or begun
        told = {**result.references, **held_against, "planned": len(specs)}
        result = replace(result, references=told)
        done = {trial.id for trial in result.trials if trial.status == "done"}
        used: dict[str, Place] = {}
        _tell_again(result, display)
        result = replace(result, trials=tuple(t for t in result.trials if t.id in done))
        directory.begin(result)
        with usable(folder):
            same = SameData(result.references.get("fingerprints", {}) if done else {})
        measured = [*result.trials]
        try:
            kept = result.trials
            for trial, outcome in _measured(config, specs, kept, directory, display, used, same):
                if same.fingerprints != result.references.get("fingerprints"):
                    told = {**result.references, "fingerprints": {**same.fingerprints}}
                    result = replace(result, references=told)
                    directory.add(run_line(result))
                found = outcome or Outcome({})
                directory.add(trial_line(trial, found.series, found.samples))
                measured.append(trial)
        finally:
            # Also after Ctrl-C: a report of what there is.
            result = replace(result, trials=tuple(measured))
            result = summarised(_with_making(result, used))
            directory.finish(result)
    if all(trial.status == "skipped" for trial in result.trials):
        raise NothingRan(f"no trial could run: {_reasons(result)}; {directory.report} lists each")
    return Run(result, folder)


def _with_making(result: Result, used: Mapping[str, Place]) -> Result:
    """With what it took to make the shards that it has read."""
    found = {name: told for name, place in used.items() if (told := making(place)) is not None}
    if not found:
        return result
    known = {**result.references.get("making", {}), **found}
    return replace(result, references={**result.references, "making": known})


def _tell_again(result: Result, display: Display) -> None:
    """That trials of a resumed run which failed or were skipped are tried again."""
    counts = Counter(trial.status for trial in result.trials if trial.status != "done")
    told = [f"{counts[status]:,} {status}" for status in ("failed", "skipped") if counts[status]]
    if told:
        display.note(f"tried again: {', '.join(told)}")


def _begun(config: BenchConfig, specs: Sequence[TrialSpec]) -> Result:
    disks = config.disk.targets if config.disk else ()
    targets = local_folders(config.data)
    brought = others(specs)
    targets |= {target.label: Path(target.path).expanduser() for target in disks}
    return Result(
        name=config.name,
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        environment=describe(targets, _stores(config, specs))
        | ({"from other packages": brought} if brought else {}),
        config=config.model_dump(mode="json"),
    )


def _stores(config: BenchConfig, specs: Sequence[TrialSpec]) -> dict[str, dict[str, Any]]:
    """What is known of each object store that trials use, by label; ``data``: of copies."""
    named: dict[str, BucketSettings] = {}
    if any("@s3" in name for spec in specs for name in places_of(spec)):
        named["data"] = _read_straight(config.data) or config.data.bucket
    if config.object_store is not None:
        named |= {target.label: target for target in config.object_store.targets}
    return {label: _store(bucket) for label, bucket in named.items()}


def _read_straight(data: DataSettings) -> BucketSettings | None:
    """The store on which data lie already; None where they are copied to ``data.bucket``."""
    uri = data.shards or data.source or ""
    return BucketSettings(uri=uri, store=data.store) if "://" in uri else None


def _store(bucket: BucketSettings) -> dict[str, Any]:
    if bucket.uri == LOCAL:
        return describe_store(bucket.uri, None, own=True)
    return describe_store(bucket.uri, *endpoint_of(bucket.store))


def _measured(
    config: BenchConfig,
    specs: list[TrialSpec],
    earlier_trials: Sequence[Trial],
    directory: RunDirectory,
    display: Display,
    used: dict[str, Place],
    same: SameData,
) -> Iterator[tuple[Trial, Outcome | None]]:
    done = {trial.id for trial in earlier_trials}
    so_far = [*earlier_trials]
    with contextlib.ExitStack() as stack:
        for line in clashes(specs):
            display.note(line)
        display.start([spec.kind for spec in specs if spec.id not in done], len(done))
        stack.callback(display.stop)
        earlier = {name for spec in specs if spec.id in done for name in places_of(spec)}
        places = stack.enter_context(Places(config, display.note, earlier))
        hopeless: dict[str, str] = {}
        for spec in specs:
            if spec.id in done:
                continue
            # A framework that is missing is missing in every repeat.
            point = spec.id.rpartition("/")[0]
            display.begin(spec)
            if why := hopeless.get(point) or _needless(config, spec, so_far):
                trial, outcome = _refused(spec, "skipped", why), None
            else:
                trial, outcome = _one(config, spec, places, directory, display, same)
                used.update(places.found(places_of(spec)))
                if trial.status == "skipped":
                    hopeless[point] = trial.reason
            so_far.append(trial)
            display.end(trial)
            yield trial, outcome


def _needless(config: BenchConfig, spec: TrialSpec, so_far: Sequence[Trial]) -> str:
    gain = config.more_workers_gain
    return saturated(spec, so_far, gain) if gain is not None else ""


def _one(
    config: BenchConfig,
    spec: TrialSpec,
    places: Places,
    directory: RunDirectory,
    display: Display,
    same: SameData,
) -> tuple[Trial, Outcome | None]:
    names = places_of(spec)
    try:
        found = {name: places.get(name) for name in names}
    except Unavailable as error:
        return _refused(spec, "skipped", str(error)), None
    except (DataprepError, OSError) as error:
        return _refused(spec, "failed", " ".join(str(error).split())), None
    except Exception as error:  # noqa: BLE001  of a library on the way; others have another
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return _refused(spec, "failed", reason), None
    if why := same.made_anew(found):
        return _refused(spec, "failed", why), None
    # The wall clock says when; how long, a clock that nobody sets.
    started_s, begun_s = time.time(), time.monotonic()
    downloads = spec.params.get("access") == "file"
    with directory.scratch() if downloads else contextlib.nullcontext() as scratch:
        status, outcome, reason = run_isolated(
            spec,
            found,
            timeout_s=config.trial_timeout_s,
            environment=places.environment(names),
            progress=display.progress,
            sampling=config.sampling,
            scratch=scratch,
        )
    trial = Trial(
        id=spec.id,
        kind=spec.kind,
        params=spec.params,
        repeat=spec.repeat,
        status=status,
        metrics=outcome.metrics if outcome else {},
        cold=outcome.cold if outcome else None,
        reason=without_credentials(reason),
        started_s=round(started_s, 3),
        seconds=round(time.monotonic() - begun_s, 3),
    )
    return trial, outcome


def _refused(spec: TrialSpec, status: Status, reason: str) -> Trial:
    told = without_credentials(reason)
    return Trial(spec.id, spec.kind, spec.params, spec.repeat, status, reason=told)


def _reasons(result: Result) -> str:
    return "; ".join(sorted({trial.reason for trial in result.trials})[:3])
