"""A bucket has an address and options, and errors of S3 have clear messages."""

from __future__ import annotations

import pickle
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from botocore import exceptions as boto

from dataprep.errors import (
    ConfigError,
    DataprepError,
    ObjectNotFound,
    PermissionRefused,
    StoreError,
    StoreFull,
    StoreUnreachable,
)
from dataprep.stores import StoreOptions
from dataprep.stores.s3 import S3Store
from dataprep.stores.s3_bucket import S3Bucket, is_temporary, translate_s3_errors
from iobench.servers.fault_proxy import FaultProxy, Match, Rule, Status
from iobench.servers.moto_server import MotoServer
from tests.dataprep.stores.conftest import OpenS3

SECRET = "hunter2-very-secret"
Use = Callable[[S3Store], object]
USES: dict[str, Use] = {
    "prepare": lambda store: store.prepare(),
    "get": lambda store: store.get("key"),
    "get_range": lambda store: store.get_range("key", 0, 1),
    "put": lambda store: store.put("key", b"data"),
    "create": lambda store: store.create("key", b"data"),
    "list": lambda store: list(store.list()),
    "head": lambda store: store.head("key"),
    "delete": lambda store: store.delete("key"),
}


@pytest.fixture
def open_s3(open_s3: OpenS3, monkeypatch: pytest.MonkeyPatch) -> OpenS3:
    """A function that opens stores with credentials that must not be in a message."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", SECRET + "-token")
    return open_s3


def refused(kind: type[DataprepError], store: S3Store, use: Use) -> str:
    """The one-line message of the error that ``use`` raises, which is exactly of ``kind``."""
    with pytest.raises(DataprepError) as caught:
        use(store)
    assert type(caught.value) is kind
    message = str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == message
    assert SECRET not in message
    assert "\n" not in message
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    return message


def refused_always(kind: type[DataprepError], store: S3Store) -> dict[str, str]:
    """The messages of all operations."""
    return {name: refused(kind, store, use) for name, use in USES.items()}


def test_no_such_bucket(open_s3: OpenS3) -> None:
    """Every message names a missing bucket, and most of them say to create it."""
    messages = refused_always(ObjectNotFound, open_s3(into="no-such-bucket"))
    assert all("s3://no-such-bucket" in message for message in messages.values())
    for name in ("prepare", "get", "put", "create", "list"):
        assert "no such bucket: create it first" in messages[name]


def test_a_refused_request(open_s3: OpenS3, s3_server: MotoServer) -> None:
    """A 403 is PermissionRefused after one request, with advice."""
    with FaultProxy(s3_server.url, [Rule(Match(), Status(403, "AccessDenied", "Denied"))]) as proxy:
        messages = refused_always(PermissionRefused, open_s3(endpoint_url=proxy.url))
        assert len(proxy.requests) == len(USES)
    advice = "check the credentials and the bucket's policy"
    assert all(advice in message for message in messages.values())


def test_nobody_at_the_endpoint(open_s3: OpenS3, monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint without a server is unreachable, and is named with its option."""
    monkeypatch.setattr("time.sleep", lambda duration_s: None)
    with socket.socket() as bound_socket:
        bound_socket.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound_socket.getsockname()[1]}"
        messages = refused_always(StoreUnreachable, open_s3(endpoint_url=url, max_attempts=1))
    assert all(url in message and "--endpoint-url" in message for message in messages.values())


