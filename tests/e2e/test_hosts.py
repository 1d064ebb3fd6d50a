"""Three hosts measure one run: three local processes that meet in a folder or in a bucket."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.limited_store import Limits, RunningStore, limited_store
from iobench.results.result import Result
from iobench.runner.run_folder import read
from iobench.servers.fault_proxy import FaultProxy, Match, RateLimit, Rule
from iobench.servers.moto_server import MotoServer
from tests.commandline import Finished, Running, files, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.process]

HOSTS = 3
SERVER, LINK = 9e6, 5e6
"""The limits of the server for all hosts, and of the link of one host, in bytes/s."""
LAUNCHERS = ("SLURM_", "OMPI_", "PMI_", "GROUP_", "AWS_BATCH_")
GETS: dict[str, Any] = {
    "clients": "boto3",
    "operations": "get",
    "object_bytes": 200_000,
    "connections": 4,
    "at_object_bytes": 200_000,
    "at_connections": 4,
    "seconds": 4.0,
    "pool_bytes": 2_000_000,
}


@pytest.fixture(autouse=True)
def _started_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the variables of launchers, as if no launcher had started the tests."""
    for name in [name for name in os.environ if name.startswith(LAUNCHERS)]:
        monkeypatch.delenv(name)


def config(folder: Path, **values: Any) -> Path:
    """A config file that all hosts share."""
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump({"name": "hosts", "repeats": 1, **values}))
    return path


@contextmanager
def started(
    config: Path,
    output: Path,
    rendezvous: str,
    *options: str,
    environments: Sequence[Mapping[str, str]] = ({},) * HOSTS,
) -> Iterator[list[Running]]:
    """Start a process for each host. All of them have ended after the block.

    The command line has the number of the host, unless the environment is that of Slurm.
    """
    with ExitStack() as stack:
        running = []
        for host, environment in enumerate(environments):
            command = ("run", str(config), "--output", str(output / f"of-{host}"))
            numbers: tuple[str, ...] = ("--hosts", str(len(environments)), "--host", str(host))
            if "SLURM_NODEID" in environment:
                numbers = ()
            meeting = ("--rendezvous", rendezvous, *options)
            arguments: tuple[str | Path, ...] = (*command, *numbers, *meeting)
            process = Running(*arguments, env=environment, program="iobench")
            running.append(stack.enter_context(process))
        yield running


def finished(running: Sequence[Running]) -> list[Finished]:
    """The results of all processes after they have ended."""
    return [host.finish() for host in running]


def result(output: Path) -> Result:
    """The result, which host 0 has written."""
    return read(output / "of-0")


@pytest.fixture
def store() -> Iterator[RunningStore]:
    """An S3 server with a limited rate."""
    with limited_store(Limits(bytes_per_s=SERVER)) as running:
        yield running


@pytest.fixture
def links(store: RunningStore) -> Iterator[list[FaultProxy]]:
    """The link of each host to the server."""
    with ExitStack() as stack:
        rules = [Rule(Match(), RateLimit(LINK))]
        yield [stack.enter_context(FaultProxy(store.url, rules)) for _ in range(HOSTS)]


@pytest.mark.s3
def test_the_sum_is_the_servers_limit_and_one_host_gets_its_own(
    store: RunningStore, links: list[FaultProxy], tmp_path: Path
) -> None:
    """The sum of the hosts is the server's limit, and one host alone gets the limit of its link.

    The hosts meet in a bucket of the same server. Both limits are set by the test.
    """
    target = {"label": "s3", "uri": f"{store.uri}/probe"}
    path = config(tmp_path, object_store={**GETS, "targets": [target]})
    options = ("--host-counts", "1", "--rendezvous-set", f"endpoint_url={store.url}")
    meeting = f"{store.uri}/meeting"
    environments = [{**MotoServer.ENVIRONMENT, "AWS_ENDPOINT_URL": link.url} for link in links]
    with started(path, tmp_path, meeting, *options, environments=environments) as running:
        ended = finished(running)
    assert [ended_host.code for ended_host in ended] == [0, 0, 0], ended
    trials = {trial.params.get("hosts"): trial.hosts for trial in result(tmp_path).trials}
    alone, together = trials[1], trials[None]
    assert alone is not None
    assert together is not None
    assert len(together.parts) == HOSTS
    # A busy machine may be slower, and the last object of each connection may end later.
    assert alone.sums["mb_per_s"] == pytest.approx(LINK / 1e6, rel=0.25)
    assert together.sums["mb_per_s"] == pytest.approx(SERVER / 1e6, rel=0.25)
    assert together.start_spread_s is not None
    assert "3 hosts together get" in ended[0].out
    assert "Several hosts" in (tmp_path / "of-0" / "report.html").read_text()
    written = json.loads((tmp_path / "of-0" / "result.json").read_text())
    assert written["summary"]["hosts"]["hosts"] == HOSTS
    assert [host["host"] for host in written["hosts"]] == [0, 1, 2]
    assert not (tmp_path / "of-1").exists()
    # Each host has its own objects; otherwise the first host to end would remove all of them.
    for host, link in enumerate(links):
        prefixes = set(re.findall(r"iobench-probe/([^/?&%]+)/", " ".join(_paths(link))))
        assert len(prefixes) == 1
        assert prefixes.pop().partition("-host-")[2] == (str(host) if host else "")


