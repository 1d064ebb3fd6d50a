"""Secrets in environment, profile and addresses are written nowhere."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from iobench.servers.moto_server import MotoServer
from tests import commandline
from tests.commandline import Finished

pytestmark = [pytest.mark.s3, pytest.mark.process, pytest.mark.slow]

SECRET = "zQ7vKp2mXw9TfLr4HsYb8NcJd3Ge6AuE"


def holds_secret(data: bytes) -> bool:
    """Whether data contain a secret, as it is or in base64 behind a user name, at any shift."""
    forms = [SECRET.encode()]
    for shift in range(3):
        coded = base64.b64encode(b"x" * shift + SECRET.encode())
        forms.append(coded[4 if shift else 0 : -4])
    return any(form in data for form in forms)


def test_no_secret_is_written(tree: Path, tmp_path: Path, s3_server: MotoServer) -> None:
    """No output, message, log, table or report has a secret, for commands that succeed or fail."""
    home, bucket = tmp_path / "home", "planted"
    home.mkdir()
    s3_server.create_bucket(bucket)
    environment = {
        **MotoServer.ENVIRONMENT,
        "HOME": str(home),
        "TMPDIR": str(home),
        "XDG_CACHE_HOME": str(home),
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_SESSION_TOKEN": f"token-{SECRET}",
        "HTTPS_PROXY": f"http://jo:{SECRET}@127.0.0.1:9",
        "DATABASE_PASSWORD": SECRET,
    }
    here = ("--endpoint-url", s3_server.url)
    job = ("shard", "--source", tree, "--size", "32", "--workers", "1")
    commands: list[tuple[int, tuple[str | Path, ...]]] = [
        (0, (*job, "--output", f"s3://{bucket}/out", *here)),
        (0, ("verify", f"s3://{bucket}/out", *here, "--json")),
        (0, ("inspect", f"s3://{bucket}/out", *here, "--json")),
        (0, (*job, "--output", f"s3://{bucket}/out", *here, "--print-config")),
        (2, (*job, "--output", f"s3://jo:{SECRET}@{bucket}/out", *here)),
        (2, (*job, "--output", f"s3://{bucket}/x", "--endpoint-url", f"http://jo:{SECRET}@h/")),
        (2, (*job, "--output", f"s3://nobody-{bucket}/out", *here, "--debug")),
        (2, (*job, "--output", home / "o", "--scheduler", f"tcp://jo:{SECRET}@127.0.0.1:9")),
    ]
    for code, arguments in commands:
        done: Finished = commandline.dataprep(*arguments, env=environment)
        assert done.code == code, done.err
        assert not holds_secret(done.out.encode() + done.err.encode()), arguments
    for path in home.rglob("*"):
        assert not (path.is_file() and holds_secret(path.read_bytes())), path
    store = commandline.objects_of(f"s3://{bucket}", s3_server, environment)
    assert store
    assert [key for key, data in store.items() if holds_secret(data)] == []


def test_the_search_finds_what_is_there() -> None:
    """The search finds a secret in plain text and in the form of an HTTP header."""
    for shift in range(3):
        coded = base64.b64encode(b"jo:"[:shift] + SECRET.encode() + os.urandom(5))
        assert holds_secret(b"Basic " + coded)
    assert holds_secret(f"http://x?sig={SECRET}&y".encode())
    assert not holds_secret(b"nothing of the kind")