def test_no_credentials(open_s3: OpenS3, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The message says how to give credentials."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    messages = refused_always(PermissionRefused, open_s3())
    advice = "no usable AWS credentials: set AWS_PROFILE"
    assert all(advice in message for message in messages.values())


def test_no_such_profile(open_s3: OpenS3) -> None:
    """A missing profile is an error of the configuration with its name."""
    messages = refused_always(ConfigError, open_s3(profile="no-such-profile"))
    assert all("no-such-profile" in message for message in messages.values())


@pytest.mark.parametrize("name", ["Not_A_Bucket!", "b"])
def test_a_name_that_no_bucket_has(open_s3: OpenS3, name: str) -> None:
    """A name that breaks the rules for buckets is refused in one line."""
    with pytest.raises(DataprepError) as caught:
        open_s3(into=name).prepare()
    assert isinstance(caught.value, ConfigError | ObjectNotFound)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture
def website() -> Iterator[str]:
    """A server that answers all requests with a web page."""

    class Page(BaseHTTPRequestHandler):
        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            self.rfile.read(length)
            body = b"<html>\n<body>\nWelcome\n</body>\n"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    for method in ("GET", "HEAD", "PUT", "DELETE"):
        setattr(Page, f"do_{method}", Page.answer)
    server = HTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("use", [USES["list"], USES["put"]], ids=["list", "put"])
def test_an_endpoint_that_is_no_s3(open_s3: OpenS3, website: str, use: Use) -> None:
    """A web server is a store error, and its page is never returned as an object."""
    with pytest.raises(StoreError) as caught:
        use(open_s3(endpoint_url=website, max_attempts=1))
    assert "\n" not in str(caught.value)


def answered(code: str, status: int = 400) -> boto.ClientError:
    """An answer of S3 with this code."""
    answer = {"Code": code, "Message": "first\n  second"}
    response: Any = {"Error": answer, "ResponseMetadata": {"HTTPStatusCode": status}}
    return boto.ClientError(response, "GetObject")


TRANSLATED: list[tuple[Exception, type[DataprepError]]] = [
    (answered("NoSuchKey", 404), ObjectNotFound),
    (answered("NoSuchBucket", 404), ObjectNotFound),
    (answered("AccessDenied", 403), PermissionRefused),
    (answered("InvalidAccessKeyId", 403), PermissionRefused),
    (answered("SignatureDoesNotMatch", 403), PermissionRefused),
    (answered("ExpiredToken", 400), PermissionRefused),
    (answered("RequestTimeTooSkewed", 403), PermissionRefused),
    (answered("QuotaExceeded", 403), StoreFull),
    (answered("PermanentRedirect", 301), StoreError),
    (answered("SlowDown", 503), StoreError),
    (answered("InternalError", 500), StoreError),
    (answered("NeverHeardOf", 418), StoreError),
    (boto.NoCredentialsError(), PermissionRefused),
    (boto.PartialCredentialsError(provider="env", cred_var="x"), PermissionRefused),
    (boto.TokenRetrievalError(provider="sso", error_msg="x"), PermissionRefused),
    (boto.ProfileNotFound(profile="x"), ConfigError),
    (boto.ParamValidationError(report="two\nlines"), ConfigError),
    (boto.EndpointConnectionError(endpoint_url="http://x"), StoreUnreachable),
    (boto.ConnectTimeoutError(endpoint_url="http://x"), StoreUnreachable),
    (boto.ReadTimeoutError(endpoint_url="http://x"), StoreUnreachable),
    (boto.ConnectionClosedError(endpoint_url="http://x"), StoreUnreachable),
    (boto.SSLError(endpoint_url="http://x", error=OSError("x")), StoreUnreachable),
    (boto.ProxyConnectionError(proxy_url="http://x"), StoreUnreachable),
    (boto.ResponseStreamingError(error="x"), StoreUnreachable),
    (boto.IncompleteReadError(actual_bytes=1, expected_bytes=2), StoreUnreachable),
    (boto.FlexibleChecksumError(error_msg="x"), StoreError),
    (boto.InvalidRegionError(region_name="x"), StoreError),
    (boto.NoRegionError(), StoreError),
    (ValueError("Invalid endpoint: x"), StoreError),
]


@pytest.mark.parametrize(("error", "kind"), TRANSLATED, ids=[str(error) for error, _ in TRANSLATED])
def test_foreign_errors_are_translated(error: Exception, kind: type[DataprepError]) -> None:
    """Each error of botocore becomes the right one, in one line, and a region is named."""
    with pytest.raises(DataprepError) as caught, translate_s3_errors("s3://b/k", StoreOptions()):
        raise error
    assert type(caught.value) is kind
    assert str(caught.value).startswith("s3://b/k: ") or not isinstance(error, boto.ClientError)
    assert "\n" not in str(caught.value)
    assert ("--set store.region" in str(caught.value)) >= ("PermanentRedirect" in str(error))


def _classes(kind: type[Exception]) -> Iterator[type[Exception]]:
    """A class and all classes that derive from it."""
    for below in kind.__subclasses__():
        yield below
        yield from _classes(below)


@pytest.mark.parametrize(
    "name",
    sorted(
        {
            error_class.__name__
            for error_class in _classes(boto.BotoCoreError)
            if error_class.__module__ == boto.__name__
        }
    ),
)
def test_no_error_of_botocore_is_forgotten(name: str) -> None:
    """Every error that botocore defines is translated."""
    kind: type[Exception] = getattr(boto, name)
    error = kind.__new__(kind)
    with pytest.raises(DataprepError), translate_s3_errors("s3://b/k", StoreOptions()):
        raise error


@pytest.mark.parametrize("error", [ConfigError("x"), StoreFull("x"), TypeError("x")], ids=repr)
def test_other_errors_pass_as_they_are(error: Exception) -> None:
    """Errors of this package, and errors outside of the store, are not changed."""
    with pytest.raises(type(error)) as caught, translate_s3_errors("s3://b/k", StoreOptions()):
        raise error
    assert caught.value is error


@pytest.mark.parametrize(
    ("error", "passing"),
    [
        (answered("BadDigest"), True),
        (answered("IncompleteBody"), True),
        (boto.IncompleteReadError(actual_bytes=1, expected_bytes=2), True),
        (boto.ConnectionClosedError(endpoint_url="x"), True),
        (boto.EndpointConnectionError(endpoint_url="x"), True),
        (boto.FlexibleChecksumError(error_msg="x"), True),
        (ConnectionResetError(), True),
        (answered("AccessDenied"), False),
        (answered("NoSuchBucket"), False),
        (boto.NoCredentialsError(), False),
        (boto.ParamValidationError(report="x"), False),
        (ValueError("x"), False),
    ],
    ids=str,
)
def test_damage_on_the_way_may_pass(error: Exception, passing: bool) -> None:
    """Damage and lost connections are worth another request, and a refusal is not."""
    assert is_temporary(error) is passing


@pytest.mark.parametrize("uri", ["/mnt/disk", "s3://", "s3:///key", "memory://name"])
def test_what_is_no_bucket_is_refused(uri: str) -> None:
    """The reason says how to write the address."""
    with pytest.raises(ConfigError, match="write s3://BUCKET/PREFIX"):
        S3Bucket(uri)


def test_a_key_that_begins_with_a_slash_is_not_the_one_without() -> None:
    """A prefix that begins with a slash is refused, because other objects would be used."""
    with pytest.raises(ConfigError, match="write one slash after the bucket"):
        S3Bucket("s3://name//a/b")
    assert S3Bucket("s3://name//").prefix == ""  # all keys, including those that begin with a slash


def test_a_key_in_a_message_is_escaped() -> None:
    """Control characters of a key are escaped in messages."""
    with (
        pytest.raises(StoreError, match=r"^s3://name/a/b\\x1b\[2J: "),
        S3Bucket("s3://name/a").translate_s3_errors("b\x1b[2J"),
    ):
        raise ValueError("x")


def test_an_answer_that_lacks_a_header_is_named() -> None:
    """An answer without a header, which a proxy may remove, is named."""
    lacking: dict[str, int] = {}
    with (
        pytest.raises(StoreError, match=r"^s3://b/k: the store's answer cannot .*ContentLength"),
        translate_s3_errors("s3://b/k", StoreOptions()),
    ):
        _ = lacking["ContentLength"]
