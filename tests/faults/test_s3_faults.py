"""The S3 store keeps its guarantees on a network that damages, loses and refuses requests."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import pytest

from dataprep.errors import ObjectNotFound, StoredBytesDiffer, StoreError, StoreUnreachable
from dataprep.job.creation import create_job
from dataprep.job.lock import Locks
from dataprep.stores import StoreOptions
from dataprep.stores.s3 import S3Store
from dataprep.stores.s3_retry import READ_ATTEMPTS
from iobench.servers.fault_proxy import (
    Fault,
    FaultProxy,
    FlipByte,
    Match,
    Reset,
    Rule,
    SetHeader,
    Stall,
    Status,
    Truncate,
)
from iobench.servers.moto_server import MotoServer
from tests.servers.radosgw import RadosGateway

pytestmark = pytest.mark.slow

DATA = bytes(range(251)) * 200
MIB = 2**20
READINGS = READ_ATTEMPTS
SLOW_DOWN = Status(503, "SlowDown", "Please reduce your request rate.")
INTERNAL = Status(500, "InternalError", "We encountered an internal error.")


Server = MotoServer | RadosGateway


@pytest.fixture(scope="session")
def s3_server(each_s3_server: Server) -> Server:
    """A server that accepts any body, and a server that checks bodies."""
    return each_s3_server


@pytest.fixture(scope="module")
def proxy(s3_server: Server) -> Iterator[FaultProxy]:
    """A proxy in front of the S3 server."""
    with FaultProxy(s3_server.url) as running:
        yield running


@pytest.fixture
def through(proxy: FaultProxy, bucket: str, monkeypatch: pytest.MonkeyPatch) -> S3Store:
    """The bucket behind the proxy, without pauses between attempts."""
    proxy.clear()
    monkeypatch.setattr("time.sleep", lambda duration_s: None)
    return S3Store(
        f"s3://{bucket}/p", StoreOptions(endpoint_url=proxy.url, max_attempts=3, read_timeout_s=2)
    )


@pytest.fixture
def direct(s3_server: Server, bucket: str) -> S3Store:
    """The same bucket without the proxy, which shows what is stored."""
    return S3Store(f"s3://{bucket}/p", StoreOptions(endpoint_url=s3_server.url))


def use(proxy: FaultProxy, *rules: Rule) -> None:
    """Disturb requests by these rules, and forget earlier requests."""
    proxy.clear()
    proxy.replace_rules(rules)


def calls(proxy: FaultProxy, method: str | None = None) -> list[tuple[str, int | None]]:
    """The method and status of each request, or only of requests with one method."""
    return [(r.method, r.status) for r in proxy.requests if method in (None, r.method)]


def checks(server: Server) -> bool:
    """Whether the server refuses a body that does not match Content-MD5.

    It keeps no checksums then.
    """
    return isinstance(server, RadosGateway)


@pytest.mark.parametrize("method", ["put", "create"])
@pytest.mark.parametrize("offset", [0, 1234, -1], ids=["first", "middle", "last"])
def test_an_upload_damaged_once_is_stored_again(
    through: S3Store,
    direct: S3Store,
    proxy: FaultProxy,
    s3_server: Server,
    method: str,
    offset: int,
) -> None:
    """A flipped byte of an upload is detected, even if it was accepted, and sent again."""
    use(proxy, Rule(Match("PUT", times=1), FlipByte(offset, "upload")))
    assert getattr(through, method)("key", DATA)
    assert calls(proxy, "PUT") == [("PUT", 400 if checks(s3_server) else 200), ("PUT", 200)]
    assert direct.get("key") == DATA


@pytest.mark.parametrize("method", ["put", "create"])
def test_an_upload_damaged_always_is_never_reported_as_stored(
    through: S3Store,
    direct: S3Store,
    proxy: FaultProxy,
    bucket: str,
    s3_server: Server,
    method: str,
) -> None:
    """An upload that is always damaged raises an error with the key, and leaves no object."""
    use(proxy, Rule(Match("PUT"), FlipByte(7, "upload")))
    if checks(s3_server):
        with pytest.raises(
            StoreError, match=f"s3://{bucket}/p/key: the store received other bytes"
        ):
            getattr(through, method)("key", DATA)
        assert calls(proxy, "PUT") == [("PUT", 400)] * through.options.max_attempts
        assert list(direct.list()) == []
        return
    with pytest.raises(StoredBytesDiffer, match=f"s3://{bucket}/p/key: the store holds other"):
        getattr(through, method)("key", DATA)
    assert len(calls(proxy, "PUT")) == through.options.max_attempts
    with pytest.raises(ObjectNotFound):
        direct.head("key")


def test_damage_is_noticed_where_etag_and_checksum_hide_it(
    through: S3Store, proxy: FaultProxy, s3_server: Server
) -> None:
    """If ETags are no MD5 and there are no checksums, reading the object back detects damage."""
    use(
        proxy,
        Rule(Match("PUT"), FlipByte(7, "upload")),
        Rule(Match(), SetHeader("ETag", '"opaque-1"')),
        Rule(Match(), SetHeader("x-amz-checksum-sha256", None)),
    )
    with pytest.raises(StoreError if checks(s3_server) else StoredBytesDiffer):
        through.put("key", DATA)
    assert len(calls(proxy, "GET")) == (0 if checks(s3_server) else through.options.max_attempts)


@pytest.mark.parametrize("etag", [f'"{"0" * 32}"', '"opaque-1"', None])
def test_servers_with_their_own_etags_are_read_back(
    through: S3Store, direct: S3Store, proxy: FaultProxy, etag: str | None
) -> None:
    """An object whose ETag is no MD5 is read back once and accepted."""
    use(proxy, Rule(Match(), SetHeader("ETag", etag)))
    assert through.put("key", DATA).bytes == len(DATA)
    assert calls(proxy) == [("PUT", 200), ("HEAD", 200), ("GET", 200)]
    assert through.get("key") == direct.get("key") == DATA


def test_a_body_that_was_cut_by_the_server_is_stored_again(
    through: S3Store, direct: S3Store, proxy: FaultProxy
) -> None:
    """An object that the server has stored too short is detected by its size."""
    direct.put("key", DATA[:-1])
    # The first PUT is answered as a success but not stored: the old object remains.
    use(proxy, Rule(Match("PUT", times=1), Status(200, "OK")))
    assert through.put("key", DATA).bytes == len(DATA)
    assert direct.get("key") == DATA
    assert len(calls(proxy, "PUT")) == 2


def test_a_lost_update_of_the_same_size_is_noticed(
    through: S3Store, direct: S3Store, proxy: FaultProxy
) -> None:
    """A PUT that was answered but not stored is detected although the size is the same."""
    direct.put("key", DATA[::-1])
    use(proxy, Rule(Match("PUT", times=1), Status(200, "OK")))
    through.put("key", DATA)
    assert direct.get("key") == DATA


@pytest.mark.parametrize("method", ["put", "create"])
@pytest.mark.parametrize("fault", [INTERNAL, Reset()], ids=["500", "reset"])
def test_an_upload_refused_for_a_while_succeeds(
    through: S3Store, direct: S3Store, proxy: FaultProxy, method: str, fault: Fault
) -> None:
    """Temporary refusals and resets are repeated until the object is stored."""
    use(proxy, Rule(Match("PUT", times=2), fault))
    assert getattr(through, method)("key", DATA)
    status = fault.code if isinstance(fault, Status) else None
    assert calls(proxy, "PUT") == [("PUT", status), ("PUT", status), ("PUT", 200)]
    assert direct.get("key") == DATA


@pytest.mark.parametrize(
    "code", ["BadDigest", "IncompleteBody", "RequestTimeout", "XAmzContentSHA256Mismatch"]
)
@pytest.mark.parametrize("method", ["put", "create"])
def test_damage_that_the_server_notices_is_sent_again(
    through: S3Store, direct: S3Store, proxy: FaultProxy, method: str, code: str
) -> None:
    """If the server reports a wrong digest or a short body, the object is sent again."""
    use(proxy, Rule(Match("PUT", times=1), Status(400, code)))
    assert getattr(through, method)("key", DATA)
    assert direct.get("key") == DATA


def test_a_put_whose_answer_is_lost_is_repeated(
    through: S3Store, direct: S3Store, proxy: FaultProxy
) -> None:
    """A reset after the server has stored the object ends as a success."""
    use(proxy, Rule(Match("PUT", times=1), Reset("response")))
    assert through.put("key", DATA)
    assert direct.get("key") == DATA


def test_a_lock_whose_answer_is_lost_is_taken(
    through: S3Store, direct: S3Store, proxy: FaultProxy
) -> None:
    """The repeated request finds the lock of this run and takes it."""
    use(proxy, Rule(Match("PUT", times=1), Reset("response")))
    with Locks(through, None, pytest.fail) as locks:
        locks.take(["train"])
        locks.check()
        assert [info.key for info in direct.list()] == ["leases/train"]
    assert list(direct.list()) == []


def test_a_job_file_whose_answer_is_lost_is_created(
    through: S3Store, direct: S3Store, proxy: FaultProxy
) -> None:
    """The repeated request finds the bytes that this run has created."""
    use(proxy, Rule(Match("PUT", "job.json", times=1), Reset("response")))
    create_job(through, b"labels", {"train": b"plan"}, {"train": b"job"}, wait_s=0)
    assert direct.get("train.job.json") == b"job"


def test_a_lost_answer_does_not_claim_another_ones_object(
    through: S3Store, direct: S3Store, proxy: FaultProxy
) -> None:
    """A repeated create does not claim success if other bytes are stored under the key."""
    direct.put("key", b"another one's")
    use(proxy, Rule(Match("PUT", times=1), Reset("request")))
    assert through.create("key", DATA) is False
    assert direct.get("key") == b"another one's"


def test_a_server_that_always_refuses_is_an_error(
    through: S3Store, direct: S3Store, proxy: FaultProxy
) -> None:
    """After all attempts, the server's own words are the error, and nothing is stored."""
    use(proxy, Rule(Match("PUT"), INTERNAL))
    with pytest.raises(StoreError, match=f"{INTERNAL.s3_code}: {INTERNAL.message}"):
        through.put("key", DATA)
    assert calls(proxy) == [("PUT", 500)] * 3
    assert list(direct.list()) == []


