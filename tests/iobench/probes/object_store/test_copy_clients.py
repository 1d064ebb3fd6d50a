"""The command lines of programs that copy, and the settings of s3torchconnector."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dataprep.stores import StoreOptions
from iobench.clock import SystemClock
from iobench.errors import TrialFailed, Unavailable
from iobench.probes.object_store.clients import CopyClient
from iobench.probes.object_store.copy_clients import AwsCli, S3TorchConnector, S5cmd
from iobench.results.trial import Location

OPTIONS = StoreOptions(
    endpoint_url="http://127.0.0.1:9", profile="me", region="eu-west-1", requester_pays=True
)
KINDS: dict[str, type[CopyClient]] = {"s5cmd": S5cmd, "aws": AwsCli}


@pytest.fixture(params=KINDS)
def name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Return a program's name; only programs in ``tmp_path`` are found."""
    monkeypatch.setattr("iobench.machine.processes.find_spec", lambda name: None)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", "/nowhere")
    return str(request.param)


def client(name: str, options: StoreOptions = OPTIONS) -> CopyClient:
    """Return a client of a bucket's prefix with 6 connections."""
    return KINDS[name](Location("s3://bucket/a", "empty", options), 6, SystemClock())


def program(folder: Path, name: str, script: str) -> None:
    """Make an executable script."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_the_command_line_has_the_settings(name: str, tmp_path: Path) -> None:
    """The command line has all given options, source and target, and no others."""
    log = tmp_path / "arguments"
    program(tmp_path, name, f'echo "$@ $AWS_REGION" > {log}')
    client(name).copy("read/5/", tmp_path / "to")
    arguments = log.read_text().replace("=", " ")
    assert "--endpoint-url http://127.0.0.1:9" in arguments
    assert "--profile me" in arguments
    assert "--request-payer requester" in arguments
    assert "eu-west-1" in arguments
    assert f"s3://bucket/a/read/5/{'*' if name == 's5cmd' else ''} {tmp_path}/to/" in arguments
    assert ("--numworkers 6" in arguments) == (name == "s5cmd")
    client(name, StoreOptions()).copy("read/5/", tmp_path / "to")
    defaults = log.read_text()
    assert not any(word in defaults for word in ("None", "--profile", "--endpoint-url", "payer"))


def test_only_programs_say_that_their_start_counts(
    name: str, tmp_path: Path, module: Connector
) -> None:
    """s3torchconnector copies in threads of the trial, so that it has no start."""
    program(tmp_path, name, "exit 0")
    assert any("the time includes its start" in note for note in client(name).notes)
    assert not any("start" in note for note in connector().notes)


def test_programs_get_the_endpoint_of_the_environment(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The endpoint that boto3 finds is on the command line, since s5cmd does not look for it."""
    log = tmp_path / "arguments"
    program(tmp_path, name, f'echo "$@" > {log}')
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://elsewhere")
    client(name, StoreOptions()).copy("read/5/", tmp_path / "to")
    assert "--endpoint-url=http://elsewhere" in log.read_text()


def test_the_error_of_a_program_is_one_line(name: str, tmp_path: Path) -> None:
    """The error is the program's message on one line, or how to install it."""
    with pytest.raises(Unavailable, match=f"^{name} is not installed: pip install"):
        client(name)
    program(tmp_path, name, "echo 'no such\nbucket' >&2; exit 3")
    with pytest.raises(TrialFailed, match=f"{name} ended with exit code 3: no such bucket"):
        client(name).copy("read/5/", tmp_path)


BODIES = {"a/read/5/0": b"first", "a/read/5/1": b"other"}


class S3Exception(Exception):
    """The library's exception, with a message."""


class Connector:
    """A stand-in for the module: two objects, and a record of the calls."""

    S3Exception = S3Exception
    S3ClientConfig = SimpleNamespace

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.fails = False
        self.S3MapDataset = self

    def from_prefix(self, uri: str, **settings: Any) -> Sequence[Any]:
        """Return a data set of readers."""
        self.requests.append((uri, settings))
        return [SimpleNamespace(key=key, read=lambda key=key: self._read(key)) for key in BODIES]

    def _read(self, key: str) -> bytes:
        if self.fails:
            raise S3Exception("Service error:\n  Access\x1b Denied")
        return BODIES[key]


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Connector:
    """Return the module that the client imports."""
    connector = Connector()
    monkeypatch.setitem(sys.modules, "s3torchconnector", connector)
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    return connector


def connector(uri: str = "s3://bucket/a", **options: Any) -> S3TorchConnector:
    """Return a client of a location with two connections."""
    return S3TorchConnector(Location(uri, "empty", StoreOptions(**options)), 2, SystemClock())


def test_objects_become_files_by_one_listing(module: Connector, tmp_path: Path) -> None:
    """Each object becomes a file; a second copy does not list the objects again."""
    reader = connector(region="eu-west-1")
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        reader.copy("read/5/", folder)
        content = {path.name: path.read_bytes() for path in folder.iterdir()}
        assert content == {"0": b"first", "1": b"other"}
    ((uri, settings),) = module.requests
    assert uri == "s3://bucket/a/read/5/"
    assert (settings["region"], settings["endpoint"]) == ("eu-west-1", None)
    assert vars(settings["s3client_config"]) == {"force_path_style": False, "max_attempts": 8}


def test_the_connector_gets_the_settings(module: Connector, tmp_path: Path) -> None:
    """Another server gets paths instead of host names; the requester pays if configured."""
    url = "http://127.0.0.1:9"
    reader = connector(endpoint_url=url, max_attempts=2, requester_pays=True)
    reader.copy("read/5/", tmp_path)
    ((_, settings),) = module.requests
    assert settings["endpoint"] == url
    expected = {"force_path_style": True, "max_attempts": 2, "requester_pays": True}
    assert vars(settings["s3client_config"]) == expected
    # Amazon's certificate is not valid for host names of buckets with a dot.
    connector("s3://my.bucket/a").copy("read/5/", tmp_path)
    assert module.requests[1][1]["s3client_config"].force_path_style


def test_its_failure_is_the_trial_s(module: Connector, tmp_path: Path) -> None:
    """The trial fails with the library's message on one line."""
    reader = connector()
    module.fails = True
    with pytest.raises(TrialFailed, match=r"s3torchconnector: Service error: Access\S* Denied$"):
        reader.copy("read/5/", tmp_path)


def test_the_error_names_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the package, which is in no extra since it installs PyTorch."""
    monkeypatch.setitem(sys.modules, "s3torchconnector", None)
    with pytest.raises(Unavailable, match="pip install s3torchconnector"):
        connector()