def _paths(link: FaultProxy) -> list[str]:
    """The paths that were requested through a link."""
    return [request.path for request in link.requests if "list-type" not in request.path]


def test_disks_loaders_and_accelerators_of_several_hosts(
    tmp_path: Path,
) -> None:
    """Each kind of trial starts on all hosts together and has figures of each host, under Slurm."""
    path = config(
        tmp_path,
        data={
            "images": 40,
            "classes": 2,
            "size": 64,
            "shard_size": "1MB",
            "folder": f"{tmp_path}/d",
        },
        disk={
            "targets": [{"label": "here", "path": str(tmp_path)}],
            "file_bytes": 2**20,
            "operations": "read",
            "patterns": "sequential",
            "cache": "warm",
            "block_bytes": 2**16,
            "parallelism": 1,
            "at_block_bytes": 2**16,
            "at_parallelism": 1,
            "seconds": 0.1,
            "layout_data": "shards@disk",
            "layouts": "shards",
            "layout_cache": "warm",
            "layout_parallelism": 1,
        },
        loaders=[{"loader": "raw", "workers": 1, "batch_size": 4, "seconds": 0.1}],
        training=[
            {
                "consumer": "paced",
                "images_per_s": 200,
                "accelerators": 2,
                "loader": "torch-iterable",
                "workers": 0,
                "batch_size": 2,
                "steps": 4,
                "inputs": ["warm"],
            }
        ],
    )
    rendezvous = tmp_path / "meeting"
    slurm = [{"SLURM_NODEID": str(host), "SLURM_NNODES": "2"} for host in range(2)]
    with started(path, tmp_path, str(rendezvous), environments=slurm) as running:
        ended = finished(running)
    assert [ended_host.code for ended_host in ended] == [0, 0], ended
    trials = result(tmp_path).trials
    assert {trial.kind for trial in trials} == {"disk", "layout", "loader", "train"}
    for trial in trials:
        assert trial.hosts is not None, trial.id
        assert [part.status for part in trial.hosts.parts] == ["done", "done"], trial.hosts
        assert trial.hosts.start_spread_s is not None
        assert trial.hosts.sums
    assert files(rendezvous) == set()
    assert not list(tmp_path.glob(".iobench-probe-*"))


def waiting_loader(folder: Path, seconds: float, repeats: int, **values: Any) -> Path:
    """The settings of a loader whose trial takes this time."""
    loader = {"loader": "null", "workers": 0, "seconds": seconds}
    return config(folder, loaders=[loader], repeats=repeats, **values)


def test_a_host_that_is_killed_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    """The trial of a killed host fails after the limit, and all other hosts end with code 1."""
    path = waiting_loader(tmp_path, 1.0, 3, trial_timeout_s=20)
    rendezvous = tmp_path / "meeting"
    with started(path, tmp_path, str(rendezvous), "--host-timeout", "60") as running:
        ready = "000002-steady-2"
        wait_until(lambda: any(ready in name for name in files(tmp_path)), "the second trial")
        running[2].send_group(signal.SIGKILL)
        ended = [host.finish() for host in running[:2]]
    assert [host.code for host in ended] == [1, 1], ended
    first, second, last = sorted(result(tmp_path).trials, key=lambda trial: trial.repeat)
    assert first.status == "done"
    assert second.status == "failed"
    assert second.reason.startswith("host 2: it ")
    assert last.status == "done"
    assert last.hosts is not None
    assert list(last.hosts.missing) == [2]
    codes = {finding.code for finding in result(tmp_path).findings}
    assert "host-missing" in codes
    again = "--resume"
    with started(path, tmp_path, str(rendezvous), again, "--host-timeout", "60") as running:
        ended = finished(running)
    assert [host.code for host in ended] == [0, 0, 0], ended
    assert "1 without some of the hosts" in ended[0].err
    assert not any(trial.hosts and trial.hosts.missing for trial in result(tmp_path).trials)


def test_host_0_that_is_killed_ends_the_others(tmp_path: Path) -> None:
    """Without host 0, the others end with exit code 1 after their time limit."""
    path = waiting_loader(tmp_path, 1.0, 2, trial_timeout_s=2)
    with started(
        path, tmp_path, str(tmp_path / "meeting"), "--host-timeout", "20", environments=({}, {})
    ) as running:
        wait_until(lambda: any("ready-1" in name for name in files(tmp_path)), "the first trial")
        running[0].send_group(signal.SIGKILL)
        ended = running[1].finish(1)
    assert ended.complaints[0].startswith("iobench: host 0 gave no sign for")


def test_another_config_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    """Both hosts exit with code 2 and write nothing."""
    other = tmp_path / "other"
    other.mkdir()
    paths = [waiting_loader(tmp_path, 1.0, 2), waiting_loader(other, 1.0, 3)]
    with ExitStack() as stack:
        running = []
        for host, path in enumerate(paths):
            command = ("run", path, "--output", tmp_path / f"of-{host}", "--hosts", "2")
            meeting = ("--host", str(host), "--rendezvous", tmp_path / "meeting")
            running.append(stack.enter_context(Running(*command, *meeting, program="iobench")))
        ended = [ended_host.finish(2) for ended_host in running]
    for ended_host in ended:
        assert "host 1 has another config than host 0 (repeats differ)" in ended_host.complaints[0]
    assert not list(tmp_path.glob("of-*"))
