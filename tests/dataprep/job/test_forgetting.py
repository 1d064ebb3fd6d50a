"""What is left in the driver of a cluster that is closed."""

from __future__ import annotations

import contextlib
import gc
import logging
import sys
import weakref
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from distributed import Semaphore

from dataprep.config import DaskOptions
from dataprep.job.cluster import Cluster
from dataprep.job.forgetting import forget_schedulers
from dataprep.job.worker import ShardResult, ShardTask
from dataprep.stores.local import LocalStore
from tests.commandline import wait_until
from tests.dataprep.job.tasks import FolderSource, SmallCluster, make_tasks

pytestmark = pytest.mark.process

OWN = DaskOptions(workers=1, dashboard="127.0.0.1:0")
CUSTOM = DaskOptions(workers=1, cluster="tests.dataprep.job.tasks.SmallCluster")

ROUNDS = 20


def closed(options: DaskOptions) -> tuple[weakref.ref[Any], logging.Handler, str]:
    """A scheduler that had a task and is closed: it, its handler of log lines and its folder."""
    engine = Cluster(options, lambda progress: None, lambda line: None)
    with contextlib.closing(engine):
        client = engine.begin().result()
        scheduler = client.cluster.scheduler
        assert client.submit(abs, -3).result() == 3
        SmallCluster.made.clear()
        return weakref.ref(scheduler), scheduler._deque_handler, scheduler.local_directory


def gone(scheduler: weakref.ref[Any]) -> bool:
    """Whether nobody holds it any more; the loop's thread may for a moment."""
    gc.collect()
    return scheduler() is None


@pytest.mark.parametrize("options", [OWN, CUSTOM], ids=["processes", "a class"])
def test_a_closed_scheduler_is_let_go(options: DaskOptions) -> None:
    """A driver that runs job after job holds none of their schedulers, nor what these hold."""
    for _ in range(2):  # the second one comes to caches that were emptied
        scheduler, handler, folder = closed(options)
        wait_until(partial(gone, scheduler), "the scheduler let go")
        assert handler not in logging.getLogger("distributed.scheduler").handlers
        forget_schedulers()
        assert folder not in sys.path_importer_cache


@pytest.mark.parametrize("options", [OWN, CUSTOM], ids=["processes", "a class"])
def test_tasks_that_are_done_are_let_go(options: DaskOptions, images: Path, tmp_path: Path) -> None:
    """Of a job of many shards the driver holds the few that are in hand, or were just sent."""
    store = LocalStore(str(tmp_path / "out"))
    store.prepare()
    few = make_tasks(images, FolderSource(images), store, 6)
    held: list[tuple[int, int]] = []
    before = alive(Semaphore)
    done: list[int] = []

    def count(result: ShardResult) -> None:
        done.append(result.shard)
        if len(done) == len(few) * ROUNDS:
            held.append((alive(ShardTask), alive(Semaphore) - before))

    engine = Cluster(options, lambda progress: None, lambda line: None)
    with contextlib.closing(engine):
        engine.run(few * ROUNDS, count)
    SmallCluster.made.clear()
    ((tasks, semaphores),) = held
    assert tasks < len(done) / 2
    assert semaphores < len(done) / 4


def alive(kind: type) -> int:
    """How many there are in this process."""
    gc.collect()
    return sum(type(one) is kind for one in gc.get_objects())
