"""The drawn tree as a data set in memory, and copies that tests may change."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dataprep
from dataprep.stores.memory import MemoryStore
from tests.commandline import FORMATS


@pytest.fixture(scope="session")
def uri_of_dataset(tree: Path) -> str:
    """Several shards in all formats. Read only."""
    uri = f"memory://dataset-{secrets.token_hex(4)}"
    config = dataprep.ShardConfig.model_validate(
        {
            "source": str(tree),
            "output": uri,
            "format": FORMATS,
            "image": {"size": 256},
            "shard_size": "1.2MB",
            "dask": {"workers": 2, "processes": False},
        }
    )
    dataprep.shard(config)
    return uri


@pytest.fixture
def changeable(uri_of_dataset: str) -> MemoryStore:
    """A copy that a test may change."""
    store = MemoryStore(f"memory://{secrets.token_hex(4)}")
    original = MemoryStore(uri_of_dataset)
    for info in original.list():
        store.put(info.key, original.get(info.key))
    return store


Calls = Callable[[object, str], list[tuple[Any, ...]]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """A function that returns the arguments of each call of a method from now on."""

    def noting(owner: object, name: str) -> list[tuple[Any, ...]]:
        recorded_calls: list[tuple[Any, ...]] = []
        real = getattr(owner, name)

        def noted(*arguments: Any) -> Any:
            recorded_calls.append(arguments)
            return real(*arguments)

        monkeypatch.setattr(owner, name, noted)
        return recorded_calls

    return noting
