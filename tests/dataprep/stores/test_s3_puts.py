"""The S3 store confirms PUTs and GETs, and limits how often an object is sent."""

from __future__ import annotations

import base64
import hashlib
import socket
from collections.abc import Callable, Iterator
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

import dataprep
from dataprep.drawn import draw_tree
from dataprep.errors import (
    LeaseLost,
    ObjectNotFound,
    StoredBytesDiffer,
    StoreError,
    StoreUnreachable,
)
from dataprep.job.report import Display
from dataprep.stores import StoreOptions
from dataprep.stores.locked_writes import no_lock, put_under_lock
from dataprep.stores.s3 import S3Store
from iobench.servers.fault_proxy import (
    Answer,
    Fault,
    FaultProxy,
    FlipByte,
    Match,
    Reset,
    Rule,
    SetHeader,
    Status,
    s3_error,
)
from iobench.servers.memory_s3 import MemoryS3
from iobench.servers.moto_server import MotoServer
from tests.dataprep.stores.conftest import Sent

DATA = bytes(range(251)) * 40
INTERNAL = Status(500, "InternalError", "We encountered an internal error.")


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultProxy]:
    """S3 in memory behind a network with faults, without pauses between attempts."""
    for name, value in MotoServer.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setattr("time.sleep", lambda duration_s: None)
    with FaultProxy(MemoryS3().answer) as running:
        yield running


OpenStore = Callable[..., S3Store]


@pytest.fixture
def open_store(proxy: FaultProxy) -> OpenStore:
    """A function that opens the store with its usual number of attempts, or another one."""

    def opened(**options: Any) -> S3Store:
        return S3Store("s3://bucket/p", StoreOptions(endpoint_url=proxy.url, **options))

    return opened


def puts(proxy: FaultProxy) -> int:
    """The number of PUTs that have arrived."""
    return sum(request.method == "PUT" for request in proxy.requests)


WRITES: dict[str, Callable[[S3Store], object]] = {
    "put": lambda store: store.put("key", DATA),
    "create": lambda store: store.create("key", DATA),
    "replace": lambda store: store.replace("key", DATA, store.version("key")),
    "while permitted": lambda store: put_under_lock(store, "key", DATA, no_lock),
}


@pytest.mark.parametrize("fault", [INTERNAL, Reset(), FlipByte(3, "upload")], ids=str)
@pytest.mark.parametrize("write", WRITES)
def test_an_object_is_sent_at_most_so_often(
    open_store: OpenStore,
    proxy: FaultProxy,
    caplog: pytest.LogCaptureFixture,
    write: str,
    fault: Fault,
) -> None:
    """The limit covers all layers that repeat. Each repetition is logged once with a reason."""
    store = open_store(max_attempts=5)
    if write == "replace":
        store.put("key", b"before")
    proxy.clear()
    proxy.replace_rules([Rule(Match("PUT"), fault)])
    with pytest.raises(StoreError):
        WRITES[write](store)
    assert puts(proxy) == 5
    lines = [record.getMessage() for record in caplog.records if "sent again" in record.msg]
    assert [f"attempt {number} of 5: " in line for number, line in enumerate(lines, 2)] == [
        True
    ] * 4
    assert all(line.rpartition(": ")[2].strip() for line in lines)


def test_faults_of_several_kinds_share_the_attempts(
    open_store: OpenStore, proxy: FaultProxy
) -> None:
    """A damaged body does not restart the count."""
    damage = Rule(Match("PUT", times=3), FlipByte(3, "upload"))
    proxy.replace_rules([damage, Rule(Match("PUT", skip=3), INTERNAL)])
    with pytest.raises(StoreError, match="not stored after 5 attempts: InternalError"):
        open_store(max_attempts=5).put("key", DATA)
    assert puts(proxy) == 5


def test_a_dead_server_is_asked_eight_times(
    open_store: OpenStore, proxy: FaultProxy, sent: list[Sent]
) -> None:
    """These are all attempts of a task with the usual options."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    store = S3Store("s3://bucket/p", StoreOptions(endpoint_url=url))
    with pytest.raises(StoreUnreachable):
        store.create("key", DATA)
    assert len(sent) == 8


class Notes(Display):
    """Collects the messages of a job."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, line: str) -> None:
        """Collect a message."""
        self.lines.append(line)


