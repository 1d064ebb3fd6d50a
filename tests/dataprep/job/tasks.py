"""Shard tasks whose sources and stores act as a test needs; any worker can import them."""

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
    """A source of the files of one folder."""

    def __init__(self, folder: Path, concurrency: int = 1) -> None:
        self.folder = folder
        self.concurrency = concurrency

    @property
    def uri(self) -> str:
        """The address of the folder."""
        return str(self.folder)

    def list(self) -> Listing:
        """Fail: no test lists it."""
        raise NotImplementedError

    def read(self, item: Located) -> bytes:
        """The bytes of one file."""
        return (self.folder / item.name).read_bytes()


class FailingSource(FolderSource):
    """Fails ``times`` times for each file in ``names``. Files in ``notes`` count the failures."""

    def __init__(
        self, folder: Path, notes: Path, names: set[str], times: int, error: DataprepError
    ) -> None:
        super().__init__(folder)
        self.notes, self.names, self.times, self.error = notes, names, times, error

    def read(self, item: Located) -> bytes:
        """The bytes of one file, after its failures."""
        if item.name in self.names:
            note = self.notes / item.name.replace("/", "_")
            tried = note.stat().st_size if note.exists() else 0
            with note.open("ab") as file:
                file.write(b".")
            if tried < self.times:
                raise self.error
        return super().read(item)


class DeadlySource(FolderSource):
    """Ends the process that reads from it, as an out-of-memory killer does."""

    def read(self, item: Located) -> bytes:
        """End this process."""
        os.kill(os.getpid(), signal.SIGKILL)
        raise StoreUnreachable("not dead yet")


class DeadlyStore(LocalStore):
    """Ends the process that stores a shard."""

    def create(self, key: str, data: Buffer) -> bool:
        """End this process."""
        os.kill(os.getpid(), signal.SIGKILL)
        raise StoreUnreachable("not dead yet")


class CrowdedStore(LocalStore):
    """Notes in ``crowd`` how many TFRecord shards are being stored at once, in any process.

    Storing a shard takes until ``expected`` shards are being stored, or a short time.
    """

    def __init__(self, root: Path, crowd: Path, expected: int) -> None:
        super().__init__(str(root))
        self.crowd, self.wanted = crowd, expected

    def create(self, key: str, data: Buffer) -> bool:
        """Store an object slowly."""
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
    """Notes in ``notes`` which files were read, in any process."""

    def __init__(self, folder: Path, notes: Path) -> None:
        super().__init__(folder)
        self.notes = notes

    def read(self, item: Located) -> bytes:
        """The bytes of one file."""
        (self.notes / item.name.replace("/", "_")).touch()
        return super().read(item)


class HeldStore(LocalStore):
    """Stores the first shard only when ``expected`` files are noted as read.

    ``fault`` is raised instead of storing it.
    """

    def __init__(
        self, root: Path, notes: Path, expected: int, fault: StoreError | None = None
    ) -> None:
        super().__init__(str(root))
        self.notes, self.wanted, self.fault = notes, expected, fault

    def create(self, key: str, data: Buffer) -> bool:
        """Store an object, and the first shard when the files are read."""
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
    """Notes in ``notes`` that a file is being read, and waits for the file ``open`` there."""

    def __init__(self, folder: Path, notes: Path) -> None:
        super().__init__(folder)
        self.notes = notes

    def read(self, item: Located) -> bytes:
        """The bytes of one file, after the wait."""
        (self.notes / "begun").touch()
        deadline_s = time.monotonic() + 60
        while not (self.notes / "open").exists() and time.monotonic() < deadline_s:
            time.sleep(0.01)
        return super().read(item)


class UnseenSource(FolderSource):
    """Names a folder that does not exist."""

    def disk_paths(self) -> list[str]:
        """A path on another machine."""
        return [f"{self.folder}-elsewhere"]


class SmallCluster(LocalCluster):  # type: ignore[misc]
    """A custom cluster class with worker threads in this process. ``clusters_made`` lists all."""

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
        """Scale as the parent class does, and note the number."""
        self.scaled.append(n)
        return super().scale(n, **arguments)


def make_tasks(
    images: Path, source: FolderSource, store: Store, shards: int
) -> list[Callable[[], ShardTask]]:
    """Tasks with ``images`` in equal shares. Each task is built when it is requested."""
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
            label_offsets=(("tfrecord", 1), ("recordio", 0)),  # the ids of RecordIO are numbers
            source=source,
            store=store,
        )

    return [lambda shard=shard: build(shard) for shard in range(shards)]  # type: ignore[misc]


def shards(store: Store) -> dict[str, bytes]:
    """Shards and indexes, without receipts, which contain the store's own ETags."""
    return {k: v for k, v in objects(store).items() if not k.startswith("receipts/")}
