"""Programs that copy, told what to do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dataprep.stores import StoreOptions
from iobench.clock import SystemClock
from iobench.errors import TrialFailed, Unavailable
from iobench.probes.object_store.clients import CopyClient
from iobench.probes.object_store.clients.programs import AwsCli, S5cmd
from iobench.trial import Place

OPTIONS = StoreOptions(
    endpoint_url="http://127.0.0.1:9", profile="me", region="eu-west-1", requester_pays=True
)
KINDS: dict[str, type[CopyClient]] = {"s5cmd": S5cmd, "aws": AwsCli}


@pytest.fixture(params=KINDS)
def name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A program's name; only what lies in ``tmp_path`` is found."""
    monkeypatch.setattr("iobench.machine.processes.find_spec", lambda name: None)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", "/nowhere")
    return str(request.param)


def client(name: str, options: StoreOptions = OPTIONS) -> CopyClient:
    """That of a bucket's prefix, on 6 connections."""
    return KINDS[name](Place("s3://bucket/a", "empty", options), 6, SystemClock())


def program(folder: Path, name: str, script: str) -> None:
    """One of that name."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_what_is_told(name: str, tmp_path: Path) -> None:
    """Endpoint, profile, region, who pays, what and where to; no word of a wish that was not."""
    program(tmp_path, name, f'echo "$@ $AWS_REGION" > {tmp_path}/told')
    client(name).copy("read/5/", tmp_path / "to")
    said = (tmp_path / "told").read_text()
    for words in ("--endpoint-url http://127.0.0.1:9", "--profile me", "--request-payer requester"):
        assert words in said
    assert "eu-west-1" in said
    assert f"s3://bucket/a/read/5/{'*' if name == 's5cmd' else ''} {tmp_path}/to/" in said
    assert ("--numworkers 6" in said) == (name == "s5cmd")
    client(name, StoreOptions()).copy("read/5/", tmp_path / "to")
    bare = (tmp_path / "told").read_text()
    assert not any(word in bare for word in ("None", "--profile", "--endpoint-url", "payer"))


def test_what_is_missing(name: str) -> None:
    """It says how to install it."""
    with pytest.raises(Unavailable, match=f"^{name} is not installed: pip install"):
        client(name)


def test_what_fails(name: str, tmp_path: Path) -> None:
    """In the program's own words, on one line."""
    program(tmp_path, name, "echo 'no such\nbucket' >&2; exit 3")
    with pytest.raises(TrialFailed, match=f"{name} ended with exit code 3: no such bucket"):
        client(name).copy("read/5/", tmp_path)