@pytest.mark.parametrize("method", ["put", "create", "get", "get_range", "head"])
def test_a_connection_that_is_always_reset_is_unreachable(
    through: S3Store, direct: S3Store, proxy: FaultProxy, method: str
) -> None:
    """If every connection is reset, the error is StoreUnreachable."""
    if method not in ("put", "create"):
        direct.put("key", DATA)
    use(proxy, Rule(Match(), Reset()))
    arguments = {"put": (DATA,), "create": (DATA,), "get_range": (0, 10)}.get(method, ())
    with pytest.raises(StoreUnreachable, match="no complete answer"):
        getattr(through, method)("key", *arguments)


def to_a_file(store: S3Store, key: str) -> bytes:
    """The bytes that ``get_to`` appends to a file that already has content."""
    file = io.BytesIO(b"before")
    file.seek(0, io.SEEK_END)
    store.get_to(key, file)
    assert file.getvalue().startswith(b"before")
    return file.getvalue().removeprefix(b"before")


WHOLE = pytest.mark.parametrize("read", [S3Store.get, to_a_file], ids=["get", "to-a-file"])
Read = Callable[[S3Store, str], bytes]


@WHOLE
@pytest.mark.parametrize("offset", [0, 1234, -1], ids=["first", "middle", "last"])
@pytest.mark.parametrize("checksum", [True, False], ids=["checksum", "etag-only"])
def test_a_download_damaged_once_is_read_again(
    through: S3Store, proxy: FaultProxy, offset: int, checksum: bool, read: Read
) -> None:
    """A flipped byte of a download is detected by checksum or ETag, and the read is repeated."""
    through.put("key", DATA)
    rules = [Rule(Match("GET", times=1), FlipByte(offset))]
    if not checksum:
        rules.append(Rule(Match(), SetHeader("x-amz-checksum-sha256", None)))
    use(proxy, *rules)
    assert read(through, "key") == DATA
    assert calls(proxy) == [("GET", 200), ("GET", 200)]


