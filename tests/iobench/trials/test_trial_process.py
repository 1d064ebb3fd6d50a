"""The process of a trial, as its parent sees it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import Mock

import psutil
import pytest

from iobench.clock import SystemClock
from iobench.errors import TrialFailed, Unavailable
from iobench.machine.processes import SuspendedTime
from iobench.machine.sampling import SamplingSettings
from iobench.results.trial import Context, Location, TrialSpec
from iobench.trials.rank_processes import run_ranks
from iobench.trials.trial_process import ChildProcess, Message, TrialRequest
from iobench.trials.trial_timeout import TrialEnd, run_with_timeout
from tests.commandline import wait_until
from tests.iobench.small_runs import ThirdParty

pytestmark = pytest.mark.slow


def heard(child: ChildProcess) -> list[Message]:
    """Return all messages of the process until its end."""
    actual: list[Message] = []
    with selectors.DefaultSelector() as selector:
        selector.register(child, selectors.EVENT_READ)
        while not child.closed:
            selector.select()
            actual += child.messages()
    return actual


def test_messages_and_the_end_of_a_process() -> None:
    """Messages come through the pipe, and printed text explains how the process ended."""
    with ChildProcess(os.environ, own_session=False) as child:
        assert child.messages() == []
        assert not child.ended
        assert os.getpgid(child.pid) == os.getpgid(0)
        child.request(TrialRequest(TrialSpec("nobody", {}), {}))
        (message,) = heard(child)
        assert message["failed"] == "KeyError: 'nobody'"
        assert message["at_s"] > 0
        wait_until(lambda: child.ended, "its end")
        assert child.ending == "ended with exit code 0: KeyError: 'nobody'"


def test_a_message_longer_than_one_read_is_read_to_its_end() -> None:
    """A message that is larger than one read is complete after the end of its process."""
    target = "x" * 300_000  # The reason for skipping the trial repeats this label.
    with ChildProcess(os.environ, own_session=False) as child:
        fcntl.fcntl(child.fileno(), fcntl.F_SETPIPE_SZ, 2**20)
        child.request(TrialRequest(TrialSpec("disk", {**DISK, "target": target}), _disk(target)))
        wait_until(lambda: child.ended, "its end")
        (message,) = child.messages()
        assert target in message["skipped"]


def test_a_rank_that_has_ended_with_unread_output_is_not_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A long message arrives whole, also if the parent looks only after the rank's end."""
    target = "x" * 300_000

    class LargePipeProcess(ChildProcess):
        # The pipe is as large as on a machine with pages of 64 KiB, and is read after the end.

        def __init__(self, *settings: Any, **options: Any) -> None:
            super().__init__(*settings, **options)
            fcntl.fcntl(self.fileno(), fcntl.F_SETPIPE_SZ, 2**20)

        def messages(self) -> list[Message]:
            wait_until(lambda: self.ended, "its end")
            return super().messages()

    monkeypatch.setattr("iobench.trials.rank_processes.ChildProcess", LargePipeProcess)
    context = Context(_disk(target), SystemClock(), lambda done, unit: None)
    with pytest.raises(Unavailable, match=r"xxx.* does not exist"):
        run_ranks("disk", {**DISK, "target": target}, 1, context, environment=os.environ)


def test_it_is_gone_when_nobody_wants_it_any_more() -> None:
    """The process ends even if it was asked for nothing."""
    with ChildProcess(os.environ, own_session=True) as child:
        assert os.getpgid(child.pid) == child.pid
    assert child.ended


def test_it_inherits_what_it_is_to_keep() -> None:
    """The process has the descriptors that it is given, such as that of a file without a name."""
    descriptor = os.memfd_create("kept")
    try:
        inherited = [descriptor]
        with ChildProcess(os.environ, own_session=False, inherited_descriptors=inherited) as child:
            kept = Path(f"/proc/{child.pid}/fd/{descriptor}")
            assert str(kept.readlink()).startswith("/memfd:kept")
    finally:
        os.close(descriptor)


def test_one_that_is_killed_says_by_what() -> None:
    """The ending names the signal."""
    with ChildProcess(os.environ, own_session=False) as child:
        child.end(0)
        assert child.ending == "killed by SIGKILL (out of memory?): it printed nothing"


