"""Jobs in this process: retried where that may help, else stopped at the first error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from dataprep.config import DaskOptions
from dataprep.errors import (
    PermissionRefused,
    StoreError,
    StoreUnreachable,
    TooManyFailures,
)
from dataprep.job.in_process import InProcess
from dataprep.job.worker import Progress, ShardResult, ShardTask
from dataprep.stores.local import LocalStore
from tests.commandline import objects
from tests.dataprep.job.tasks import FailingSource, FolderSource, make_tasks


def shards(store: LocalStore) -> dict[str, bytes]:
    """Shards and indexes; receipts hold the store's own words."""
    return {k: v for k, v in objects(store).items() if not k.startswith("receipts/")}


def run(
    workers: int, tasks: list[Callable[[], ShardTask]], **options: int
) -> tuple[list[ShardResult], Progress]:
    """Run ``tasks``; their results and the progress in all."""
    results: list[ShardResult] = []
    reported: list[Progress] = []
    InProcess(DaskOptions.model_validate({"workers": workers, **options}), reported.append).run(
        tasks, results.append
    )
    return results, sum(reported, start=Progress())


@pytest.mark.parametrize("workers", [1, 3, 8])
def test_all_shards(
    images: Path, tmp_path: Path, expected: Mapping[str, bytes], workers: int
) -> None:
    """Any number of threads makes every shard once, to the same bytes."""
    store = LocalStore(str(tmp_path / "out"))
    store.prepare()
    results, progress = run(workers, make_tasks(images, FolderSource(images), store, 6))
    assert sorted(result.shard for result in results) == list(range(6))
    assert progress.samples == 24
    assert shards(store) == expected


class TestErrors:
    @pytest.fixture
    def failing(self, images: Path, tmp_path: Path) -> Callable[..., FailingSource]:
        """A source that fails over one file."""
        (tmp_path / "notes").mkdir()
        name = sorted(str(path.relative_to(images)) for path in images.rglob("*.JPEG"))[8]

        def make(times: int, error: StoreError) -> FailingSource:
            return FailingSource(images, tmp_path / "notes", {name}, times, error)

        return make

    def tries(self, tmp_path: Path) -> int:
        """How often the file was read."""
        (note,) = (tmp_path / "notes").iterdir()
        return note.stat().st_size

    @pytest.fixture
    def store(self, tmp_path: Path) -> LocalStore:
        """An empty store."""
        store = LocalStore(str(tmp_path / "out"))
        store.prepare()
        return store

    def test_retried(
        self,
        images: Path,
        tmp_path: Path,
        failing: Callable[..., FailingSource],
        store: LocalStore,
        expected: Mapping[str, bytes],
    ) -> None:
        """A store that failed is asked again; the progress of the failed attempt is taken back."""
        source = failing(2, StoreUnreachable("gone for a moment"))
        results, progress = run(2, make_tasks(images, source, store, 6), retries=2)
        assert len(results) == 6
        assert self.tries(tmp_path) == 3
        assert progress.samples == 24
        assert shards(store) == expected

    def test_retried_only_so_often(
        self,
        images: Path,
        tmp_path: Path,
        failing: Callable[..., FailingSource],
        store: LocalStore,
    ) -> None:
        """A store that goes on failing ends the job with its own error."""
        source = failing(9, StoreUnreachable("gone for good"))
        with pytest.raises(StoreUnreachable, match="gone for good"):
            run(2, make_tasks(images, source, store, 6), retries=1)
        assert self.tries(tmp_path) == 2

    def test_not_retried(
        self,
        images: Path,
        tmp_path: Path,
        failing: Callable[..., FailingSource],
        store: LocalStore,
    ) -> None:
        """What will not get better by asking again ends the job at once."""
        source = failing(9, PermissionRefused("no right"))
        with pytest.raises(PermissionRefused):
            run(2, make_tasks(images, source, store, 6), retries=5)
        assert self.tries(tmp_path) == 1

    def test_the_driver_stops_it(self, images: Path, store: LocalStore) -> None:
        """An error of the driver over a result ends the job; what was not begun is not begun."""
        built: list[int] = []

        def counted(build: Callable[[], ShardTask]) -> Callable[[], ShardTask]:
            def one() -> ShardTask:
                built.append(1)
                return build()

            return one

        def refuse(result: ShardResult) -> None:
            raise TooManyFailures("enough")

        tasks = [counted(b) for b in make_tasks(images, FolderSource(images), store, 24)]
        with pytest.raises(TooManyFailures, match="enough"):
            InProcess(DaskOptions(workers=1), lambda progress: None).run(tasks, refuse)
        assert len(built) < 24
