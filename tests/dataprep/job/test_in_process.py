"""Jobs in this process repeat store operations, and stop at the first other error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest

from dataprep.config.shard_config import DaskOptions
from dataprep.errors import (
    DataprepError,
    LeaseLost,
    PermissionRefused,
    SourceChanged,
    StoreUnreachable,
    TooManyFailures,
)
from dataprep.job.conversion import Progress
from dataprep.job.in_process import InProcess
from dataprep.job.shard_task import ShardResult, ShardTask
from dataprep.stores.local import LocalStore
from tests.dataprep.job.tasks import FailingSource, FolderSource, make_tasks, shards


def run(
    workers: int, tasks: list[Callable[[], ShardTask]], **options: int
) -> tuple[list[ShardResult], Progress]:
    """Run ``tasks``. Return their results and the total progress."""
    results: list[ShardResult] = []
    reported: list[Progress] = []
    InProcess(DaskOptions.model_validate({"workers": workers, **options}), reported.append).run(
        tasks, results.append
    )
    return results, sum(reported, start=Progress())


@pytest.mark.parametrize("workers", [1, 3, 8])
def test_all_shards(
    images: Path, store: LocalStore, expected: Mapping[str, bytes], workers: int
) -> None:
    """Any number of threads makes every shard once, to the same bytes."""
    results, progress = run(workers, make_tasks(images, FolderSource(images), store, 6))
    assert sorted(result.shard for result in results) == list(range(6))
    assert progress.samples == 24
    assert shards(store) == expected


def tries(tmp_path: Path) -> int:
    """The number of readings of the file that fails."""
    (note,) = (tmp_path / "notes").iterdir()
    return note.stat().st_size


def test_retried(
    images: Path,
    tmp_path: Path,
    failing: Callable[..., FailingSource],
    store: LocalStore,
    expected: Mapping[str, bytes],
) -> None:
    """A failed reading is repeated, and the progress of the failed attempt is subtracted."""
    source = failing(2, StoreUnreachable("gone for a moment"))
    results, progress = run(2, make_tasks(images, source, store, 6), retries=2)
    assert (len(results), tries(tmp_path), progress.samples) == (6, 3, 24)
    assert shards(store) == expected


@pytest.mark.parametrize(
    ("error", "retries", "tried"),
    [
        (StoreUnreachable("gone for good"), 1, 2),
        (PermissionRefused("no right"), 5, 1),
        (SourceChanged("another file"), 5, 1),
        (LeaseLost("taken over"), 5, 1),
    ],
)
def test_not_retried(
    images: Path,
    tmp_path: Path,
    failing: Callable[..., FailingSource],
    store: LocalStore,
    error: DataprepError,
    retries: int,
    tried: int,
) -> None:
    """An error that repeating cannot fix ends the job at once."""
    tasks = make_tasks(images, failing(9, error), store, 6)
    with pytest.raises(type(error), match=str(error)):
        run(2, tasks, retries=retries)
    assert tries(tmp_path) == tried


def test_the_driver_stops_it(images: Path, store: LocalStore) -> None:
    """An error of the driver about a result ends the job before further tasks begin."""
    built: list[int] = []

    def made_shard(build: Callable[[], ShardTask]) -> ShardTask:
        built.append(1)
        return build()

    def refuse(result: ShardResult) -> None:
        raise TooManyFailures("enough")

    tasks = [
        partial(made_shard, build) for build in make_tasks(images, FolderSource(images), store, 24)
    ]
    with pytest.raises(TooManyFailures, match="enough"):
        InProcess(DaskOptions(workers=1), lambda progress: None).run(tasks, refuse)
    assert len(built) < 24
