"""The short form of ``planted``, and that its search finds what is there."""

from __future__ import annotations

import base64
import os
import zlib
from pathlib import Path
from random import Random

import pytest

from iobench.s3_server import MotoServer
from tests.commandline import Finished
from tests.reliability import planted as form
from tests.reliability.planted import BUCKET, Planted, Secret, leaks


def test_no_secret_is_written(
    tmp_path: Path, s3_server: MotoServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In nothing that is said, kept on disk or stored, whether all went well or not."""
    seed = int(os.environ.get("DATAPREP_SEED", "1"))
    print(f"DATAPREP_SEED={seed}")  # noqa: T201  shown beside a failure
    for name, value in MotoServer.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    s3_server.create_bucket(BUCKET)
    seen: dict[str, Finished] = {}
    planted = Planted(tmp_path, s3_server, Random(seed))
    assert list(leaks(planted, s3_server, seen, short=True)) == []
    assert len(seen) > 10
    assert (tmp_path / "run" / "report.html").exists()


SECRET = Secret("a safe", "aVerySecretValueOfThirtyTwoLettr")


@pytest.mark.parametrize(
    "written",
    [
        SECRET.value.encode(),
        b"http://x?sig=" + SECRET.value.encode() + b"&y",
        *(base64.b64encode(b"jo:"[:shift] + SECRET.value.encode()) for shift in range(4)),
        b"<script>" + base64.b64encode(zlib.compress(os.urandom(200) + SECRET.value.encode())),
        b"<script>" + base64.b64encode(zlib.compress(SECRET.value.encode() + os.urandom(200))),
    ],
)
def test_the_search_finds_what_is_there(written: bytes) -> None:
    """Plain, in an address, as a header of HTTP has it, and in a page's packed charts."""
    files = [("page.html", form._readable("page.html", written))]
    assert [found.where for found in form._searched([SECRET], "x", files)] == ["page.html"]
    assert list(form._searched([SECRET], "x", [("y", b"nothing of the kind")])) == []
