"""A shard as a task of a Dask worker, which may be lost over it.

Dask gives a task of a lost worker to another one, and tells neither that nor why. Each attempt
notes with the scheduler that it begins, and takes that back however it ends, unless its process
does. Two requests to the scheduler a shard; it is known on whatever machine the next attempt runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from dataprep import keys
from dataprep.errors import DataprepError, JobError, SampleLost, WorkerLost
from dataprep.in_hand import UNNOTED
from dataprep.job.engine import make_shard_or_take_back
from dataprep.job.overdue import Overdue
from dataprep.job.storing import beside_dask_tasks
from dataprep.worker import Progress, ShardResult, ShardTask


def on_worker(task: ShardTask, uploads: int, topic: str) -> ShardResult | SampleLost:
    """Runs in a worker: progress goes to the driver as Dask events, of the job's own ``topic``.

    By that name all workers of the job share as many places to store as ``uploads`` says.

    A shard over which a worker was lost is converted in isolation. What that cannot help is an
    answer, not an error: Dask would try again.

    Raises:
        JobError: what is no Exception was raised, of which Dask would not tell the driver.
    """
    from distributed import get_worker

    worker = get_worker()
    shard = keys.numbered(task.split, task.shard, task.shards)

    def report(progress: Progress) -> None:
        told = (progress.samples, progress.source_bytes, progress.failed)
        worker.log_event(topic, (shard, told))

    # Without a nanny nobody would start another worker.
    in_hand = Overdue(task.limit.seconds) if worker.nanny else UNNOTED
    with _slots(worker, topic, uploads) as slots, _attempt(worker, topic, shard) as lost:
        storing = beside_dask_tasks(worker, slots)
        try:
            if not lost:
                return make_shard_or_take_back(task, report, storing, in_hand=in_hand)
            worker.log_event(topic, (shard, None))
            return make_shard_or_take_back(task, report, storing, isolated=True)
        except SampleLost as error:
            return error
        except Exception:
            raise
        except BaseException as error:
            raise JobError(f"a worker failed: {type(error).__name__}: {error}") from error


def result_of(future: Any) -> ShardResult:
    """What ``on_worker`` gave.

    Raises:
        SampleLost, WorkerLost: workers die over this shard.
        DataprepError: whatever ended it.
    """
    from distributed import KilledWorker

    try:
        result: ShardResult | SampleLost = future.result()
    except KilledWorker as error:
        shard = str(error.task).partition("-dataprep-")[0]
        raise WorkerLost(
            f"workers died again and again over {shard}: out of memory (see --set "
            "dask.memory_limit) or a crash in a codec. What is stored stays; run again to resume"
        ) from None
    except (DataprepError, KeyboardInterrupt):
        raise
    except Exception as error:
        raise JobError(f"a worker failed: {type(error).__name__}: {error}") from error
    if isinstance(result, SampleLost):
        raise result
    return result


def lost_beside_others(client: Any, future: Any, job: str, task: ShardTask, retries: int) -> bool:
    """Whether Dask gave a shard up for deaths of its workers that were over other shards."""
    from distributed import KilledWorker

    if not isinstance(future.exception(), KilledWorker):
        return False
    shard = keys.numbered(task.split, task.shard, task.shards)
    lost: int = client.get_metadata([job, shard], default=0)
    return lost <= retries


@contextlib.contextmanager
def _slots(worker: Any, name: str, uploads: int) -> Iterator[Any]:
    """Dask's semaphore of that name.

    Each one has the loop call it until it is told to stop, and is held by that: one in a task's
    arguments would stay, with all of the task, in every process that unpickles it, which the
    scheduler's is as well.
    """
    from distributed import Semaphore

    slots = Semaphore(max_leases=uploads, name=name)
    try:
        yield slots
    finally:
        if hasattr(slots, "refresh_callback"):  # not where leases never end
            worker.loop.add_callback(slots.refresh_callback.stop)


@contextlib.contextmanager
def _attempt(worker: Any, job: str, shard: str) -> Iterator[int]:
    """An attempt that begins: how many of this shard were lost since one that ended."""
    from distributed.utils import sync

    names = [job, shard]
    lost: int = sync(worker.loop, worker.scheduler.get_metadata, keys=names, default=0)
    sync(worker.loop, worker.scheduler.set_metadata, keys=names, value=lost + 1)
    try:
        yield lost
    finally:
        with contextlib.suppress(OSError, RuntimeError):  # the scheduler, or our loop, is gone
            sync(worker.loop, worker.scheduler.set_metadata, keys=names, value=0)
