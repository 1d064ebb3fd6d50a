"""What every store that keeps leases does: one holder at a time, and none who is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dataprep.stores import Store, StoreOptions, open_store
from dataprep.stores.protocol import Holder, KeepsLeases, Lease

HOLDING = """
import sys, time
from dataprep.stores import StoreOptions, open_store
from dataprep.stores.protocol import Holder
store = open_store(sys.argv[1], StoreOptions(endpoint_url=sys.argv[2] or None))
found = store.lease("train", "by another process")
assert not isinstance(found, Holder), found
print("held", flush=True)
time.sleep(600)
"""


class Place:
    """Somewhere to keep leases; each store of it is opened anew."""

    def __init__(self, uri: str, endpoint: str = "") -> None:
        self.uri, self.endpoint = uri, endpoint

    def opened(self) -> KeepsLeases:
        store: Store = open_store(self.uri, StoreOptions(endpoint_url=self.endpoint or None))
        assert isinstance(store, KeepsLeases)
        return store

    def names(self) -> list[str]:
        """Every object that is listed."""
        store = open_store(self.uri, StoreOptions(endpoint_url=self.endpoint or None))
        return [info.key for info in store.list()]


@pytest.fixture(params=["folder", "s3", "s3-radosgw"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Each kind."""
    if request.param == "folder":
        (tmp_path / "out").mkdir()
        return Place(str(tmp_path / "out"))
    server, bucket = {"s3": ("s3_server", "bucket"), "s3-radosgw": ("radosgw", "radosgw_bucket")}[
        request.param
    ]
    url = request.getfixturevalue(server).url
    return Place(f"s3://{request.getfixturevalue(bucket)}/out", url)


@pytest.fixture
def elsewhere(place: Place) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Starts a process that holds ``train``."""
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDING, place.uri, place.endpoint],
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def held(found: Lease | Holder | None) -> Lease:
    """It is a lease."""
    assert found is not None
    assert not isinstance(found, Holder)
    return found


def test_only_one_holds_it(place: Place) -> None:
    """The second is told what the first has said; another name is free."""
    first = held(place.opened().lease("train", "the first"))
    second = place.opened().lease("train", "the second")
    assert isinstance(second, Holder)
    assert (second.key, second.said) == ("train", "the first")
    held(place.opened().lease("val", "another")).release()
    assert first.lost() == ""
    first.release()


def test_released_it_can_be_had_again_and_leaves_nothing(place: Place) -> None:
    """Also twice; no object stays."""
    for _ in range(2):
        lease = held(place.opened().lease("train", "one"))
        lease.release()
        lease.release()
    assert place.names() == []
    assert list(place.opened().holders("train")) == []


def test_who_holds_is_listed_by_prefix(place: Place) -> None:
    """All that begin so; none that were released."""
    store = place.opened()
    leases = [held(store.lease(key, f"has {key}")) for key in ("train", "train.0-of-2", "val")]
    found = {holder.key: holder.said for holder in store.holders("train")}
    assert found == {"train": "has train", "train.0-of-2": "has train.0-of-2"}
    for lease in leases:
        lease.release()


def test_of_many_at_once_one_gets_it(place: Place) -> None:
    """Whoever comes at the same moment."""
    stores = [place.opened() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda store: store.lease("train", "me"), stores))
    leases = [one for one in found if not isinstance(one, Holder) and one is not None]
    assert len(leases) == 1
    leases[0].release()


def test_a_process_that_lives_keeps_it(
    place: Place, elsewhere: Callable[[], subprocess.Popen[str]]
) -> None:
    """Even when it does not run, and it is told at once."""
    process = elsewhere()
    process.send_signal(signal.SIGSTOP)
    found = place.opened().lease("train", "me")
    assert isinstance(found, Holder)
    assert found.left_s is None
    assert [holder.said for holder in place.opened().holders("train")] == ["by another process"]


def test_a_process_that_is_killed_keeps_nothing(
    place: Place, elsewhere: Callable[[], subprocess.Popen[str]]
) -> None:
    """Nobody waits for the dead."""
    process = elsewhere()
    process.kill()
    process.wait()
    assert list(place.opened().holders("train")) == []
    held(place.opened().lease("train", "me")).release()


def test_tidying_removes_those_of_the_dead_alone(
    place: Place, elsewhere: Callable[[], subprocess.Popen[str]], tmp_path: Path
) -> None:
    """Nothing is left of a run that was killed; one that runs keeps what it has."""
    process = elsewhere()
    process.kill()
    process.wait()
    lease = held(place.opened().lease("val", "me"))
    store = open_store(place.uri, StoreOptions(endpoint_url=place.endpoint or None))
    store.tidy()
    assert [holder.key for holder in place.opened().holders("")] == ["val"]
    lease.release()
    assert place.names() == []
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_keeps_nothing(place: Place) -> None:
    """A worker that outlives whoever held the lease does not hold it."""
    lease = held(place.opened().lease("train", "me"))
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(reader, 1)
        os._exit(0)
    try:
        lease.release()
        held(place.opened().lease("train", "another")).release()
    finally:
        os.write(writer, b".")
        os.waitpid(child, 0)
        os.close(reader)
        os.close(writer)
