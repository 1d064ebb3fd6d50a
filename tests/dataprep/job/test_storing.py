"""A shard is stored while the next one is converted, one of each at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from dataprep import keys
from dataprep.errors import PermissionRefused
from dataprep.execution import DaskOptions
from dataprep.job.cluster import Cluster
from dataprep.job.engine import Engine
from dataprep.job.storing import Places
from dataprep.job.threads import Threads
from tests.commandline import objects
from tests.dataprep.job.tasks import HeldStore, MarkingSource, make_tasks

SHARDS = 6
FILES_OF_A_SHARD = 4


@contextmanager
def threads() -> Iterator[Engine]:
    """One thread that converts."""
    yield Threads(DaskOptions(workers=1), lambda progress: None)


@contextmanager
def processes() -> Iterator[Engine]:
    """One worker process."""
    options = DaskOptions(workers=1, retries=0, dashboard="127.0.0.1:0")
    with closing(Cluster(options, lambda progress: None, lambda line: None)) as made:
        yield made


@pytest.fixture(params=[threads, processes])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """An engine with one worker."""
    with request.param() as made:
        yield made


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Where files that were read are noted."""
    place = tmp_path / "notes"
    place.mkdir()
    return place


def held(tmp_path: Path, notes: Path, wanted: int, **more: Any) -> HeldStore:
    """A store that waits for so many files."""
    store = HeldStore(tmp_path / "out", notes, wanted, **more)
    store.prepare()
    return store


def test_the_next_shard_is_converted_meanwhile(
    engine: Engine, images: Path, tmp_path: Path, notes: Path, expected: Mapping[str, bytes]
) -> None:
    """A worker reads all files of its second shard while its first is still being stored."""
    store = held(tmp_path, notes, 2 * FILES_OF_A_SHARD)
    results: list[int] = []
    tasks = make_tasks(images, MarkingSource(images, notes), store, SHARDS)
    engine.run(tasks, lambda result: results.append(result.shard))
    assert sorted(results) == list(range(SHARDS))
    found = objects(store)
    assert {k: v for k, v in found.items() if not k.startswith("receipts/")} == expected
    assert sum(key.startswith("receipts/") for key in found) == SHARDS


def test_a_fault_ends_the_job(engine: Engine, images: Path, tmp_path: Path, notes: Path) -> None:
    """A shard that cannot be stored ends the job with the store's word, and has no receipt."""
    fault = PermissionRefused("no right to write")
    store = held(tmp_path, notes, 2 * FILES_OF_A_SHARD, fault=fault)
    tasks = make_tasks(images, MarkingSource(images, notes), store, SHARDS)
    done: list[int] = []
    with pytest.raises(PermissionRefused, match="no right to write"):
        engine.run(tasks, lambda result: done.append(result.shard))
    assert 0 not in done
    assert keys.receipt("train", 0, SHARDS) not in objects(store)


class TestPlaces:
    def test_storing_leaves_the_place(self) -> None:
        """Who stores has left the place to the next; who converts has not."""
        places = Places(1)
        events: list[str] = []

        def other() -> None:
            with places.converting(nullcontext()):
                events.append("other")

        thread = threading.Thread(target=other)
        with places.converting(nullcontext()) as storing:
            thread.start()
            events.append("converting")
            with storing:
                thread.join(30)  # would never end if the place were still taken
                events.append("storing")
        assert events == ["converting", "other", "storing"]

    def test_a_place_is_given_back_after_an_error(self) -> None:
        """An error while converting, and one while storing, each free the place once."""
        places = Places(1)
        for fails_at in ("converting", "storing", "nothing"):
            try:
                with places.converting(nullcontext()) as storing:
                    if fails_at == "converting":
                        raise ValueError
                    with storing:
                        if fails_at == "storing":
                            raise ValueError
            except ValueError:
                assert fails_at != "nothing"
        with places.converting(nullcontext()):
            pass

    def test_the_slot_is_held_while_storing(self) -> None:
        """The upload slot is taken after the place was left, and given back."""
        seen: list[str] = []

        @contextmanager
        def slot() -> Iterator[None]:
            seen.append("taken")
            yield
            seen.append("given back")

        with Places(1).converting(slot()) as storing:
            seen.append("converted")
            with storing:
                seen.append("stored")
        assert seen == ["converted", "taken", "stored", "given back"]