def test_a_job_sends_a_shard_twenty_four_times(
    proxy: FaultProxy, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Three tasks with eight attempts each are made, and repetitions are reported with a reason."""
    photos = draw_tree(tmp_path / "photos", images=4, classes=2, seed=1).root
    proxy.replace_rules([Rule(Match("PUT", "/tfrecord/"), INTERNAL)])
    config = {
        "source": str(photos),
        "output": "s3://bucket/out",
        "image": {"size": 32},
        "store": {"endpoint_url": proxy.url},
        "dask": {"workers": 1, "processes": False},
    }
    display = Notes()
    with pytest.raises(StoreError, match="InternalError"):
        dataprep.shard(dataprep.ShardConfig.model_validate(config), display=display)
    requests = [r for r in proxy.requests if r.method == "PUT" and "/tfrecord/" in r.path]
    assert len(requests) == 24
    repeated = [line for line in display.lines if "is made again" in line]
    assert len(repeated) == 2
    assert all("InternalError" in line for line in repeated)


@pytest.mark.parametrize("write", ["put", "create"])
def test_a_put_is_read_back_where_the_etag_is_no_md5(
    open_store: OpenStore, proxy: FaultProxy, write: str
) -> None:
    """An ETag that is no MD5 does not cover the bytes, so a damaged object is read and detected."""
    own = Rule(Match(), SetHeader("ETag", '"opaque-1"'))
    proxy.replace_rules([own, Rule(Match("PUT", times=1), FlipByte(3, "upload"))])
    WRITES[write](open_store())
    proxy.replace_rules([])
    assert open_store().get("key") == DATA
    proxy.replace_rules([own, Rule(Match("PUT"), FlipByte(3, "upload"))])
    with pytest.raises(StoredBytesDiffer):
        open_store().put("key", DATA)
    with pytest.raises(ObjectNotFound):
        open_store().head("key")


@pytest.mark.parametrize("has_lock", [True, False])
def test_a_damaged_object_is_removed_only_with_the_lock(
    open_store: OpenStore, proxy: FaultProxy, has_lock: bool
) -> None:
    """Without the lock, the object may belong to another run, and is not removed."""
    store, answers = open_store(max_attempts=2), iter([None])

    def check_lock() -> None:
        if next(answers, "again") and not has_lock:
            raise LeaseLost("another run has taken over")

    own_etag = Rule(Match(), SetHeader("ETag", '"opaque-1"'))
    proxy.replace_rules([own_etag, Rule(Match("PUT"), FlipByte(3, "upload"))])
    with pytest.raises(StoredBytesDiffer if has_lock else LeaseLost):
        put_under_lock(store, "key", DATA, check_lock)
    assert [info.key for info in store.list()] == ([] if has_lock else ["key"])


@pytest.mark.parametrize("write", WRITES)
def test_a_put_has_the_md5_of_its_bytes(
    open_store: OpenStore, sent: list[Sent], write: str
) -> None:
    """With the MD5, a server refuses a body that arrives damaged."""
    store = open_store()
    if write == "replace":
        store.put("key", b"before")
    WRITES[write](store)
    (*_, put) = [request for request in sent if request.method == "PUT"]
    digest = hashlib.md5(DATA, usedforsecurity=False).digest()
    assert put.headers["content-md5"] == base64.b64encode(digest).decode()


def test_what_is_read_is_compared_with_its_etag(open_store: OpenStore, proxy: FaultProxy) -> None:
    """A damaged read is repeated. If each read is damaged, nothing is returned."""
    store = open_store()
    store.put("key", DATA)
    proxy.replace_rules([Rule(Match("GET", times=1), FlipByte(3))])
    assert store.get("key") == DATA
    proxy.replace_rules([Rule(Match("GET"), FlipByte(3))])
    with pytest.raises(StoreError, match="readings differ"):
        store.get("key")


def test_a_conflict_with_another_writer_is_no_reason_to_overwrite(
    open_store: OpenStore, proxy: FaultProxy, sent: list[Sent]
) -> None:
    """A server answers 409 while another conditional request runs, and nothing is overwritten."""
    store = open_store()
    store.put("key", b"before")
    version = store.version("key")
    conflict = Status(409, "ConditionalRequestConflict", "Another request is in progress.")
    proxy.replace_rules([Rule(Match("PUT"), conflict)])
    sent.clear()
    with pytest.raises(StoreError, match="ConditionalRequestConflict"):
        store.replace("key", DATA, version)
    assert [request.headers.get("if-match") for request in sent] == [f'"{version}"'] * 8
    proxy.replace_rules([Rule(Match("PUT", times=1), conflict)])
    assert store.replace("key", DATA, version)


class SharedS3(MemoryS3):
    """S3 in memory that another run writes to. It stores the first PUT damaged."""

    def __init__(self) -> None:
        super().__init__()
        self.conditions: list[tuple[str | None, str | None]] = []

    def answer(self, method: str, path: str, headers: Message, body: bytes) -> Answer:
        """Answer one request. The other run's PUT comes before the second one."""
        if method == "PUT":
            self.conditions.append((headers["If-None-Match"], headers["If-Match"]))
            if len(self.conditions) == 1:
                return super().answer(method, path, headers, bytes(len(body)))
            super().answer(method, path, Message(), b"theirs")
        return super().answer(method, path, headers, body)


class RefusingS3(SharedS3):
    """S3 in memory whose object is removed as soon as it has refused a PUT."""

    def answer(self, method: str, path: str, headers: Message, body: bytes) -> Answer:
        """Refuse each conditional PUT. There is no object."""
        if method == "PUT":
            self.conditions.append((headers["If-None-Match"], headers["If-Match"]))
            return s3_error(412, "PreconditionFailed")
        return MemoryS3.answer(self, method, path, headers, body)


@pytest.mark.usefixtures("proxy")
def test_a_damaged_object_is_not_sent_over_that_of_another_run() -> None:
    """The object is replaced only in the version that this run has stored."""
    server = SharedS3()
    with FaultProxy(server.answer) as other:
        store = S3Store("s3://bucket/p", StoreOptions(endpoint_url=other.url))
        assert not store.create("key", DATA)
        assert store.get("key") == b"theirs"
    assert all(any(pair) for pair in server.conditions)


@pytest.mark.usefixtures("proxy")
def test_an_object_that_vanishes_after_a_refusal_is_not_sent_without_a_condition() -> None:
    """A third run may create the object in the same moment, so the condition is kept."""
    server = RefusingS3()
    with FaultProxy(server.answer) as other:
        assert not S3Store("s3://bucket/p", StoreOptions(endpoint_url=other.url)).create(
            "key", DATA
        )
    assert server.conditions == [("*", None)]
