"""The settings of several hosts come from the options and from the launcher."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dataprep.errors import ConfigError
from iobench.cli.main import app
from iobench.runner.hosts.settings import HostSettings, host_settings

LAUNCHERS = ("SLURM_", "OMPI_", "PMI_", "GROUP_", "AWS_BATCH_", "RANK", "WORLD_SIZE")


@pytest.fixture(autouse=True)
def _started_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the variables of launchers from the environment."""
    for name in [name for name in os.environ if name.startswith(LAUNCHERS)]:
        monkeypatch.delenv(name)


def settings(
    host: int | None = None, hosts: int | None = None, uri: str | None = "/shared/r", **more: Any
) -> HostSettings | None:
    """Return the settings that follow from these options."""
    store, wait_s = more.get("store", ()), more.get("wait_s", 9.0)
    return host_settings(host, hosts, uri, store, wait_s, more.get("counts"))


@pytest.mark.parametrize(
    "environment",
    [
        {"SLURM_NODEID": "2", "SLURM_NNODES": "5", "SLURM_PROCID": "7", "SLURM_NTASKS": "9"},
        {"GROUP_RANK": "2", "GROUP_WORLD_SIZE": "5", "RANK": "17", "WORLD_SIZE": "40"},
        {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "5"},
        {"PMI_RANK": "2", "PMI_SIZE": "5"},
    ],
    ids=["slurm", "torchrun", "open mpi", "mpich"],
)
def test_launchers_say_which_host_this_is(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    """The launcher gives the host's number unless the options do."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    from_launcher = settings()
    assert from_launcher is not None
    assert (from_launcher.host, from_launcher.hosts) == (2, 5)
    assert (from_launcher.rendezvous, from_launcher.wait_s) == ("/shared/r", 9.0)
    from_options = settings(0, 3)
    assert from_options is not None
    assert (from_options.host, from_options.hosts) == (0, 3)


def test_a_single_host_has_no_settings() -> None:
    """A single host measures as without these options, also under Slurm."""
    assert settings(uri=None) is None
    assert settings(0, 1) is None
    assert settings(0, 1, uri=None) is None


def test_a_launcher_alone_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several hosts measure together only if a rendezvous is named."""
    monkeypatch.setenv("SLURM_NODEID", "2")
    monkeypatch.setenv("SLURM_NNODES", "5")
    assert settings(uri=None) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "started by none of Slurm"),
        ({"host": 1}, "--hosts is missing"),
        ({"hosts": 2}, "--host is missing"),
        ({"host": 2, "hosts": 2}, "counted from 0 to 1"),
        ({"host": 0, "hosts": 2, "uri": None}, "need --rendezvous"),
        ({"uri": None, "counts": "1"}, "need --rendezvous"),
        ({"uri": None, "store": ["region=x"]}, "need --rendezvous"),
        ({"host": 0, "hosts": 2, "counts": "1,3"}, "numbers from 1 to 2"),
        ({"host": 0, "hosts": 2, "counts": "x"}, "numbers from 1 to 2"),
        ({"host": 0, "hosts": 2, "store": ["colour=red"]}, "colour"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, Any], message: str) -> None:
    """The exit code is 2, and the error says which option to give instead."""
    with pytest.raises(ConfigError, match=message):
        settings(**options)


def test_store_options_and_counts_are_read() -> None:
    """The number of all hosts is dropped from the counts, since each point runs on all anyway."""
    hosts_settings = settings(0, 4, store=["endpoint_url=http://here:9"], counts="2,1,4")
    assert hosts_settings is not None
    assert hosts_settings.store.endpoint_url == "http://here:9"
    assert hosts_settings.counts == (1, 2)


def test_wrong_options_end_the_command_before_anything_is_written(tmp_path: Path) -> None:
    """The exit code is 2."""
    config = tmp_path / "config.yaml"
    config.write_text("loaders: [{loader: 'null'}]")
    arguments = ["run", str(config), "--output", str(tmp_path / "run"), "--hosts", "3"]
    done = CliRunner().invoke(app, [*arguments, "--host", "1"])
    assert done.exit_code == 2
    assert "several hosts need --rendezvous" in done.stderr
    assert not (tmp_path / "run").exists()
