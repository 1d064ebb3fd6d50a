"""What s3torchconnector is told, and what its words become; ``test_probe`` has the real one."""

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
from iobench.probes.object_store.clients.torch_connector import S3TorchConnector
from iobench.trial import Place

BODIES = {"a/read/5/0": b"first", "a/read/5/1": b"other"}


class S3Exception(Exception):
    """As its own: whatever went wrong, in words."""


class Connector:
    """In the place of the module: two objects, and what it was asked for."""

    S3Exception = S3Exception
    S3ClientConfig = SimpleNamespace

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.fails = False
        self.S3MapDataset = self

    def from_prefix(self, uri: str, **told: Any) -> Sequence[Any]:
        """A data set of readers."""
        self.asked.append((uri, told))
        return [SimpleNamespace(key=key, read=lambda key=key: self._read(key)) for key in BODIES]

    def _read(self, key: str) -> bytes:
        if self.fails:
            raise S3Exception("Service error:\n  Access\x1b Denied")
        return BODIES[key]


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Connector:
    """The module that is imported."""
    found = Connector()
    monkeypatch.setitem(sys.modules, "s3torchconnector", found)
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    return found


def client(uri: str = "s3://bucket/a", **options: Any) -> S3TorchConnector:
    """That of a place, on two connections."""
    return S3TorchConnector(Place(uri, "empty", StoreOptions(**options)), 2, SystemClock())


def test_objects_become_files_by_one_listing(module: Connector, tmp_path: Path) -> None:
    """Each object by its last name, twice; the second time nothing is listed again."""
    connector = client(region="eu-west-1")
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        connector.copy("read/5/", folder)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
            "0": b"first",
            "1": b"other",
        }
    ((uri, told),) = module.asked
    assert uri == "s3://bucket/a/read/5/"
    assert (told["region"], told["endpoint"]) == ("eu-west-1", None)
    assert vars(told["s3client_config"]) == {"force_path_style": False, "max_attempts": 8}


def test_what_is_told(module: Connector, tmp_path: Path) -> None:
    """Another server has no host names of buckets; who pays is told where it is asked."""
    client(endpoint_url="http://127.0.0.1:9", max_attempts=2, requester_pays=True).copy(
        "read/5/", tmp_path
    )
    ((_, told),) = module.asked
    assert told["endpoint"] == "http://127.0.0.1:9"
    assert vars(told["s3client_config"]) == {
        "force_path_style": True,
        "max_attempts": 2,
        "requester_pays": True,
    }


def test_a_bucket_with_dots_has_no_certificate(module: Connector, tmp_path: Path) -> None:
    """It is named in the path."""
    client("s3://my.bucket/a").copy("read/5/", tmp_path)
    assert module.asked[0][1]["s3client_config"].force_path_style


def test_its_failure_is_the_trial_s(module: Connector, tmp_path: Path) -> None:
    """In its words, on one line."""
    connector = client()
    module.fails = True
    with pytest.raises(TrialFailed, match=r"s3torchconnector: Service error: Access\S* Denied$"):
        connector.copy("read/5/", tmp_path)


def test_what_is_missing_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no part of an extra, since it brings PyTorch."""
    monkeypatch.setitem(sys.modules, "s3torchconnector", None)
    with pytest.raises(Unavailable, match="pip install s3torchconnector"):
        client()