@WHOLE
def test_a_download_damaged_always_is_never_returned(
    through: S3Store, proxy: FaultProxy, read: Read
) -> None:
    """If every reading has the same damage, the ETag still detects it.

    This holds if the ETag was the MD5 of the object that ``put`` has confirmed.
    """
    through.put("key", DATA)
    use(proxy, Rule(Match("GET"), FlipByte(3)))
    with pytest.raises(StoreError, match="readings differ"):
        read(through, "key")
    assert len(calls(proxy)) == READINGS


@WHOLE
def test_readings_that_all_differ_are_never_returned(
    through: S3Store, proxy: FaultProxy, read: Read
) -> None:
    """Without a checksum, readings that all differ and do not match the ETag are refused."""
    through.put("key", DATA)
    flips = [Rule(Match("GET", skip=n, times=1), FlipByte(n)) for n in range(3 * READINGS)]
    use(proxy, *flips, Rule(Match(), SetHeader("x-amz-checksum-sha256", None)))
    with pytest.raises(StoreError, match="readings differ from each other"):
        read(through, "key")


@pytest.mark.parametrize(
    "fault",
    [Truncate(0), Truncate(1000), INTERNAL, Reset(), Reset("response"), Stall(30)],
    ids=["cut-at-0", "cut-at-1000", "500", "reset", "reset-late", "stall"],
)
@pytest.mark.parametrize("complete", [True, False], ids=["get", "range"])
def test_a_download_that_breaks_off_is_read_again(
    through: S3Store, proxy: FaultProxy, fault: Fault, complete: bool
) -> None:
    """A cut, stalled, refused or reset download is repeated, in full or in part."""
    through.put("key", DATA)
    use(proxy, Rule(Match("GET", times=1), fault))
    if complete:
        assert through.get("key") == DATA
    else:
        assert through.get_range("key", 100, 5000) == DATA[100:5100]
    assert len(calls(proxy, "GET")) == 2


