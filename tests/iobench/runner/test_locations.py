"""Names in trials to locations, while a run lasts."""

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


def placed(configs: Configs, notes: list[str] | None = None, **given: Any) -> Locations:
    """Those of a config."""
    message = [] if notes is None else notes
    return Locations(BenchConfig.model_validate(configs.values(**given)), message.append, RUN)


def test_disk_targets_are_where_they_say(
    configs: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By label, in a folder of the run; ``~`` is the home."""
    monkeypatch.setenv("HOME", str(tmp_path))
    targets = [{"label": "here", "path": "."}, {"label": "home", "path": "~/disk"}]
    with placed(configs, disk={"targets": targets}) as locations:
        assert locations.get("disk/here").uri == f".iobench-probe-{RUN}"
        assert locations.get("disk/home").uri == str(tmp_path / "disk" / f".iobench-probe-{RUN}")
        assert locations.environment(["disk/here"]) == {}


def disks(folder: Path) -> dict[str, Any]:
    """Two targets in a folder, ``a`` and ``b``."""
    for name in ("a", "b"):
        (folder / name).mkdir()
    return {"targets": [{"label": name, "path": str(folder / name)} for name in ("a", "b")]}


def left(folder: Path, run: str = RUN) -> Path:
    """Leave a file in a target, as a killed trial of a run does."""
    path = folder / f".iobench-probe-{run}" / "write-0"
    path.parent.mkdir()
    path.touch()
    return path


def test_what_probes_leave_behind_is_removed(configs: Configs, tmp_path: Path) -> None:
    """From every target that was asked for, also when the run fails."""
    locations = placed(configs, disk=disks(tmp_path))
    own, unused = left(tmp_path / "a"), left(tmp_path / "b")

    def stopped() -> None:
        with locations:
            locations.get("disk/a")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert not own.parent.exists()
    assert unused.exists()


def test_what_another_run_writes_stays(configs: Configs, tmp_path: Path) -> None:
    """The first of two runs on one disk to end removes its own files alone."""
    settings = disks(tmp_path)
    own, theirs = left(tmp_path / "a"), left(tmp_path / "a", "20261121T143000Z-ffffffff")
    with placed(configs, disk=settings) as locations:
        locations.get("disk/a")
    assert not own.exists()
    assert theirs.exists()


def test_what_cannot_be_removed_is_noted(
    configs: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the folder that holds it."""
    notes: list[str] = []
    settings = disks(tmp_path)
    with monkeypatch.context() as refusing, placed(configs, notes, disk=settings) as locations:
        locations.get("disk/a")
        own = left(tmp_path / "a")
        refusing.setattr("shutil.rmtree", Mock(side_effect=PermissionError(13, "Not permitted")))
    assert notes == [f"files may be left in {own.parent}: Not permitted"]


def test_what_an_earlier_process_left_is_removed(
    configs: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was killed before it could; what trials of it named is asked for no more."""
    cleaned: list[Any] = []
    monkeypatch.setattr(
        "iobench.runner.locations.probe_objects.clean",
        lambda location, run: cleaned.append((location.uri, run)),
    )
    settings = disks(tmp_path)
    config = configs.values(
        disk=settings,
        object_store={
            "targets": [{"label": "b", "uri": "s3://bucket/b"}, {"label": "own", "uri": "local"}]
        },
    )
    own = left(tmp_path / "a")
    earlier = ("disk/a", "store/b", "store/own", "shards@disk")
    with Locations(BenchConfig.model_validate(config), print, RUN, earlier):
        pass
    assert not own.exists()
    assert cleaned == [("s3://bucket/b", RUN)]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (StoreError("s3://bucket: 503: Service Unavailable"), True),
        (ObjectNotFound("s3://bucket: no such bucket: create it first"), False),
        (PermissionRefused("s3://bucket: permission refused (403)"), False),
    ],
)
def test_what_a_store_keeps_because_it_refuses_is_said(
    configs: Configs, monkeypatch: pytest.MonkeyPatch, error: StoreError, said: bool
) -> None:
    """Where nothing could be written, nothing is left to speak of."""

    def refusing(location: Location, run: str) -> int:
        raise error

    monkeypatch.setattr("iobench.runner.locations.probe_objects.clean", refusing)
    notes: list[str] = []
    target = {"label": "real", "uri": "s3://bucket/prefix/"}
    with placed(configs, notes, object_store={"targets": [target]}) as locations:
        locations.get("store/real")
    left = f"objects may be left below s3://bucket/prefix/iobench-probe/{RUN}/: {error}"
    assert notes == ([left] if said else [])


class TestOwnServer:
    @pytest.fixture
    def started(self, monkeypatch: pytest.MonkeyPatch) -> list[MotoServer]:
        """The servers that were started."""
        actual: list[MotoServer] = []

        class Kept(MotoServer):
            def __enter__(self) -> MotoServer:
                actual.append(self)
                return super().__enter__()

        monkeypatch.setattr(locations_module, "MotoServer", Kept)
        for name in MotoServer.ENVIRONMENT:
            monkeypatch.setenv(name, "mine")
        return actual

    def test_one_for_the_whole_run(
        self, configs: Configs, started: list[MotoServer], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """For copies and probes; its credentials are given to trials, not left in this process."""
        notes: list[str] = []
        store = {"targets": [{"label": "own", "uri": "local"}]}
        with placed(configs, notes, object_store=store) as locations:
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
        """A proxy that answers nobody and a profile that nobody knows do not stop it."""
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
        monkeypatch.setenv("AWS_PROFILE", "nobody")
        store = {"targets": [{"label": "own", "uri": "local"}]}
        with placed(configs, object_store=store) as locations:
            assert locations.get("store/own").uri == f"s3://iobench/iobench-probe/{RUN}"

    def test_without_moto_its_trials_are_skipped(
        self, configs: Configs, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With the extra that brings it, looked for once."""
        tried: list[int] = []

        class Missing(MotoServer):
            def __enter__(self) -> MotoServer:
                tried.append(1)
                raise RuntimeError("install it with pip install 'dataprep-iobench[demo]'")

        monkeypatch.setattr(locations_module, "MotoServer", Missing)
        store = {"targets": [{"label": "own", "uri": "local"}]}
        with placed(configs, object_store=store) as locations:
            for _ in range(2):
                with pytest.raises(Unavailable, match=r"dataprep-iobench\[demo\]"):
                    locations.get("store/own")
        assert tried == [1]


def test_a_bucket_of_ones_own_keeps_its_credentials(configs: Configs) -> None:
    """Nothing is added for trials that use it."""
    target = {"label": "real", "uri": "s3://bucket/prefix"}
    with placed(configs, object_store={"targets": [target]}) as locations:
        location = locations.get("store/real")
        assert (location.uri, location.holds) == (
            f"s3://bucket/prefix/iobench-probe/{RUN}",
            "empty",
        )
        assert locations.environment(["store/real"]) == {}
        # It is not there: nothing is to be cleaned up in it.
        locations._resolved.clear()