@pytest.mark.parametrize("code", [errno.EAGAIN, errno.ENOMEM, errno.EMFILE])
def test_a_process_that_cannot_be_started_fails_its_trial(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """The reason says what is missing and what to do; no descriptor stays open."""
    descriptors = Path("/proc/self/fd")
    before = len(list(descriptors.iterdir()))
    refused = Mock(side_effect=OSError(code, os.strerror(code)))
    monkeypatch.setattr("subprocess.Popen", refused)
    status, outcome, reason = tried("steady")
    assert (status, outcome) == ("failed", None)
    message = f"the process of the trial could not be started: {os.strerror(code)}: "
    assert reason.startswith(message)
    assert reason.endswith("then continue with --resume")
    assert len(list(descriptors.iterdir())) == before


def test_a_rank_that_cannot_be_started_fails_its_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason names the rank, and the ranks that were started have ended."""
    popen = subprocess.Popen
    refused = Mock(side_effect=[OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))])

    def second_fails(*settings: Any, **options: Any) -> Any:
        monkeypatch.setattr("subprocess.Popen", refused)
        return popen(*settings, **options)

    monkeypatch.setattr("subprocess.Popen", second_fails)
    context = Context({}, SystemClock(), lambda done, unit: None)
    with pytest.raises(TrialFailed, match=r"rank 1 of 2: .* could not be started: Resource"):
        run_ranks("rank", PARAMS, 2, context, environment=os.environ)
    assert _children() == []


def _disk(target: str) -> dict[str, Location]:
    """Return the locations of a disk target that does not exist."""
    return {f"disk/{target}": Location("/nowhere/at-all", "empty")}


DISK: dict[str, Any] = {
    "operation": "read",
    "pattern": "random",
    "block_bytes": 4096,
    "cache": "warm",
    "file_bytes": 4096,
    "parallelism": 1,
    "seconds": 1.0,
}
PARAMS: dict[str, Any] = {
    "data": "",
    "cache": "warm",
    "batch_size": 16,
    "workers": 0,
    "prefetch": 2,
    "seconds": 0.05,
}


def tried(
    name: str,
    timeout_s: float = 60,
    *,
    environment: Mapping[str, str] | None = None,
    progress: Callable[[float, str], None] = lambda done, unit: None,
    **changed: Any,
) -> TrialEnd:
    """Run a trial of an odd loader."""
    return run_with_timeout(
        TrialSpec("loader", {**PARAMS, "loader": f"odd-{name}", **changed}),
        {},
        timeout_s=timeout_s,
        environment=environment or {},
        progress=progress,
    )


def test_somebody_elses_loader_is_measured(third_party: ThirdParty) -> None:
    """Notes, figures and progress of a third party's loader come back."""
    reported: list[tuple[float, str]] = []
    status, outcome, reason = run_with_timeout(
        TrialSpec("loader", {**PARAMS, "loader": "odd-steady"}),
        {"unused": Location("s3://bucket/x", "shards")},
        timeout_s=60,
        environment={},
        progress=lambda done, unit: reported.append((done, unit)),
    )
    assert (status, reason) == ("done", "")
    assert outcome is not None
    assert outcome.metrics["samples"] == 16 * outcome.metrics["batches"]
    assert outcome.metrics["notes"] == ["a third party's"]
    assert outcome.cold is None
    assert reported[0] == (16, "samples")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("raising", "ValueError: shard 7 is broken \x1b[2J\udcff"),
        ("silent", "MemoryError"),
        ("empty", "the loader gave no batch"),
        ("killed", "killed by SIGKILL (out of memory?): it printed nothing"),
        ("signalled", f"killed by signal {int(signal.SIGRTMIN) + 1}: it printed nothing"),
        ("exiting", "ended with exit code 3: license expired"),
        ("vanishing", "ended with exit code 0: it printed nothing"),
    ],
)
def test_a_trial_that_fails_says_why(third_party: ThirdParty, name: str, message: str) -> None:
    """The reason is one line, however the process ends."""
    assert tried(name) == ("failed", None, message)


def test_a_missing_package_skips_the_trial(third_party: ThirdParty) -> None:
    """The reason names the extra that brings it."""
    message = "oddlib is not installed: pip install 'odd-loaders[oddlib]'"
    assert tried("missing") == ("skipped", None, message)


def test_a_trial_that_hangs_is_killed(third_party: ThirdParty) -> None:
    """A process that ignores SIGTERM is killed, and the reason names the key for more time."""
    assert tried("hanging", 1) == ("failed", None, "not done after 1 s (trial_timeout_s): killed")
    assert _children() == []


def test_a_trial_that_hangs_has_said_over_what(third_party: ThirdParty) -> None:
    """The reason has the last printed line, shortened and without control characters."""
    status, _, reason = tried("waiting", 8)
    assert status == "failed"
    killed = "not done after 8 s (trial_timeout_s): killed; the last line that it printed: "
    assert reason.startswith(killed + "waiting for the license server \\x1b[2J...")
    assert len(reason) == len(killed) + 300


