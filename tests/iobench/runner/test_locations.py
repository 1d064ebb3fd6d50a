"""Names in trials become locations while a run lasts, and what the run wrote is removed."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from dataprep.errors import ObjectNotFound, PermissionRefused, StoreError
from dataprep.stores import open_store
from iobench.config.benchmark import BenchConfig
from iobench.errors import Unavailable
from iobench.results.trial import Location
from iobench.runner import locations as locations_module
from iobench.runner.locations import Locations
from iobench.servers.moto_server import MotoServer
from tests.iobench.small_runs import Configs

pytestmark = pytest.mark.slow

RUN = "20261121T143000Z-0123abcd"


def locations_of(configs: Configs, notes: list[str] | None = None, **values: Any) -> Locations:
    """Return the locations of a config."""
    lines = [] if notes is None else notes
    return Locations(BenchConfig.model_validate(configs.values(**values)), lines.append, RUN)


def test_disk_targets_are_where_they_say(
    configs: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A target is found by its label, in a folder of the run; ``~`` is the home."""
    monkeypatch.setenv("HOME", str(tmp_path))
    targets = [{"label": "here", "path": "."}, {"label": "home", "path": "~/disk"}]
    with locations_of(configs, disk={"targets": targets}) as locations:
        assert locations.get("disk/here").uri == f".iobench-probe-{RUN}"
        assert locations.get("disk/home").uri == str(tmp_path / "disk" / f".iobench-probe-{RUN}")
        assert locations.environment(["disk/here"]) == {}


def disks(folder: Path) -> dict[str, Any]:
    """Return the settings of two targets, ``a`` and ``b``, whose folders are made."""
    for name in ("a", "b"):
        (folder / name).mkdir()
    return {"targets": [{"label": name, "path": str(folder / name)} for name in ("a", "b")]}


def leave_file(folder: Path, run: str = RUN) -> Path:
    """Leave a file in a target, as a killed trial of a run does, and return its path."""
    path = folder / f".iobench-probe-{run}" / "write-0"
    path.parent.mkdir()
    path.touch()
    return path


def test_files_of_probes_are_removed(configs: Configs, tmp_path: Path) -> None:
    """Files are removed from every target that was used, also if the run fails."""
    locations = locations_of(configs, disk=disks(tmp_path))
    own, unused = leave_file(tmp_path / "a"), leave_file(tmp_path / "b")

    def stopped() -> None:
        with locations:
            locations.get("disk/a")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert not own.parent.exists()
    assert unused.exists()


def test_files_of_another_run_stay(configs: Configs, tmp_path: Path) -> None:
    """Of two runs on one disk, the first to end removes only its own files."""
    settings = disks(tmp_path)
    own, theirs = (
        leave_file(tmp_path / "a"),
        leave_file(tmp_path / "a", "20261121T143000Z-ffffffff"),
    )
    with locations_of(configs, disk=settings) as locations:
        locations.get("disk/a")
    assert not own.exists()
    assert theirs.exists()