@pytest.mark.parametrize("complete", [True, False], ids=["get", "range"])
def test_a_download_that_always_breaks_off_is_unreachable(
    through: S3Store, proxy: FaultProxy, complete: bool
) -> None:
    """A download that is cut every time raises StoreUnreachable and returns no part of the data."""
    through.put("key", DATA)
    use(proxy, Rule(Match("GET"), Truncate(1000)))
    with pytest.raises(StoreUnreachable, match="no complete answer"):
        _ = through.get("key") if complete else through.get_range("key", 0, 5000)
    assert len(calls(proxy, "GET")) == READINGS


@pytest.mark.parametrize("fault", [Truncate(1000), INTERNAL, Reset("response")])
def test_a_file_holds_what_a_second_reading_brought(
    through: S3Store, proxy: FaultProxy, fault: Fault
) -> None:
    """After an interrupted download, the file has only the bytes of the second reading."""
    through.put("key", DATA)
    use(proxy, Rule(Match("GET", times=1), fault))
    assert to_a_file(through, "key") == DATA
    use(proxy, Rule(Match("GET"), Truncate(1000)))
    with pytest.raises(StoreUnreachable, match="no complete answer"):
        to_a_file(through, "key")


def test_a_lost_answer_does_not_replace_another_ones_object(
    through: S3Store, direct: S3Store, proxy: FaultProxy
) -> None:
    """A repeated replace leaves the bytes of another version."""
    direct.put("key", b"before")
    use(proxy, Rule(Match("PUT", times=1), Reset("request")))
    before = direct.version("key")
    direct.put("key", b"another one's")
    assert not through.replace("key", b"mine", before)
    assert direct.get("key") == b"another one's"


@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_a_confirmation_that_breaks_off_is_repeated(
    through: S3Store, direct: S3Store, proxy: FaultProxy, method: str
) -> None:
    """A reset or cut confirmation is repeated until it is known what is stored."""
    rules = [Rule(Match(), SetHeader("ETag", '"opaque-1"'))]
    fault: Fault = Reset() if method == "HEAD" else Truncate(1000)
    use(proxy, *rules, Rule(Match(method, times=1), fault))
    assert through.put("key", DATA).bytes == len(DATA)
    assert direct.get("key") == DATA


def test_a_server_that_asks_to_slow_down_is_obeyed(
    through: S3Store, direct: S3Store, proxy: FaultProxy
) -> None:
    """503 SlowDown for a put and a get is repeated until the request succeeds."""
    slow = [Rule(Match(method, times=1), SLOW_DOWN) for method in ("PUT", "GET")]
    use(proxy, *slow)
    through.put("key", DATA)
    assert through.get("key") == direct.get("key") == DATA
    assert calls(proxy, "PUT") == [("PUT", 503), ("PUT", 200)]
    assert calls(proxy, "GET") == [("GET", 503), ("GET", 200)]


def test_listing_and_deleting_outlast_a_refusal(
    through: S3Store, direct: S3Store, proxy: FaultProxy
) -> None:
    """List, head and delete are repeated after an internal error or a reset."""
    direct.put("key", DATA)
    use(proxy, Rule(Match(times=1), INTERNAL))
    assert [info.key for info in through.list()] == ["key"]
    use(proxy, Rule(Match(times=1), INTERNAL))
    assert through.head("key").bytes == len(DATA)
    use(proxy, Rule(Match(times=1), Reset()))
    through.delete("key")
    assert list(direct.list()) == []


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Status(400, "ExpiredToken", "The token has expired."), "expired .*: renew them"),
        (
            Status(403, "RequestTimeTooSkewed", "Too large."),
            "permission refused .Too large.*this machine's clock",
        ),
        (SLOW_DOWN, "SlowDown: Please reduce your request rate. Run again later"),
        (INTERNAL, "InternalError: We encountered an internal error. Run again later"),
    ],
    ids=["expired", "skewed", "slow-down", "500"],
)
def test_an_answer_that_stays_says_what_to_do(
    through: S3Store, proxy: FaultProxy, fault: Status, message: str
) -> None:
    """A permanent error has the server's own words and advice."""
    use(proxy, Rule(Match(), fault))
    for ask in (lambda: through.get("key"), lambda: through.put("key", DATA)):
        with pytest.raises(StoreError, match=message):
            ask()


def test_attempts_are_counted_with_the_first(through: S3Store, proxy: FaultProxy) -> None:
    """``max_attempts`` is the total number of attempts for a request."""
    use(proxy, Rule(Match(), INTERNAL))
    with pytest.raises(StoreError):
        through.head("key")
    assert len(proxy.requests) == through.options.max_attempts