def test_printed_text_is_no_message(third_party: ThirdParty) -> None:
    """Printed text is not taken for a message, and more than a pipe holds does no harm."""
    status, outcome, _ = tried("noisy")
    assert (status, outcome is None) == ("done", False)


@pytest.mark.parametrize(("name", "status"), [("orphaning", "done"), ("forsaken", "failed")])
def test_processes_of_a_trial_end_with_it(third_party: ThirdParty, name: str, status: str) -> None:
    """A process that holds the pipe open neither delays the end nor outlives the trial."""
    assert tried(name)[0] == status
    orphan = int((third_party.folder / "orphan").read_text())
    wait_until(lambda: not _runs(orphan), f"the end of process {orphan}")


def test_an_unknown_loader_fails(third_party: ThirdParty) -> None:
    """The reason lists the known loaders, also those of third parties."""
    _, _, reason = tried("nobody")
    assert reason.startswith("no loader 'odd-nobody': use one of ")
    assert "odd-copied" in reason


def test_an_interrupt_ends_the_trial(third_party: ThirdParty) -> None:
    """An interrupt of the run ends the process that it waits for."""

    def stop(done: float, unit: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tried("steady", seconds=60, progress=stop)
    assert _children() == []


def test_the_environment_is_the_trials_own(
    third_party: ThirdParty, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Variables are added for the trial alone."""
    status, _, _ = tried("counted", environment={"ODD_FOLDER": str(tmp_path)})
    assert status == "done"
    assert (tmp_path / "count").exists()
    assert os.environ["ODD_FOLDER"] == str(third_party.folder)


def _runs(pid: int) -> bool:
    """Return whether a process runs."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def _children() -> list[str]:
    """Return the commands of trial processes that this process has started."""
    commands = []
    for process in psutil.process_iter(["ppid", "cmdline", "status"]):
        command = " ".join(process.info["cmdline"] or [])
        if process.info["ppid"] == os.getpid() and "iobench.trials.trial_process_main" in command:
            commands.append(command)
    return commands


def test_metrics_have_the_usage_of_the_processes() -> None:
    """The metrics have the memory and the processors of the trial's processes."""
    status, outcome, _ = run_with_timeout(
        TrialSpec("loader", {**PARAMS, "loader": "mock", "item_s": 0.0005, "seconds": 2.0}),
        {},
        timeout_s=60,
        environment={},
        progress=lambda done, unit: None,
        sampling=SamplingSettings(per_s=10, samplers=("tree",)),
    )
    assert status == "done"
    assert outcome is not None
    metrics = outcome.metrics
    assert metrics["memory_bytes"] > 5_000_000  # An interpreter takes at least that much.
    assert metrics["memory_counted"] in ("PSS", "RSS")
    assert metrics["cores_busy"] >= metrics["worker_cores_busy"] == 0
    cpu_s = metrics["cores_busy"] * metrics["seconds"]
    expected = 1000 * cpu_s / metrics["samples"]
    assert metrics["cpu_s_per_1000_samples"] == pytest.approx(expected)


class Waking(SuspendedTime):
    """A watch that lets a stopped process go on after one second."""

    last: ClassVar[int]

    def __init__(self, process: int) -> None:
        super().__init__(process)
        self.process = process
        Waking.last = process

    def look(self) -> None:
        super().look()
        if self.seconds >= 1:
            # The id is still valid, since the parent has not yet waited for the process.
            os.kill(self.process, signal.SIGCONT)


def test_a_trial_that_is_stopped_meanwhile_says_so(
    third_party: ThirdParty, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The metrics have the suspended time, which would look like a slow disk."""
    monkeypatch.setattr("iobench.trials.trial_timeout.SuspendedTime", Waking)
    stopped: list[float] = []

    def stop(done: float, unit: str) -> None:
        if not stopped:
            os.kill(Waking.last, signal.SIGSTOP)
            stopped.append(done)

    status, outcome, _ = tried("steady", seconds=2.0, progress=stop)
    assert status == "done"
    assert outcome is not None
    assert outcome.metrics["stood_still_s"] >= 1


def test_waiting_for_a_trial_may_be_suspended(
    third_party: ThirdParty, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Ctrl-Z an outcome that is there counts, however late it is read."""
    hour_s: list[float] = []
    clock = partial(SuspendedTime, clock=lambda: time.monotonic() + sum(hour_s))
    monkeypatch.setattr("iobench.trials.trial_timeout.SuspendedTime", clock)
    status, outcome, reason = tried("steady", progress=lambda done, unit: hour_s.append(3600))
    assert (status, reason) == ("done", "")
    assert outcome is not None
    assert outcome.metrics["stood_still_s"] >= 3600
