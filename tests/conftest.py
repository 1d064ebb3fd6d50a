"""Fixtures for all tests."""

from __future__ import annotations

import secrets
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from dataprep.config.shard_config import DaskOptions
from iobench.servers.moto_server import MotoServer
from tests.servers.radosgw import RadosGateway, missing

# A suite in the background of a shell ignores Ctrl-C, and every command that it starts would too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A deadline would be a timed assertion.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


_S3_FIXTURES = {"moto", "radosgw", "s3_server", "each_s3_server", "bucket"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that use an S3 server get the marker ``s3``."""
    for item in items:
        if _S3_FIXTURES & {*getattr(item, "fixturenames", ())}:
            item.add_marker("s3")


@pytest.fixture(autouse=True)
def _signals_as_they_were() -> Iterator[None]:
    """Restore the handlers of signals after each test.

    An interrupted command ignores further signals, and here it has no process of its own. Later
    commands would inherit this and could not be interrupted.
    """
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def _jobs_in_this_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small jobs start no worker processes, except in tests that are marked ``process``."""
    if request.node.get_closest_marker("process") is None:
        workers = property(_asks_for_workers)
        monkeypatch.setattr("dataprep.config.shard_config.DaskOptions.uses_workers", workers)


def _asks_for_workers(options: DaskOptions) -> bool:
    """Whether a config requests worker processes explicitly."""
    return bool(options.scheduler or options.cluster or options.processes is True)


@pytest.fixture(scope="session", autouse=True)
def _cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Indexes of archives are kept in a folder of the session, not in that of the user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Indexes of archives are kept in ``cache`` in the folder of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def moto() -> Iterator[MotoServer]:
    """One moto server over real HTTP for the whole session."""
    with MotoServer() as server:
        yield server


@pytest.fixture(scope="session")
def s3_server(moto: MotoServer) -> MotoServer:
    """The S3 server of a test. A module may replace this fixture."""
    return moto


@pytest.fixture(scope="session")
def radosgw() -> Iterator[RadosGateway]:
    """Ceph's gateway, which is stricter than moto. Each test process starts one when needed."""
    if why := missing():
        pytest.skip(why)
    with RadosGateway() as server:
        yield server


@pytest.fixture(scope="session", params=["moto", "radosgw"])
def each_s3_server(request: pytest.FixtureRequest) -> MotoServer | RadosGateway:
    """Each of both servers. A module whose ``s3_server`` is this one runs on each."""
    server: MotoServer | RadosGateway = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def bucket(s3_server: MotoServer | RadosGateway, monkeypatch: pytest.MonkeyPatch) -> str:
    """A new bucket at ``s3_server``. Credentials are in the environment, where boto3 finds them."""
    return _bucket(s3_server, monkeypatch)


@pytest.fixture
def radosgw_bucket(radosgw: RadosGateway, monkeypatch: pytest.MonkeyPatch) -> str:
    """A new bucket at ``radosgw``."""
    return _bucket(radosgw, monkeypatch)


def _bucket(server: MotoServer | RadosGateway, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make a bucket, and set the credentials of its server in the environment."""
    for name, value in server.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    name = f"test-{secrets.token_hex(6)}"
    server.create_bucket(name)
    return name


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A drawn tree like ImageNet: 120 valid images in 6 classes. Read only."""
    from dataprep.drawn import draw_tree

    dest = tmp_path_factory.mktemp("tree") / "photos"
    return draw_tree(dest, images=120, classes=6, seed=21).root


@pytest.fixture
def source(tree: Path, tmp_path: Path) -> Path:
    """A copy of the drawn tree that a test may change."""
    return Path(shutil.copytree(tree, tmp_path / "photos"))