def test_files_that_cannot_be_removed_are_noted(
    configs: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The note names the folder that holds it."""
    notes: list[str] = []
    settings = disks(tmp_path)
    with (
        monkeypatch.context() as refusing,
        locations_of(configs, notes, disk=settings) as locations,
    ):
        locations.get("disk/a")
        own = leave_file(tmp_path / "a")
        refusing.setattr("shutil.rmtree", Mock(side_effect=PermissionError(13, "Not permitted")))
    assert notes == [f"files may be left in {own.parent}: Not permitted"]


def test_files_of_an_earlier_process_are_removed(
    configs: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resumed run cleans the disks and stores that its killed process used."""
    cleaned: list[Any] = []

    def clean(location: Location, run: str) -> None:
        cleaned.append((location.uri, run))

    monkeypatch.setattr("iobench.runner.locations.probe_objects.clean", clean)
    targets = [{"label": "b", "uri": "s3://bucket/b"}, {"label": "own", "uri": "local"}]
    config = configs.values(disk=disks(tmp_path), object_store={"targets": targets})
    own = leave_file(tmp_path / "a")
    earlier = ("disk/a", "store/b", "store/own", "shards@disk")
    with Locations(BenchConfig.model_validate(config), print, RUN, earlier):
        pass
    assert not own.exists()
    assert cleaned == [("s3://bucket/b", RUN)]


@pytest.mark.parametrize(
    ("error", "is_noted"),
    [
        (StoreError("s3://bucket: 503: Service Unavailable"), True),
        (ObjectNotFound("s3://bucket: no such bucket: create it first"), False),
        (PermissionRefused("s3://bucket: permission refused (403)"), False),
    ],
)
def test_objects_that_a_store_keeps_are_noted(
    configs: Configs, monkeypatch: pytest.MonkeyPatch, error: StoreError, is_noted: bool
) -> None:
    """There is a note unless nothing can have been written."""

    def refusing(location: Location, run: str) -> int:
        raise error

    monkeypatch.setattr("iobench.runner.locations.probe_objects.clean", refusing)
    notes: list[str] = []
    target = {"label": "real", "uri": "s3://bucket/prefix/"}
    with locations_of(configs, notes, object_store={"targets": [target]}) as locations:
        locations.get("store/real")
    note = f"objects may be left below s3://bucket/prefix/iobench-probe/{RUN}/: {error}"
    assert notes == ([note] if is_noted else [])


class TestOwnServer:
    """The S3 server that a run starts itself."""

    @pytest.fixture
    def started(self, monkeypatch: pytest.MonkeyPatch) -> list[MotoServer]:
        """Return the servers that were started, each once."""
        servers: list[MotoServer] = []

        class NotedServer(MotoServer):
            def __enter__(self) -> MotoServer:
                servers.append(self)
                return super().__enter__()

        monkeypatch.setattr(locations_module, "MotoServer", NotedServer)
        for name in MotoServer.ENVIRONMENT:
            monkeypatch.setenv(name, "mine")
        return servers

    def test_one_for_the_whole_run(
        self, configs: Configs, started: list[MotoServer], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Copies and probes share one server, whose credentials only their trials get."""
        notes: list[str] = []
        store = {"targets": [{"label": "own", "uri": "local"}]}
        with locations_of(configs, notes, object_store=store) as locations:
            assert started == []
            probe = locations.get("store/own")
            copy = locations.get("shards@s3")
            assert len(started) == 1
            assert probe.store.endpoint_url == copy.store.endpoint_url == started[0].url
            assert locations.environment(["store/own"]) == MotoServer.ENVIRONMENT
            assert locations.environment(["shards@disk", "shards@s3"]) == MotoServer.ENVIRONMENT
            assert locations.environment(["shards@disk"]) == {}
            assert os.environ["AWS_ACCESS_KEY_ID"] == "mine"
            with monkeypatch.context() as patched:
                for name, value in MotoServer.ENVIRONMENT.items():
                    patched.setenv(name, value)
                assert list(open_store(copy.uri, copy.store).list())
        assert "starting an S3 server (moto) on this machine" in notes
        with pytest.raises(urllib.error.URLError):
            urllib.request.urlopen(started[0].url, timeout=1)

    def test_proxies_and_profiles_are_not_for_it(
        self, configs: Configs, started: list[MotoServer], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The server works in spite of a dead proxy and an unknown profile in the environment."""
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
        monkeypatch.setenv("AWS_PROFILE", "nobody")
        store = {"targets": [{"label": "own", "uri": "local"}]}
        with locations_of(configs, object_store=store) as locations:
            assert locations.get("store/own").uri == f"s3://iobench/iobench-probe/{RUN}"

    def test_without_moto_its_trials_are_skipped(
        self, configs: Configs, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The reason names the extra that brings it, and it is looked for once."""
        attempts: list[int] = []

        class Missing(MotoServer):
            def __enter__(self) -> MotoServer:
                attempts.append(1)
                raise RuntimeError("install it with pip install 'dataprep-iobench[demo]'")

        monkeypatch.setattr(locations_module, "MotoServer", Missing)
        store = {"targets": [{"label": "own", "uri": "local"}]}
        with locations_of(configs, object_store=store) as locations:
            for _ in range(2):
                with pytest.raises(Unavailable, match=r"dataprep-iobench\[demo\]"):
                    locations.get("store/own")
        assert attempts == [1]


def test_a_bucket_of_ones_own_keeps_its_credentials(configs: Configs) -> None:
    """Trials on a user's bucket get no further credentials."""
    target = {"label": "real", "uri": "s3://bucket/prefix"}
    with locations_of(configs, object_store={"targets": [target]}) as locations:
        location = locations.get("store/real")
        assert location.uri == f"s3://bucket/prefix/iobench-probe/{RUN}"
        assert location.holds == "empty"
        assert locations.environment(["store/real"]) == {}
        # The bucket does not exist, so the run must not clean it up.
        locations._resolved.clear()
