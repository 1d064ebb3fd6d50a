"""A whole run of several hosts: meet, measure the trials together, and part."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from dataprep.counted import counted
from dataprep.errors import INTERRUPTED, DataprepError
from iobench.config import BenchConfig
from iobench.display import Lines
from iobench.errors import NothingRan
from iobench.hosts.first_host import FirstHost
from iobench.hosts.joining import Gathering, hello_of, join
from iobench.hosts.messages import Statement
from iobench.hosts.other_host import OtherHost
from iobench.hosts.rendezvous import Rendezvous
from iobench.hosts.settings import HostSettings
from iobench.places import Places
from iobench.plan import places_of, trials
from iobench.rundir import new_run_id
from iobench.trial import Outcome, Trial, TrialSpec
from iobench.trial_runner import TrialRunner

_LONGEST_SILENCE_S = 60.0
"""Time that host 0 needs between two trials, at most."""


@contextlib.contextmanager
def leading(settings: HostSettings, config: BenchConfig, display: Lines) -> Iterator[FirstHost]:
    """Gather the other hosts for the block, which measures; tell them when it has ended.

    Raises:
        ConfigError: a host has another config or version.
        NothingRan: not all hosts came.
        StoreError: the rendezvous cannot be used.
    """
    lobby = Rendezvous.at(settings.rendezvous, settings.store)
    own = hello_of(settings, config)
    meeting = new_run_id()
    gathering = Gathering(lobby, own, config, meeting)
    display.note(f"waiting for {counted(settings.hosts - 1, 'host')} at {lobby.uri}")
    first = FirstHost(
        lobby.within(meeting),
        own,
        wait_s=settings.wait_s,
        trial_limit_s=config.trial_timeout_s,
        note=display.note,
    )
    try:
        others = gathering.wait(settings.wait_s)
        first.meet(others)
    except BaseException as error:
        with contextlib.suppress(DataprepError, OSError):
            # A host that has read its answer waits for the end, whether or not it has joined yet.
            first.meet(gathering.admitted())
            first.end(_exit_code(error), _reason(error))
            gathering.clear()
        raise
    for hello in others:
        display.note(f"host {hello.host} is {hello.machine}")
    try:
        yield first
    except BaseException as error:
        with contextlib.suppress(DataprepError, OSError):
            first.end(_exit_code(error), _reason(error))
        raise
    first.end(first.exit_code)


def follow(settings: HostSettings, config: BenchConfig, folder: Path, display: Lines) -> int:
    """Take part in the run of host 0; returns the exit code of the whole run.

    ``folder`` is for files that a trial downloads; the result is in the folder of host 0.

    Raises:
        ConfigError: host 0 has another config or version.
        NothingRan: host 0 does not answer, or nothing was measured.
        HostLost: host 0 gives no sign any more.
        StoreError: the rendezvous cannot be used.
    """
    lobby = Rendezvous.at(settings.rendezvous, settings.store)
    own = hello_of(settings, config)
    meeting = join(lobby, own, settings.wait_s)
    display.note(f"host {settings.host} of {settings.hosts} has joined at {lobby.uri}")
    # Host 0 waits for hosts and for the end of a trial, each up to a limit.
    patience_s = settings.wait_s + config.trial_timeout_s + _LONGEST_SILENCE_S
    other = OtherHost(lobby.within(meeting), settings.host, patience_s)
    statement = other.started()
    if statement.phase != "end":
        statement = _take_part(other, statement, settings, config, folder, display)
    other.farewell()
    if statement.reason and statement.exit_code == NothingRan.exit_code:
        raise NothingRan(statement.reason)
    if statement.reason:
        display.note(f"host 0 has ended the run: {statement.reason}")
    return statement.exit_code


def _take_part(
    other: OtherHost,
    statement: Statement,
    settings: HostSettings,
    config: BenchConfig,
    folder: Path,
    display: Lines,
) -> Statement:
    """Measure until the end of the run; returns the last statement of host 0."""
    specs = {spec.id: spec for spec in trials(config)}
    used = {name for spec in specs.values() for name in places_of(spec)}
    # Probes write below a name of their own on each host.
    name = f"{statement.run_id}-host-{settings.host}"
    places = Places(config, display.note, name, used if statement.resumed else set())
    runner = TrialRunner(config, places, folder, display, {})

    def measure(
        spec: TrialSpec, own: TrialSpec, begin: Callable[[], None]
    ) -> tuple[Trial, Outcome]:
        display.begin(spec)
        trial, outcome = runner.measure(own, begin)
        display.end(replace(trial, params=spec.params, repeat=spec.repeat))
        return trial, outcome

    downloads = any(spec.params.get("access") == "file" for spec in specs.values())
    with contextlib.ExitStack() as stack:
        if downloads:
            folder.mkdir(parents=True, exist_ok=True)
        display.start([spec.kind for spec in specs.values()], 0)
        stack.callback(display.stop)
        stack.enter_context(places)
        return other.trials(specs, measure)


def _exit_code(error: BaseException) -> int:
    if isinstance(error, DataprepError):
        return error.exit_code
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1


def _reason(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "it was interrupted"
    return str(error) or type(error).__name__
