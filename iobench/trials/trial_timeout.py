"""Run one trial in its own process, and kill it after the time limit (``trial_timeout_s``).

The whole process group of the trial is killed, so that none of its processes remains.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from dataprep.schema import typed
from iobench.errors import TrialFailed
from iobench.machine.processes import SuspendedTime
from iobench.machine.sampling import SamplingSettings, sampling_beside
from iobench.machine.usage import add_samples
from iobench.results.trial import GIVE_UP_SHARE, Location, Outcome, Status, TrialSpec
from iobench.trials.trial_process import LOOK_EVERY_S, ChildProcess, Message, TrialRequest

DEFAULT_TIMEOUT_S = 600.0
"""The default of ``trial_timeout_s``: the time in which a trial must be done, in seconds."""
_GRACE_S = 2.0
"""How long a process may take to end by itself after its last message."""
_MAX_LINE_CHARACTERS = 300
"""The report of a killed trial has this many characters of the last line that it printed."""
_MIN_REPORTED_SUSPENSION_S = 1.0
"""The shortest suspended time that is worth reporting."""


class TrialEnd(NamedTuple):
    """How a trial ended.

    Attributes:
        status: the status of the trial.
        outcome: its outcome; None if it was skipped or failed.
        reason: the reason why it was skipped or failed; empty if it was done.
    """

    status: Status
    outcome: Outcome | None
    reason: str


@dataclass(frozen=True, slots=True)
class _LastMessage:
    """The last message of a trial, or the reason why there is none.

    Attributes:
        message: the message; empty if the trial ended without a message, and None if the time limit
            has passed.
        suspended_s: the seconds for which the process of the trial, or this one, was suspended.
    """

    message: Message | None
    suspended_s: float


def run_with_timeout(
    spec: TrialSpec,
    locations: Mapping[str, Location],
    *,
    timeout_s: float,
    environment: Mapping[str, str],
    progress: Callable[[float, str], None],
    sampling: SamplingSettings | None = None,
    scratch: Path | None = None,
    begin: Callable[[], None] | None = None,
) -> TrialEnd:
    """Run one trial in its own process. A trial whose process cannot be started has failed.

    Args:
        spec: the trial.
        locations: the locations that its parameters name, by their names.
        timeout_s: the time limit. The trial itself ends a little before this limit, with a reason.
            Time for which this process was suspended, or waited for other hosts, does not count.
            Time for which only the trial was suspended counts.
        environment: environment variables of the trial beside those of this process.
        progress: is called with the work done so far and its unit.
        sampling: how the machine is sampled meanwhile; None to sample nothing.
        scratch: a folder that the trial may write to. The caller removes it.
        begin: is called when the trial is prepared. It returns when the measurement may begin, and
            raises TrialFailed if the trial must not be measured. If it is None, the measurement
            begins at once.
    """
    request = TrialRequest(
        spec,
        dict(locations),
        scratch,
        ends_within_s=GIVE_UP_SHARE * timeout_s,
        waits=begin is not None,
    )
    variables = {**os.environ, **environment}
    try:
        with ChildProcess(variables, own_session=True) as child:
            return _run(child, request, timeout_s, progress, sampling, begin)
    except TrialFailed as error:
        return TrialEnd("failed", None, str(error))


def _run(
    child: ChildProcess,
    request: TrialRequest,
    timeout_s: float,
    progress: Callable[[float, str], None],
    sampling: SamplingSettings | None,
    begin: Callable[[], None] | None,
) -> TrialEnd:
    """Run a trial in its process, and end all processes of its group.

    See ``run_with_timeout`` for the arguments.
    """
    begun_s = time.perf_counter()
    grace_s = 0.0
    try:
        with sampling_beside(sampling, child.pid) as recorder:
            child.request(request)
            last = _wait_for_last_message(child, timeout_s, progress, begin)
            if last.message is not None:
                grace_s = _GRACE_S
    finally:
        # Workers may still run after the process of the trial has ended.
        child.wait(grace_s)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.end(0)
    end = _end_of_trial(last.message, child, timeout_s)
    outcome = end.outcome
    if outcome is None:
        return end
    if recorder is not None:
        outcome = add_samples(outcome, recorder.samples, begun_s)
    if last.suspended_s >= _MIN_REPORTED_SUSPENSION_S:
        metrics = {**outcome.metrics, "stood_still_s": round(last.suspended_s, 1)}
        outcome = replace(outcome, metrics=metrics)
    return end._replace(outcome=outcome)


def _wait_for_last_message(
    child: ChildProcess,
    timeout_s: float,
    progress: Callable[[float, str], None],
    begin: Callable[[], None] | None,
) -> _LastMessage:
    """Follow the messages of a trial until it has ended or the time limit has passed."""
    suspended = SuspendedTime(child.pid)
    with selectors.DefaultSelector() as selector:
        selector.register(child, selectors.EVENT_READ)
        while True:
            remaining_s = timeout_s - suspended.awake_s
            if remaining_s <= 0:
                return _LastMessage(None, suspended.seconds)
            ready = selector.select(min(remaining_s, LOOK_EVERY_S))
            suspended.look()
            if not ready:
                # The pipe may be open, because workers outlive the process of the trial.
                if child.ended and not selector.select(0):
                    return _LastMessage({}, suspended.seconds)
                continue
            for message in child.messages():
                if "progress" in message:
                    done, unit = message["progress"]
                    progress(done, unit)
                elif "ready" in message and begin is not None:
                    begin()
                    child.let_begin()
                    suspended.skip()
                else:
                    return _LastMessage(message, suspended.seconds)
            if child.closed:
                return _LastMessage({}, suspended.seconds)


def _end_of_trial(message: Message | None, child: ChildProcess, timeout_s: float) -> TrialEnd:
    """The end of a trial from its last message, or from the end of its process."""
    if message is None:
        reason = f"not done after {timeout_s:g} s (trial_timeout_s): killed"
        last_line = child.last_line
        if last_line:
            reason += f"; the last line that it printed: {last_line[:_MAX_LINE_CHARACTERS]}"
        return TrialEnd("failed", None, reason)
    if "outcome" in message:
        return TrialEnd("done", typed(Outcome, message["outcome"]), "")
    if "skipped" in message:
        return TrialEnd("skipped", None, str(message["skipped"]))
    if "failed" in message:
        return TrialEnd("failed", None, str(message["failed"]))
    return TrialEnd("failed", None, child.ending)
