"""The first batch from a remote store arrives before any other sample is read."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dataprep
from dataprep.reading.dataset import Dataset
from dataprep.stores import open_store
from dataprep.stores.memory import MemoryStore
from dataprep.stores.protocol import Versioned
from tests.commandline import objects

torch = pytest.importorskip("torch")

BATCH = 32
PATIENCE_S = 30.0
NOTHING_COMES_S = 0.3
"""How long a test waits for a request that must not come, in seconds."""


class WatchedStore(MemoryStore):
    """A copy of an output in memory that calls ``before`` with the key and offset of each read."""

    def __init__(self, output: Path) -> None:
        super().__init__(f"memory://{secrets.token_hex(4)}")
        for key, data in objects(open_store(output)).items():
            self.put(key, data)
        self.before: Callable[[str, int], None] = lambda key, offset: None

    def get_versioned(self, key: str, offset: int = 0, length: int | None = None) -> Versioned:
        """Read, after ``before`` has returned."""
        self.before(key, offset)
        return super().get_versioned(key, offset, length)


@pytest.fixture
def store(output: Path) -> WatchedStore:
    """A remote store, which is no disk."""
    return WatchedStore(output)


def batches_of(store: WatchedStore) -> Any:
    """Batches of the encoded images of the copy, from shard to shard."""
    return dataprep.to_torch(Dataset(store), iterable=True, batch_size=BATCH, threads=2)


def places_of_first_batch(store: WatchedStore, batches: Any) -> set[tuple[str, int]]:
    """Key and offset of each sample in the first batch of the first epoch."""
    dataset = Dataset(store)
    numbers = batches.samples.samples_of_worker(0, 0, 1)[:BATCH].tolist()
    return {dataset.place(number)[:2] for number in numbers}


def test_it_does_not_wait_for_the_samples_of_later_batches(store: WatchedStore) -> None:
    """The loop gets the first batch while no request for other samples is answered."""
    batches = batches_of(store)
    first, has_batch = places_of_first_batch(store, batches), threading.Event()

    def before(key: str, offset: int) -> None:
        if key.startswith("tfrecord/") and (key, offset) not in first:
            assert has_batch.wait(PATIENCE_S), "the first batch waits for this sample"

    store.before = before
    iterator = iter(batches)
    images, labels = next(iterator)
    has_batch.set()
    rest = [len(labels) for _, labels in iterator]
    assert len(images) == len(labels) == BATCH
    assert sum(rest) == 120 - BATCH


def test_its_samples_are_requested_alone(store: WatchedStore) -> None:
    """No other request is made until the samples of the first batch have arrived."""
    batches = batches_of(store)
    first, other = places_of_first_batch(store, batches), threading.Event()
    company = []

    def before(key: str, offset: int) -> None:
        if not key.startswith("tfrecord/"):
            return
        if (key, offset) in first:
            company.append(other.wait(NOTHING_COMES_S))
        else:
            other.set()

    store.before = before
    assert sum(len(labels) for _, labels in batches) == 120
    assert company
    assert not any(company)
    assert other.is_set()
