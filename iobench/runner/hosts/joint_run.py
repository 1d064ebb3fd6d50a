"""A whole run on several hosts: join, measure the trials together, and end the run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from dataprep.errors import INTERRUPTED, DataprepError
from dataprep.message_text import counted
from iobench.config.benchmark import BenchConfig
from iobench.config.plan import location_names, trials
from iobench.errors import NothingRan
from iobench.results.trial import Outcome, Trial, TrialSpec
from iobench.runner.hosts.follower import Follower
from iobench.runner.hosts.joining import Gathering, join, make_hello
from iobench.runner.hosts.leader import Leader
from iobench.runner.hosts.messages import LeaderMessage
from iobench.runner.hosts.rendezvous import Rendezvous
from iobench.runner.hosts.settings import HostSettings
from iobench.runner.locations import Locations
from iobench.runner.progress import Lines
from iobench.runner.run_folder import new_run_id
from iobench.runner.trial_runner import TrialRunner

_MAX_SILENCE_S = 60.0
"""The assumed longest time in seconds that host 0 needs between two trials."""


@contextlib.contextmanager
def leading(settings: HostSettings, config: BenchConfig, display: Lines) -> Iterator[Leader]:
    """Gather the other hosts before the ``with`` block, and end the run on all hosts after it.

    The run ends on all hosts also if an error ends the block, or if not all hosts join.

    Args:
        settings: the settings of host 0, on which this function runs.
        config: the config of the run.
        display: shows the progress.

    Raises:
        ConfigError: a host has another config, version or number of hosts, or two hosts have the
            same number.
        NothingRan: not all hosts have joined in time.
        StoreError: the rendezvous cannot be used.
    """
    lobby = Rendezvous.at(settings.rendezvous, settings.store)
    hello = make_hello(settings, config)
    meeting_name = new_run_id()
    gathering = Gathering(lobby, hello, config, meeting_name)
    display.note(f"waiting for {counted(settings.hosts - 1, 'host')} at {lobby.uri}")
    leader = Leader(
        lobby.within(meeting_name),
        hello,
        wait_s=settings.wait_s,
        trial_limit_s=config.trial_timeout_s,
        note=display.note,
    )
    try:
        followers = gathering.wait(settings.wait_s)
        leader.meet(followers)
    except BaseException as error:
        with contextlib.suppress(DataprepError, OSError):
            # A host with an answer may be about to join, and would then wait for host 0. The end
            # is announced to it as well.
            leader.meet(gathering.admitted())
            leader.end(_exit_code(error), _reason(error))
            gathering.clear()
        raise
    for follower in followers:
        display.note(f"host {follower.host} is {follower.machine}")
    try:
        yield leader
    except BaseException as error:
        with contextlib.suppress(DataprepError, OSError):
            leader.end(_exit_code(error), _reason(error))
        raise
    leader.end(leader.exit_code)


def follow(settings: HostSettings, config: BenchConfig, folder: Path, display: Lines) -> int:
    """Take part in the run of host 0. Returns the exit code of the whole run.

    Args:
        settings: the settings of this host.
        config: the config of the run.
        folder: the folder for files that a trial downloads. No result is written to it, since host
            0 writes the result.
        display: shows the progress.

    Raises:
        ConfigError: host 0 has another config, version or number of hosts.
        NothingRan: host 0 does not answer, or has reported that nothing was measured.
        HostLost: host 0 has stopped sending messages.
        StoreError: the rendezvous cannot be used.
    """
    lobby = Rendezvous.at(settings.rendezvous, settings.store)
    hello = make_hello(settings, config)
    meeting_name = join(lobby, hello, settings.wait_s)
    display.note(f"host {settings.host} of {settings.hosts} has joined at {lobby.uri}")
    # A host that waits for the next trial waits longest: host 0 may wait for a late host, then for
    # the end of the present trial, and then it chooses the next trial.
    patience_s = settings.wait_s + config.trial_timeout_s + _MAX_SILENCE_S
    follower = Follower(lobby.within(meeting_name), settings.host, patience_s)
    message = follower.wait_for_start()
    if message.phase != "end":
        message = _measure_until_end(follower, message, settings, config, folder, display)
    follower.confirm_end()
    if message.reason and message.exit_code == NothingRan.exit_code:
        raise NothingRan(message.reason)
    if message.reason:
        display.note(f"host 0 has ended the run: {message.reason}")
    return message.exit_code


def _measure_until_end(
    follower: Follower,
    start: LeaderMessage,
    settings: HostSettings,
    config: BenchConfig,
    folder: Path,
    display: Lines,
) -> LeaderMessage:
    """Measure until the end of the run. Returns the last message of host 0.

    Args:
        follower: communicates with host 0.
        start: the message of host 0 before the first trial.
        settings: the settings of this host.
        config: the config of the run.
        folder: the folder for files that a trial downloads.
        display: shows the progress.
    """
    specs = {spec.id: spec for spec in trials(config)}
    earlier_names: set[str] = set()
    if start.resumed:
        for spec in specs.values():
            earlier_names.update(location_names(spec))
    # Each host has its own name, so that its probes do not write to the files of another host.
    run_id = f"{start.run_id}-host-{settings.host}"
    locations = Locations(config, display.note, run_id, earlier_names)
    runner = TrialRunner(config, locations, folder, display, {})

    def measure(
        spec: TrialSpec, own_spec: TrialSpec, begin: Callable[[], None]
    ) -> tuple[Trial, Outcome]:
        display.begin(spec)
        trial, outcome = runner.measure(own_spec, begin)
        # The progress shows the trial as host 0 has named it, without this host's seed.
        display.end(replace(trial, params=spec.params, repeat=spec.repeat))
        return trial, outcome

    has_downloads = any(spec.params.get("access") == "file" for spec in specs.values())
    with contextlib.ExitStack() as stack:
        if has_downloads:
            folder.mkdir(parents=True, exist_ok=True)
        display.start([spec.kind for spec in specs.values()], 0)
        stack.callback(display.stop)
        stack.enter_context(locations)
        return follower.measure_trials(specs, measure)


def _exit_code(error: BaseException) -> int:
    """The exit code of a run that this error ends."""
    if isinstance(error, DataprepError):
        return error.exit_code
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1


def _reason(error: BaseException) -> str:
    """The reason, for the other hosts, why this error ends the run."""
    if isinstance(error, KeyboardInterrupt):
        return "it was interrupted"
    return str(error) or type(error).__name__
