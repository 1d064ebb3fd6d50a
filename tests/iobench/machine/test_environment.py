"""The machine in words, without a name of host, user or account."""

from __future__ import annotations

import getpass
import json
import os
import platform
import re
import socket
from importlib.metadata import version
from pathlib import Path

import psutil
import pytest

from iobench.machine.block_devices import Disk
from iobench.machine.environment import LIBRARIES, describe, libraries
from iobench.machine.mounts import file_system
from tests.iobench.small_runs import ThirdParty


def test_it_says_what_figures_depend_on(tmp_path: Path) -> None:
    """Versions, processors, memory, and what each target lies on."""
    found = describe({"here": tmp_path})
    assert found["python"] == platform.python_version()
    assert found["processors"] == len(os.sched_getaffinity(0))
    assert 0 < found["memory_bytes"] <= found["machine_memory_bytes"]
    assert found["machine_memory_bytes"] == psutil.virtual_memory().total
    assert found["libraries"]["numpy"]
    here = found["targets"]["here"]
    assert here["total_bytes"] >= here["free_bytes"] > 0
    assert here["file_system"] == file_system(tmp_path)
    assert here["kind"]


def test_it_is_json(tmp_path: Path) -> None:
    """As the result keeps it; what is not known is left out."""
    found = describe({"here": tmp_path})
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert None not in found.values()


def test_a_target_may_not_be_there_yet(tmp_path: Path) -> None:
    """It lies on what is above it."""
    found = describe({"later": tmp_path / "a" / "b"})["targets"]["later"]
    assert found["file_system"] == file_system(tmp_path)
    assert "total_bytes" not in found


def test_disks_that_are_alike_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training machine has eight of a kind."""
    store = "Amazon EC2 NVMe Instance Storage"
    disks = [Disk(f"nvme{i}n1", model=store, total_bytes=10**12) for i in range(8)]
    disks.append(Disk("nvme9n1", model="Amazon Elastic Block Store", total_bytes=10**11))
    monkeypatch.setattr("iobench.machine.environment.disks", lambda: disks)
    found = [(disk["name"], disk["count"]) for disk in describe({})["disks"]]
    assert found == [("EC2 instance store", 8), ("Amazon EBS", 1)]


def test_nobody_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither host nor user nor account, nor the paths that may hold their names."""
    home = tmp_path / "home-of-jane"
    home.mkdir()
    planted = {
        "USER": "jane-of-all-users",
        "HOSTNAME": "her-own-machine",
        "AWS_ACCESS_KEY_ID": "AKIAPLANTEDPLANTED",
        "AWS_SECRET_ACCESS_KEY": "planted/secret",
        "AWS_SESSION_TOKEN": "planted-token",
        "AWS_PROFILE": "planted-profile",
        "KUBERNETES_SERVICE_HOST": "planted-host",
        "HTTPS_PROXY": "http://planted-proxy:1",
    }
    for name, value in planted.items():
        monkeypatch.setenv(name, value)
    text = json.dumps(describe({"disk": home})).lower()
    for name in (home.name, str(tmp_path), *planted.values()):
        assert name.lower() not in text
    own = (socket.gethostname(), platform.node(), getpass.getuser(), str(Path.home()))
    # Words alone: a host may be called as a word in some sentence is.
    words = set(re.split(r"[\s\",]+", text))
    assert not {name.lower() for name in own} & words


def test_each_is_named_as_it_is_installed() -> None:
    """One that is not there has no version."""
    found = libraries()
    assert found["numpy"] == version("numpy")
    assert "mxnet" in LIBRARIES
    assert all(found.values())
    assert "dataprep-iobench" not in found


@pytest.mark.usefixtures("third_party")
def test_packages_that_bring_loaders_are_named() -> None:
    """They take part as much as any."""
    assert libraries()["odd-loaders"] == "1.0"


def test_without_them_there_is_none(
    third_party: ThirdParty, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only who brings an entry point of ours is looked for."""
    monkeypatch.setattr("iobench.machine.environment._GROUPS", ())
    assert "odd-loaders" not in libraries()
    assert third_party.folder.exists()


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo fio-3.33", "3.33"),
        ("echo 'welcome, jane'", None),
        ("exit 3", None),
        (None, None),
    ],
)
def test_fio_is_asked_for_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, told: str | None
) -> None:
    """It is a program, and no package knows it."""
    if script is not None:
        (tmp_path / "fio").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "fio").chmod(0o755)
    where = str(tmp_path / "fio") if script else None
    monkeypatch.setattr("iobench.machine.processes.find_program", lambda name: where)
    assert libraries().get("fio") == told
