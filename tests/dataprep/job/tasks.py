"""Shard tasks with sources and stores that do what a test says; importable by any worker."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from distributed import LocalCluster

from dataprep.errors import DataprepError, PermissionRefused, StoreError, StoreUnreachable
from dataprep.image import ImagePolicy
from dataprep.job.shard_task import ShardTask
from dataprep.job.split_plan import PlannedSample
from dataprep.labels import LabelSpace
from dataprep.output.versions import versions_that_determine_bytes
from dataprep.sources import Listing, Located
from dataprep.stores import Buffer, Store
from dataprep.stores.local import LocalStore
from tests.commandline import objects


class FolderSource:
    """The files of one folder."""

    def __init__(self, folder: Path, concurrency: int = 1) -> None:
        self.folder = folder
        self.concurrency = concurrency

    @property
    def uri(self) -> str:
        """The folder."""
        return str(self.folder)

    def list(self) -> Listing:
        """Not asked for."""
        raise NotImplementedError

    def read(self, item: Located) -> bytes:
        """One file's bytes."""
        return (self.folder / item.name).read_bytes()


class FailingSource(FolderSource):
    """Fails ``times`` times over each file named in ``names``, counting in files of ``notes``."""

    def __init__(
        self, folder: Path, notes: Path, names: set[str], times: int, error: DataprepError
    ) -> None:
        super().__init__(folder)
        self.notes, self.names, self.times, self.error = notes, names, times, error

    def read(self, item: Located) -> bytes:
        """One file's bytes, in the end."""
        if item.name in self.names:
            note = self.notes / item.name.replace("/", "_")
            tried = note.stat().st_size if note.exists() else 0
            with note.open("ab") as file:
                file.write(b".")
            if tried < self.times:
                raise self.error
        return super().read(item)


class DeadlySource(FolderSource):
    """Ends the process that reads it, as an out-of-memory killer does."""

    def read(self, item: Located) -> bytes:
        """Never returns."""
        os.kill(os.getpid(), signal.SIGKILL)
        raise StoreUnreachable("not dead yet")


class DeadlyStore(LocalStore):
    """Ends the process that stores a shard."""

    def create(self, key: str, data: Buffer) -> bool:
        """Never returns."""
        os.kill(os.getpid(), signal.SIGKILL)
        raise StoreUnreachable("not dead yet")


class CrowdedStore(LocalStore):
    """Notes in ``crowd`` how many TFRecord shards are being stored at once, in any process.

    Storing one takes until ``expected`` are being stored, or a moment.
    """

    def __init__(self, root: Path, crowd: Path, expected: int) -> None:
        super().__init__(str(root))
        self.crowd, self.wanted = crowd, expected

    def create(self, key: str, data: Buffer) -> bool:
        """Store, slowly."""
        if not key.startswith("tfrecord/"):
            return super().create(key, data)
        here = self.crowd / key.replace("/", "_")
        here.touch()
        try:
            deadline_s = time.monotonic() + 0.3
            count = 0
            while count < self.wanted and time.monotonic() < deadline_s:
                count = len(list(self.crowd.iterdir()))
                (self.crowd.parent / f"seen-{count}").touch()
                time.sleep(0.01)
            return super().create(key, data)
        finally:
            here.unlink()


class MarkingSource(FolderSource):
    """Notes in ``notes`` which files have been read, in any process."""

    def __init__(self, folder: Path, notes: Path) -> None:
        super().__init__(folder)
        self.notes = notes

    def read(self, item: Located) -> bytes:
        """One file's bytes."""
        (self.notes / item.name.replace("/", "_")).touch()
        return super().read(item)


class HeldStore(LocalStore):
    """Stores the first shard only once ``expected`` files are noted as read.

    ``fault`` is raised in place of storing it.
    """

    def __init__(
        self, root: Path, notes: Path, expected: int, fault: StoreError | None = None
    ) -> None:
        super().__init__(str(root))
        self.notes, self.wanted, self.fault = notes, expected, fault

    def create(self, key: str, data: Buffer) -> bool:
        """Store, the first shard when it is time."""
        if key.startswith("tfrecord/train-00000"):
            deadline_s = time.monotonic() + 30
            while len(list(self.notes.iterdir())) < self.wanted:
                if time.monotonic() > deadline_s:
                    raise PermissionRefused("no other shard was converted meanwhile")
                time.sleep(0.01)
            if self.fault:
                raise self.fault
        return super().create(key, data)


class WaitingSource(FolderSource):
    """Notes in ``notes`` that a file is read, and waits for the file ``open`` there."""

    def __init__(self, folder: Path, notes: Path) -> None:
        super().__init__(folder)
        self.notes = notes

    def read(self, item: Located) -> bytes:
        """One file's bytes, when it is time."""
        (self.notes / "begun").touch()
        deadline_s = time.monotonic() + 60
        while not (self.notes / "open").exists() and time.monotonic() < deadline_s:
            time.sleep(0.01)
        return super().read(item)


class UnseenSource(FolderSource):
    """Names a folder that is not there."""

    def disk_paths(self) -> list[str]:
        """One on another machine."""
        return [f"{self.folder}-elsewhere"]


class SmallCluster(LocalCluster):  # type: ignore[misc]
    """A custom cluster class: worker threads in this process; ``clusters_made`` has all so far."""

    clusters_made: list[SmallCluster] = []  # noqa: RUF012

    def __init__(self, **arguments: Any) -> None:
        super().__init__(
            processes=False,
            n_workers=1,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            **arguments,
        )
        self.scaled: list[int] = []
        SmallCluster.clusters_made.append(self)

    def scale(self, n: int = 0, **arguments: Any) -> Any:
        """As its parent, noted."""
        self.scaled.append(n)
        return super().scale(n, **arguments)


def make_tasks(
    images: Path, source: FolderSource, store: Store, shards: int
) -> list[Callable[[], ShardTask]]:
    """``images`` in equal shares; each task is built when asked for."""
    names = sorted(str(path.relative_to(images)) for path in images.rglob("*.JPEG"))
    space = LabelSpace.of(name.partition("/")[0] for name in names)

    def build(shard: int) -> ShardTask:
        chosen = names[shard::shards]
        return ShardTask(
            fingerprint="f" * 64,
            versions=versions_that_determine_bytes(),
            split="train",
            shard=shard,
            shards=shards,
            first_number=shard * len(chosen),
            samples=[
                PlannedSample(
                    Located(name, (images / name).stat().st_size),
                    space.index[name.partition("/")[0]],
                )
                for name in chosen
            ],
            label_space=space,
            policy=ImagePolicy(mode="short", size=48),
            label_offsets=(("tfrecord", 1), ("recordio", 0)),  # whose ids show the numbers
            source=source,
            store=store,
        )

    return [lambda shard=shard: build(shard) for shard in range(shards)]  # type: ignore[misc]


def shards(store: Store) -> dict[str, bytes]:
    """Shards and indexes; receipts hold the store's own words."""
    return {k: v for k, v in objects(store).items() if not k.startswith("receipts/")}
