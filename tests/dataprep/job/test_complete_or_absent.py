"""A manifest exists only while its split is complete, which is checked after each store change.

Each change of an object is a moment at which a process may be killed, or a reader may come.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dataprep
from dataprep.output import keys
from dataprep.stores import Store
from dataprep.stores.local import LocalStore
from dataprep.stores.memory import MemoryStore

pytestmark = [pytest.mark.slow, pytest.mark.smoke]

CHANGES = ("put", "put_pieces", "create", "replace", "delete")


class Watch:
    """Examines a store after each change.

    Attributes:
        moments: for each change, which splits had a manifest after it.
    """

    def __init__(self) -> None:
        self.moments: list[frozenset[str]] = []
        self._is_looking = False

    def look(self, store: Store) -> None:
        """Verify each split that has a manifest."""
        if self._is_looking:
            return
        self._is_looking = True
        suffix = keys.manifest("")
        complete = {
            info.key.removesuffix(suffix) for info in store.list() if info.key.endswith(suffix)
        }
        for split in sorted(complete):
            (verification,) = dataprep.verify(store.uri, split, depth="quick")
            assert verification.ok, f"{split} has a manifest, but: {verification}"
        self.moments.append(frozenset(complete))
        self._is_looking = False


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Every store of this process in memory or in a folder is watched from now on."""
    started_watch = Watch()

    def watched(change: Callable[..., Any]) -> Callable[..., Any]:
        def and_look(store: Store, *arguments: Any, **options: Any) -> Any:
            result = change(store, *arguments, **options)
            started_watch.look(store)
            return result

        return and_look

    for kind in (MemoryStore, LocalStore):
        for name in CHANGES:
            if name in vars(kind):
                monkeypatch.setattr(kind, name, watched(getattr(kind, name)))
    return started_watch


def job(images: Path, output: str, **more: Any) -> dataprep.ShardConfig:
    """The config of a job with a training and a validation split."""
    settings = {
        "source": str(images),
        "output": output,
        "format": ("tfrecord", "recordio"),
        "validation": "25%",
        "shard_size": "1MB",
        "image": {"size": 64},
        "dask": {"workers": 1, "processes": False},
        **more,
    }
    return dataprep.ShardConfig.model_validate(settings)


@pytest.fixture
def output() -> str:
    """The address of an output in memory."""
    return f"memory://watched-{secrets.token_hex(4)}"


def test_a_new_job(images: Path, output: str, watch: Watch) -> None:
    """Each manifest is written when all other objects of its split exist, and is the last one."""
    dataprep.shard(job(images, output))
    assert watch.moments[0] == frozenset()
    assert {"train"} in watch.moments
    assert watch.moments[-1] == {"train", "validation"}


def test_overwriting(images: Path, output: str, watch: Watch) -> None:
    """The old manifest is removed before any other object of the split."""
    dataprep.shard(job(images, output))
    watch.moments.clear()
    dataprep.shard(job(images, output, image={"size": 48}), overwrite=True)
    assert frozenset() in watch.moments
    assert watch.moments[-1] == {"train", "validation"}


def test_trying_again_what_failed(source: Path, output: str, watch: Watch) -> None:
    """The manifest is removed before the receipts of the shards that are made again."""
    broken = min(source.rglob("*.JPEG"))
    content = broken.read_bytes()
    broken.write_bytes(content[: len(content) // 2])
    settings: dict[str, Any] = {"max_failures": 1, "validation": None}
    dataprep.shard(job(source, output, **settings))
    broken.write_bytes(content)
    watch.moments.clear()
    dataprep.shard(job(source, output, **settings), retry_failed=True)
    assert frozenset() in watch.moments
    assert watch.moments[-1] == {"train"}


def test_staging(images: Path, output: str, watch: Watch, tmp_path: Path) -> None:
    """A copy gets its manifest when all of its other files exist."""
    dataprep.shard(job(images, output, validation=None))
    watch.moments.clear()
    dataprep.stage(output, tmp_path / "copy")
    assert watch.moments[0] == frozenset()
    assert watch.moments[-1] == {"train"}
