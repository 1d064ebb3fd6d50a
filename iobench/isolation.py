"""A trial in a process group of its own: watched, timed out, and gone afterwards."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from iobench.child_process import LOOK_EVERY_S, ChildProcess
from iobench.machine.processes import SuspendedTime
from iobench.machine.sampling import SamplingSettings, beside
from iobench.machine.usage import sampled
from iobench.messages import Message, outcome_of, request
from iobench.trial import Outcome, Place, Status, TrialSpec

_LONGEST_SAID = 300
_GRACE_S = 2.0
_WORTH_A_WORD_S = 1.0
Verdict = tuple[Status, Outcome | None, str]


def run_isolated(
    spec: TrialSpec,
    places: Mapping[str, Place],
    *,
    timeout_s: float,
    environment: Mapping[str, str],
    progress: Callable[[float, str], None],
    sampling: SamplingSettings | None = None,
    scratch: Path | None = None,
) -> Verdict:
    """Run one trial; status, outcome if it is done, and else the reason.

    What the machine does meanwhile is sampled as ``sampling`` says; ``scratch`` is a folder that
    the trial may write to, and which the caller removes. Nothing else of the trial is left when
    this returns: its process group is killed.
    """
    with ChildProcess({**os.environ, **environment}, own_session=True) as child:
        message, still_s = None, 0.0
        begun_s = time.perf_counter()
        try:
            with beside(sampling, child.pid) as meanwhile:
                child.ask(request(spec, places, scratch))
                message, still_s = _listen(child, timeout_s, progress)
        finally:
            _end(child, 0 if message is None else _GRACE_S)
        status, outcome, reason = _verdict(message, child, timeout_s)
        if outcome is not None and meanwhile is not None:
            outcome = sampled(outcome, meanwhile.samples, begun_s)
        if outcome is not None and still_s >= _WORTH_A_WORD_S:
            metrics = {**outcome.metrics, "stood_still_s": round(still_s, 1)}
            outcome = replace(outcome, metrics=metrics)
        return status, outcome, reason


def _listen(
    child: ChildProcess, timeout_s: float, progress: Callable[[float, str], None]
) -> tuple[Message | None, float]:
    """The last message, an empty one if the trial ended without, None if time ran out; and for how
    many seconds either side was stopped. Where this one was, that is not of the trial's time.
    """
    suspended = SuspendedTime(child.pid)
    with selectors.DefaultSelector() as selector:
        selector.register(child, selectors.EVENT_READ)
        while (left_s := timeout_s - suspended.awake_s) > 0:
            ready = selector.select(min(left_s, LOOK_EVERY_S))
            suspended.look()
            if not ready:
                # Workers that outlive it hold the pipe open.
                if child.ended and not selector.select(0):
                    return {}, suspended.seconds
                continue
            for message in child.messages():
                if "progress" not in message:
                    return message, suspended.seconds
                done, unit = message["progress"]
                progress(done, unit)
            if child.closed:
                return {}, suspended.seconds
    return None, suspended.seconds


def _end(child: ChildProcess, grace_s: float) -> None:
    """Wait so long for the process to end, then kill whatever is left of its group."""
    child.wait(grace_s)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.end(0)


def _verdict(message: Message | None, child: ChildProcess, timeout_s: float) -> Verdict:
    if message is None:
        said = child.last_line
        last = f"; it last said: {said[:_LONGEST_SAID]}" if said else ""
        return "failed", None, f"not done after {timeout_s:g} s (trial_timeout_s): killed{last}"
    if "outcome" in message:
        return "done", outcome_of(message), ""
    if "skipped" in message:
        return "skipped", None, str(message["skipped"])
    if "failed" in message:
        return "failed", None, str(message["failed"])
    return "failed", None, child.how
