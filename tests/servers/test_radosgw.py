"""The second S3 server starts, refuses what moto takes, and leaves nothing behind."""

from __future__ import annotations

import base64
import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from botocore.exceptions import ClientError

from dataprep.errors import PermissionRefused, StoreFull
from dataprep.stores import StoreOptions
from dataprep.stores.s3 import S3Store
from iobench.servers.fault_proxy import FaultProxy, FlipByte, Match, Rule
from iobench.servers.moto_server import MotoServer
from tests.commandline import wait_until
from tests.servers import radosgw as module
from tests.servers.radosgw import RadosGateway, ceph_conf

pytestmark = pytest.mark.slow

Ask = Callable[[Any, str], object]


def digest(data: bytes, name: str = "md5") -> str:
    """Return the digest of the data in base64, as headers have it."""
    return base64.b64encode(hashlib.new(name, data).digest()).decode()


def wrong_md5(s3: Any, bucket: str) -> None:
    """Put an object with the Content-MD5 of another body."""
    s3.put_object(Bucket=bucket, Key="key", Body=b"sent", ContentMD5=digest(b"meant"))


def second_put(s3: Any, bucket: str) -> None:
    """Put an object twice, each time only if the key is new."""
    for _ in range(2):
        s3.put_object(Bucket=bucket, Key="key", Body=b"x", IfNoneMatch="*")


def short_parts(s3: Any, bucket: str) -> None:
    """Complete an upload whose parts have a thousand bytes, where S3 asks for 5 MiB."""
    location = {"Bucket": bucket, "Key": "key"}
    upload = s3.create_multipart_upload(**location)["UploadId"]
    parts = []
    for number in (1, 2):
        part = {"UploadId": upload, "PartNumber": number}
        answer = s3.upload_part(**location, **part, Body=bytes(1000))
        parts.append({"PartNumber": number, "ETag": answer["ETag"]})
    every_part = {"Parts": parts}
    s3.complete_multipart_upload(**location, UploadId=upload, MultipartUpload=every_part)


def signed_by_another(s3: Any, bucket: str) -> None:
    """List a bucket; the signature is by another key."""
    s3.list_objects_v2(Bucket=bucket)


REFUSED: Mapping[str, tuple[Ask, str]] = {
    "BadDigest": (wrong_md5, ""),
    "PreconditionFailed": (second_put, ""),
    "EntityTooSmall": (short_parts, ""),
    "SignatureDoesNotMatch": (signed_by_another, "another"),
}
"""For each code of S3 there is a request and its secret, which is empty if it is the right one."""


@pytest.mark.parametrize("code", REFUSED)
def test_it_refuses(radosgw: RadosGateway, radosgw_bucket: str, code: str) -> None:
    """Each request is refused by its code of S3."""
    ask, secret = REFUSED[code]
    s3 = radosgw.client(**({"secret": secret} if secret else {}))
    with pytest.raises(ClientError) as caught:
        ask(s3, radosgw_bucket)
    assert caught.value.response["Error"]["Code"] == code
    s3.close()


def test_a_wrong_checksum_is_taken_but_not_by_the_store(
    radosgw: RadosGateway, radosgw_bucket: str
) -> None:
    """The gateway knows no x-amz-checksum: Content-MD5 is what notices damage on the way up."""
    s3 = radosgw.client()
    location = {"Bucket": radosgw_bucket, "Key": "key"}
    s3.put_object(**location, Body=b"sent", ChecksumSHA256=digest(b"meant", "sha256"))
    assert s3.get_object(**location)["Body"].read() == b"sent"
    s3.close()
    with FaultProxy(radosgw.url) as proxy:
        proxy.replace_rules([Rule(Match("PUT", times=1), FlipByte(2, "upload"))])
        store = S3Store(f"s3://{radosgw_bucket}", StoreOptions(endpoint_url=proxy.url))
        store.put("stored", b"sent")
        assert store.get("stored") == b"sent"
        assert [r.status for r in proxy.requests if r.method == "PUT"] == [400, 200]
        store.close()


def test_a_full_store_and_a_wrong_secret(
    radosgw: RadosGateway, radosgw_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full store and a wrong secret have errors of their own.

    A quota is the one way in which Ceph says that it is full: it blocks where there is none.
    """
    store = S3Store(f"s3://{radosgw_bucket}", StoreOptions(endpoint_url=radosgw.url))
    quota = ("--quota-scope=bucket", f"--bucket={radosgw_bucket}")
    radosgw.admin("quota", "set", *quota, "--max-size=10000")
    radosgw.admin("quota", "enable", *quota)
    with pytest.raises(StoreFull):
        store.put("key", bytes(100_000))
    store.close()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    store = S3Store(f"s3://{radosgw_bucket}", StoreOptions(endpoint_url=radosgw.url))
    with pytest.raises(PermissionRefused, match="SignatureDoesNotMatch"):
        store.put("key", b"x")
    store.close()


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that has a gateway of its own and can be killed."""
    code = (
        "import sys; from tests.servers.radosgw import RadosGateway\n"
        "with RadosGateway() as server:\n"
        "    print(server.process.pid, server.folder, flush=True); sys.stdin.read()"
    )
    if why := module.missing():
        pytest.skip(why)
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=module._ROOT,
        env={**os.environ, "PYTHONPATH": str(module._ROOT)},
    )
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("number", [None, signal.SIGKILL], ids=["leaves", "killed"])
def test_nothing_is_left_of_it(
    parent: subprocess.Popen[bytes], number: signal.Signals | None
) -> None:
    """No process and no file is left when the block ends or its process is killed."""
    assert parent.stdout is not None
    arguments = parent.stdout.readline().split()
    server, folder = psutil.Process(int(arguments[0])), Path(arguments[1].decode())
    there = [server, *server.children(recursive=True)]
    assert sorted(child.name() for child in there[1:]) == ["ceph-mon", "ceph-osd", "radosgw"]
    if number is None:
        parent.communicate()
    else:
        parent.send_signal(number)
    wait_until(lambda: not any(map(psutil.Process.is_running, there)), "every process to end")
    assert not folder.exists()


def test_without_the_packages_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the command; tests are skipped by the same check."""
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(RuntimeError, match=r"apt-get install .* radosgw"), RadosGateway():
        pass


def test_everything_lies_in_its_folder() -> None:
    """The gateway listens on loopback only, and its keys are those of moto."""
    assert MotoServer.ENVIRONMENT is RadosGateway.ENVIRONMENT
    assert {module.KEY, module.SECRET} == {MotoServer.ENVIRONMENT["AWS_SECRET_ACCESS_KEY"]}
    conf = ceph_conf(Path("/tmp/x"), 1111, 2222)
    assert "mon host = [v2:127.0.0.1:1111]" in conf
    assert "endpoint=127.0.0.1:2222 tcp_nodelay=1" in conf
    locations = [
        line.partition("=")[2] for line in conf.splitlines() if "/" in line and "#" not in line
    ]
    assert locations
    assert all(location.strip().startswith("/tmp/x") for location in locations)
