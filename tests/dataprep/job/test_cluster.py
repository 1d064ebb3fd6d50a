"""Tasks run on Dask clusters: our own worker processes, a custom class, or a running cluster."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from distributed import LocalCluster
from typer.testing import CliRunner, Result

import dataprep
from dataprep.cli.main import app
from dataprep.config.shard_config import DaskOptions
from dataprep.errors import (
    ConfigError,
    DataprepError,
    JobError,
    LeaseLost,
    PermissionRefused,
    SourceChanged,
    StoreUnreachable,
    TooManyFailures,
    WorkerLost,
)
from dataprep.job import cluster as cluster_module
from dataprep.job import dask_connection, shard_queue
from dataprep.job.cluster import Cluster
from dataprep.job.conversion import Progress
from dataprep.job.dask_connection import require_reachable
from dataprep.job.in_process import InProcess
from dataprep.job.report import Display
from dataprep.job.shard_task import ShardResult, ShardTask
from dataprep.machine.processes import this_process
from dataprep.sources.imagefolder import ImageFolder
from dataprep.stores.local import LocalStore
from tests.commandline import objects, wait_until
from tests.dataprep.job.tasks import (
    CrowdedStore,
    DeadlySource,
    DeadlyStore,
    FailingSource,
    FolderSource,
    SmallCluster,
    UnseenSource,
    WaitingSource,
    make_tasks,
    shards,
)

pytestmark = pytest.mark.process

SMALL = "tests.dataprep.job.tasks.SmallCluster"


class Runner:
    """Runs tasks on a cluster and collects its messages."""

    def __init__(self, **options: Any) -> None:
        self.results: list[ShardResult] = []
        self.reported: list[Progress] = []
        self.announced: list[str] = []
        self.announce: Callable[[str], None] = self.announced.append
        self.engine = Cluster(
            DaskOptions(**options), self.reported.append, lambda line: self.announce(line)
        )

    def run(
        self,
        tasks: list[Callable[[], ShardTask]],
        on_result: Callable[[ShardResult], object] = lambda result: None,
    ) -> None:
        """Run all tasks."""

        def both(result: ShardResult) -> None:
            self.results.append(result)
            on_result(result)

        with contextlib.closing(self.engine):
            self.engine.run(tasks, both)


class TestProcesses:
    def test_dashboard(
        self, images: Path, store: LocalStore, expected: Mapping[str, bytes]
    ) -> None:
        """Processes give the bytes of one thread. The dashboard listens only on loopback."""
        runner = Runner(workers=2, dashboard="127.0.0.1:0")
        pages: list[int] = []

        def look(result: ShardResult) -> None:
            if pages:
                return
            (line,) = runner.announced
            url = line.removeprefix("Dask dashboard: ")
            with urllib.request.urlopen(url, timeout=30) as page:
                pages.append(page.status)
            port = urllib.parse.urlsplit(url).port
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.2", port or 0), timeout=5)

        runner.run(make_tasks(images, FolderSource(images), store, 6), look)
        assert pages == [200]
        assert runner.announced[0].startswith("Dask dashboard: http://127.0.0.1:")
        assert sorted(result.shard for result in runner.results) == list(range(6))
        assert shards(store) == expected

    def test_uploads_are_bounded(self, images: Path, tmp_path: Path) -> None:
        """All worker processes together never store more shards at once than allowed."""
        crowd = tmp_path / "crowd"
        crowd.mkdir()
        store = CrowdedStore(tmp_path / "crowded", crowd, expected=3)
        store.prepare()
        runner = Runner(workers=3, max_concurrent_uploads=2)
        runner.run(make_tasks(images, FolderSource(images), store, 6))
        notes = {path.name for path in tmp_path.glob("seen-*")}
        assert "seen-1" in notes
        assert "seen-3" not in notes

    def test_a_sample_over_which_all_are_killed(self, images: Path, store: LocalStore) -> None:
        """A sample that kills every worker ends the job with the shard's name and a remedy.

        No receipt is stored.
        """
        message = lost(images, DeadlySource(images), store)
        assert any("workers died over train-00000-of-00001" in line for line in message)

    @pytest.mark.smoke
    @pytest.mark.parametrize("shards_in_all", [1, 2, 6])
    def test_shards_that_are_converted_in_chunks(
        self,
        images: Path,
        store: LocalStore,
        monkeypatch: pytest.MonkeyPatch,
        shards_in_all: int,
    ) -> None:
        """Shards in chunks have the bytes of whole shards, and progress counts each sample once."""
        monkeypatch.setattr("dataprep.job.shard_queue.MIN_CHUNK_SAMPLES", 3)
        tasks = make_tasks(images, FolderSource(images), store, shards_in_all)
        runner = Runner(workers=2)
        runner.run(tasks)
        reported = sum(runner.reported, start=Progress())
        assert (reported.samples, reported.failed) == (24, 0)
        summaries = shards(store)
        InProcess(DaskOptions(workers=1), lambda progress: None).run(tasks, lambda result: None)
        assert shards(store) == summaries
        assert sum(result.samples for result in runner.results) == 24

    def test_a_worker_that_dies_again_and_again(self, images: Path, tmp_path: Path) -> None:
        """A shard that kills every worker, by none of its samples, ends the job as well."""
        store = DeadlyStore(str(tmp_path / "out"))
        store.prepare()
        lost(images, FolderSource(images), store)

    def test_interrupts_are_for_the_driver(self) -> None:
        """Workers ignore Ctrl-C."""
        engine = Cluster(DaskOptions(workers=1), print, print)
        with contextlib.closing(engine):
            assert [*engine.begin().result().run(blocks_interrupts).values()] == [True]

    def test_the_environment_is_that_of_now(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Credentials that are set between two jobs reach the workers of the second one."""
        for profile in ("first", "second"):
            monkeypatch.setenv("AWS_PROFILE", profile)
            engine = Cluster(DaskOptions(workers=1), print, print)
            with contextlib.closing(engine):
                client = engine.begin().result()
                assert [*client.run(os.getenv, "AWS_PROFILE").values()] == [profile]

    def test_two_splits_have_the_same_workers(
        self, images: Path, store: LocalStore, expected: Mapping[str, bytes]
    ) -> None:
        """Workers of the first split are used for the second one, and end when they are closed."""
        reported: list[Progress] = []
        engine = Cluster(DaskOptions(workers=1), reported.append, lambda line: None)
        tasks = make_tasks(images, FolderSource(images), store, 6)
        with contextlib.closing(engine):
            engine.run(tasks[:3], lambda result: None)
            client = engine.begin().result()
            workers = set(client.scheduler_info()["workers"])
            engine.run(tasks[3:], lambda result: None)
            assert set(client.scheduler_info()["workers"]) == workers
        assert client.status == "closed"
        assert shards(store) == expected

    def test_a_cluster_that_loses_all_workers(
        self, images: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The job ends after a minute without workers, and the message says how to continue."""
        monkeypatch.setattr(shard_queue, "MAX_S_WITHOUT_WORKERS", 0.1)
        monkeypatch.setattr(shard_queue, "POLL_INTERVAL_S", 0.1)
        runner = Runner(workers=1)

        def lose(result: ShardResult) -> None:
            cluster = runner.engine.begin().result().cluster
            (nanny,) = cluster.workers.values()
            cluster.sync(nanny.close)

        with pytest.raises(WorkerLost, match=r"had no worker for .*same command again"):
            runner.run(make_tasks(images, FolderSource(images), store, 24), lose)
        assert 0 < len(runner.results) < 24

    def test_is_closed_while_it_starts(self) -> None:
        """A job that is ended before its first shard leaves no worker behind."""
        engine = Cluster(DaskOptions(workers=1), print, print)
        starting = engine.begin()
        engine.close()
        assert starting.result().status == "closed"


def blocks_interrupts() -> bool:
    """Whether the main thread of this process blocks interrupts."""
    status = Path("/proc/self/status").read_text()
    blocked = int(re.findall(r"SigBlk:\s*(\w+)", status)[0], 16)
    return bool(blocked >> (signal.SIGINT - 1) & 1)


def on_scheduler(images: Path, output: Path, address: str) -> Result:
    """Run ``dataprep shard`` on a running scheduler."""
    arguments = ["--source", str(images), "--output", str(output), "--size", "48"]
    return CliRunner().invoke(app, ["shard", *arguments, "--scheduler", address])


def lost(images: Path, source: FolderSource, store: LocalStore) -> list[str]:
    """The error of one shard that kills its workers. No part of the shard is stored."""
    runner = Runner(workers=1)
    with pytest.raises(WorkerLost, match=r"over train-00000-of-00001: .* run again to resume"):
        runner.run(make_tasks(images, source, store, 1))
    assert objects(store) == {}
    return runner.announced


class TestCustomClass:
    def test_is_used(self, images: Path, store: LocalStore, expected: Mapping[str, bytes]) -> None:
        """An importable cluster class is created with its arguments, scaled, and closed."""
        SmallCluster.clusters_made.clear()
        runner = Runner(cluster=SMALL, cluster_args={"name": "mine"}, workers=2)
        runner.run(make_tasks(images, FolderSource(images), store, 6))
        (cluster,) = SmallCluster.clusters_made
        assert cluster.name == "mine"
        assert cluster.scaled[0] == 2
        assert cluster.status.name == "closed"
        assert shards(store) == expected

    @pytest.mark.smoke
    def test_a_worker_stores_one_shard_at_a_time(self, images: Path, tmp_path: Path) -> None:
        """While it stores a shard, a worker converts one more, which then waits in memory."""
        crowd = tmp_path / "crowd"
        crowd.mkdir()
        store = CrowdedStore(tmp_path / "crowded", crowd, expected=2)
        store.prepare()
        runner = Runner(cluster=SMALL, max_concurrent_uploads=8)
        runner.run(make_tasks(images, FolderSource(images), store, 6))
        assert {path.name for path in tmp_path.glob("seen-*")} == {"seen-1"}

    def test_does_not_start(self, images: Path, store: LocalStore) -> None:
        """A class that refuses its arguments is a ConfigError with their names, without values."""
        runner = Runner(cluster=SMALL, cluster_args={"nonsense": "token-5"})
        with pytest.raises(ConfigError, match=r"cluster_args \(nonsense\)") as caught:
            runner.run(make_tasks(images, FolderSource(images), store, 1))
        assert "token-5" not in str(caught.value)

    @pytest.mark.parametrize(
        ("path", "message"),
        [("no.such.Cluster", "cannot import"), ("subprocess.Popen", "named ...Cluster")],
    )
    def test_is_none(self, path: str, message: str) -> None:
        """A class that cannot be imported, or is no cluster by its name, is refused first."""
        with pytest.raises(ConfigError, match=re.escape(message)):
            require_reachable(DaskOptions(cluster=path))

    def test_store_errors_are_retried(
        self,
        images: Path,
        failing: Callable[..., FailingSource],
        store: LocalStore,
        expected: Mapping[str, bytes],
    ) -> None:
        """A failed store operation is repeated, and progress counts each sample once."""
        source = failing(2, StoreUnreachable("gone for a moment"))
        runner = Runner(cluster=SMALL, retries=2)
        runner.run(make_tasks(images, source, store, 6))
        assert shards(store) == expected
        wait_until(
            lambda: sum(runner.reported, start=Progress()).samples == 24, "all progress to arrive"
        )

    def test_store_errors_end_it(
        self, images: Path, failing: Callable[..., FailingSource], store: LocalStore
    ) -> None:
        """A store that continues to fail ends the job with its own error, not with Dask's."""
        source = failing(99, StoreUnreachable("gone"))
        with pytest.raises(StoreUnreachable, match="gone"):
            Runner(cluster=SMALL, retries=1).run(make_tasks(images, source, store, 2))

    @pytest.mark.parametrize(
        ("error", "tries"),
        [
            pytest.param(StoreUnreachable("gone"), 3, id="StoreUnreachable"),
            pytest.param(PermissionRefused("denied"), 1, id="PermissionRefused"),
            pytest.param(SourceChanged("changed"), 1, id="SourceChanged", marks=pytest.mark.smoke),
            pytest.param(LeaseLost("taken over"), 1, id="LeaseLost", marks=pytest.mark.smoke),
        ],
    )
    def test_only_errors_of_a_store_are_repeated(
        self,
        images: Path,
        failing: Callable[..., FailingSource],
        store: LocalStore,
        error: DataprepError,
        tries: int,
    ) -> None:
        """A task is repeated at most ``retries`` times, and each repeat is noted with a reason."""
        source = failing(99, error)
        runner = Runner(cluster=SMALL, retries=2)
        with pytest.raises(type(error), match=str(error)):
            runner.run(make_tasks(images, source, store, 1))
        (note,) = source.notes.iterdir()
        assert note.stat().st_size == tries
        repeated = [line for line in runner.announced if "is made again" in line]
        assert len(repeated) == tries - 1
        assert all(str(error) in line for line in repeated)

    @pytest.mark.smoke
    @pytest.mark.parametrize("ends", [True, False])
    def test_a_job_waits_for_its_tasks(
        self,
        images: Path,
        store: LocalStore,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        ends: bool,
    ) -> None:
        """A running task cannot be cancelled, so the lock is kept until it has ended."""
        (tmp_path / "waiting").mkdir()
        source = WaitingSource(images, tmp_path / "waiting")
        monkeypatch.setattr(cluster_module, "_POLL_INTERVAL_S", 0.05)
        monkeypatch.setattr(shard_queue, "POLL_INTERVAL_S", 0.05)
        if not ends:
            monkeypatch.setattr(cluster_module, "MAX_TASK_END_S", 0.2)
        runner = Runner(cluster=SMALL)

        def announce(line: str) -> None:
            runner.announced.append(line)
            if ("waiting until tasks" if ends else "may still run") in line:
                (source.notes / "open").touch()

        def interrupt(run: object) -> None:
            wait_until((source.notes / "begun").exists, "a task that runs")
            raise KeyboardInterrupt

        runner.announce = announce
        monkeypatch.setattr(shard_queue.ShardQueue, "_require_workers", interrupt)
        with pytest.raises(KeyboardInterrupt):
            runner.run(make_tasks(images, source, store, 1))
        assert runner.engine.tasks_may_run is not ends
        assert any("waiting until tasks of this job" in line for line in runner.announced)
        assert objects(store) == {}

    @pytest.mark.smoke
    def test_a_worker_that_does_not_see_the_source_says_so(
        self, images: Path, store: LocalStore
    ) -> None:
        """The error is one line with the host, the path, and a remedy."""
        with pytest.raises(JobError) as caught:
            Runner(cluster=SMALL).run(make_tasks(images, UnseenSource(images), store, 2))
        (line,) = str(caught.value).splitlines()
        assert f"on host {socket.gethostname()} does not see the source {images}-elsewhere" in line
        assert "under the same path" in line

    def test_the_driver_stops_it(self, images: Path, store: LocalStore) -> None:
        """An error of the driver about a result ends the job early."""

        def refuse(result: ShardResult) -> None:
            raise TooManyFailures("enough")

        runner = Runner(cluster=SMALL)
        with pytest.raises(TooManyFailures, match="enough"):
            runner.run(make_tasks(images, FolderSource(images), store, 24), refuse)
        assert len(runner.results) == 1


class Watched(Display):
    """Reads the lock when the shards begin. ``owner`` is its content, and empty before.

    ``then`` is called at a note that begins with ``at``.
    """

    def __init__(self, output: Path, at: str = "no note", then: Callable[[], object] = int) -> None:
        self._lock, self._at, self._then = output / "leases/train", at, then
        self.owner: dict[str, Any] = {}

    def start(self, split: str, samples: int, done: int) -> None:
        """Read the lock."""
        self.owner = json.loads(self._lock.read_text())

    def note(self, line: str) -> None:
        """Call ``then`` if the note begins with ``at``."""
        if line.startswith(self._at):
            self._then()


class TestLock:
    @pytest.fixture
    def job(self, images: Path, tmp_path: Path) -> dataprep.ShardConfig:
        """A job on a cluster of a configured class."""
        return dataprep.ShardConfig.model_validate(
            {
                "source": str(images),
                "output": str(tmp_path / "out"),
                "image": {"size": 48},
                "dask": {"cluster": SMALL},
            }
        )

    @pytest.mark.smoke
    def test_names_no_process_that_can_be_known_to_have_ended(
        self, job: dataprep.ShardConfig
    ) -> None:
        """Tasks on a cluster outlive the driver, so the lock does not name its process.

        The lock is released when all tasks have ended.
        """
        display = Watched(Path(job.output))
        dataprep.shard(job, display=display)
        assert display.owner["machine"] != this_process().machine
        assert not (Path(job.output) / "leases").exists()

    @pytest.mark.smoke
    @pytest.mark.parametrize("ends", [True, False])
    def test_is_left_to_expire_while_a_task_may_run(
        self, job: dataprep.ShardConfig, monkeypatch: pytest.MonkeyPatch, ends: bool
    ) -> None:
        """An interrupted job releases the lock only if its task ends within the waiting time."""
        monkeypatch.setattr(cluster_module, "_POLL_INTERVAL_S", 0.05)
        monkeypatch.setattr(shard_queue, "POLL_INTERVAL_S", 0.05)
        if not ends:
            monkeypatch.setattr(cluster_module, "MAX_TASK_END_S", 0.2)
        begun, may_end = threading.Event(), threading.Event()
        ended_at = "waiting until tasks" if ends else "tasks of this job may still run"
        display = Watched(Path(job.output), ended_at, may_end.set)
        read = ImageFolder.read

        def waiting(source: ImageFolder, item: Any) -> bytes:
            if display.owner:  # a task of a shard, not the plan
                begun.set()
                may_end.wait(60)
            return read(source, item)

        def interrupt(run: object) -> None:
            assert begun.wait(60)
            raise KeyboardInterrupt

        monkeypatch.setattr(ImageFolder, "read", waiting)
        monkeypatch.setattr(shard_queue.ShardQueue, "_require_workers", interrupt)
        try:
            with pytest.raises(KeyboardInterrupt):
                dataprep.shard(job, display=display)
        finally:
            may_end.set()
        lock = Path(job.output) / "leases/train"
        assert lock.exists() is not ends
        if not ends:
            owner = json.loads(lock.read_text())
            assert (owner["token"], owner["released"]) == (display.owner["token"], False)


class TestRunningScheduler:
    @pytest.fixture
    def running(self) -> Iterator[LocalCluster]:
        """A running cluster that another program has started."""
        with LocalCluster(
            processes=False, n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster:
            yield cluster

    def test_is_used_and_left(
        self,
        running: LocalCluster,
        images: Path,
        store: LocalStore,
        expected: Mapping[str, bytes],
    ) -> None:
        """A running cluster does the work, and continues for a next job with other limits."""
        for uploads in (1, 3):
            runner = Runner(scheduler=running.scheduler_address, max_concurrent_uploads=uploads)
            runner.run(make_tasks(images, FolderSource(images), store, 6))
            assert len(runner.results) == 6
        assert shards(store) == expected
        assert running.status.name == "running"

    def test_versions_are_compared_before_the_first_task(
        self, running: LocalCluster, images: Path, store: LocalStore
    ) -> None:
        """The error names the difference of versions, and nothing is made."""
        made_tasks = make_tasks(images, FolderSource(images), store, 6)
        older = replace(made_tasks[0](), versions=(("simplejpeg", "0.1"),))
        submitted: list[int] = []

        def task_of_other_version(shard: int) -> ShardTask:
            submitted.append(shard)
            return made_tasks[shard]()

        tasks: list[Callable[[], ShardTask]] = [lambda: older]
        tasks += [partial(task_of_other_version, shard) for shard in range(1, 6)]
        runner = Runner(scheduler=running.scheduler_address)
        with pytest.raises(JobError, match=r"simplejpeg .* instead of 0\.1"):
            runner.run(tasks)
        assert submitted == []
        assert objects(store) == {}

    def test_from_the_command_line(
        self, running: LocalCluster, images: Path, tmp_path: Path
    ) -> None:
        """--scheduler takes the address of a cluster, and the manifest names it."""
        result = on_scheduler(images, tmp_path / "mine", running.scheduler_address)
        assert result.exit_code == 0, result.stderr
        assert running.scheduler_address in (tmp_path / "mine/train.manifest.json").read_text()
        require_reachable(DaskOptions(scheduler=running.scheduler_address))
        require_reachable(DaskOptions())

    @pytest.mark.parametrize(
        ("address", "message"),
        [
            ("tcp://127.0.0.1:9", "no Dask scheduler answers at 'tcp://127.0.0.1:9'"),
            (
                "tls://127.0.0.1:9",
                "'tls://127.0.0.1:9' needs certificates: name their files in dask.tls",
            ),
        ],
    )
    def test_nobody_answers(
        self,
        images: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        address: str,
        message: str,
    ) -> None:
        """An unreachable scheduler ends the command with 2 and one line, before any write."""
        monkeypatch.setattr(dask_connection, "ANSWER_TIMEOUT_S", 1)
        output = tmp_path / "mine"
        result = on_scheduler(images, output, address)
        assert result.exit_code == 2
        assert result.stdout == ""
        (line,) = result.stderr.splitlines()
        assert line.startswith(f"dataprep: {message}")
        assert not output.exists()
