"""The description of a machine, which names no host, user or account."""

from __future__ import annotations

import getpass
import json
import os
import platform
import re
import socket
import subprocess
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.machine.kernel_files import number, one_line, text
from dataprep.machine.processors import processor_quota
from iobench.machine.environment import LIBRARIES, describe, libraries
from iobench.machine.hardware import (
    available_bytes,
    gpus,
    memory_bytes,
    networks,
    processors,
    transparent_huge_pages,
)
from iobench.machine.mounts import file_system
from tests.iobench.machine.machines import link
from tests.iobench.small_runs import ThirdParty

NOWHERE = Path("/nowhere")


def write(root: Path, files: dict[str, str]) -> Path:
    """Write files of the kernel below ``root``, which is returned."""
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{content}\n")
    return root


def test_it_says_what_figures_depend_on(tmp_path: Path) -> None:
    """The description has versions, processors, memory, and the storage of each target."""
    description = describe({"here": tmp_path, "later": tmp_path / "a" / "b"})
    assert json.loads(json.dumps(description, allow_nan=False)) == description
    assert None not in description.values()
    assert description["python"] == platform.python_version()
    assert description["processors"] == len(os.sched_getaffinity(0))
    assert 0 < available_bytes() <= description["memory_bytes"] == memory_bytes()
    here, later = description["targets"]["here"], description["targets"]["later"]
    assert here["total_bytes"] >= here["free_bytes"] > 0
    assert here["file_system"] == later["file_system"] == file_system(tmp_path)
    assert later["total_bytes"] == here["total_bytes"]


def test_nobody_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The description has no host, user or account, and no path with such a name."""
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
    # Only separate words are compared: a host's name may also be a part of another word.
    words = set(re.split(r"[\s\",]+", text))
    assert not {name.lower() for name in own} & words


def test_libraries_and_packages_that_bring_loaders(third_party: ThirdParty) -> None:
    """Each library has its installed version; missing ones are left out."""
    versions = libraries()
    assert (versions["numpy"], versions["odd-loaders"]) == (version("numpy"), "1.0")
    assert "mxnet" in LIBRARIES
    assert all(versions.values())
    assert "dataprep-iobench" not in versions
    assert third_party.folder.exists()


@pytest.mark.parametrize(
    ("script", "fio_version"),
    [("echo fio-3.33", "3.33"), ("echo 'welcome, jane'", None), ("exit 3", None)],
)
def test_fio_is_asked_for_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, fio_version: str | None
) -> None:
    """The program itself reports its version, since no package has it."""
    fio = tmp_path / "fio"
    fio.write_text(f"#!/bin/sh\n{script}\n")
    fio.chmod(0o755)
    monkeypatch.setattr("iobench.machine.environment.find_program", lambda name: str(fio))
    assert libraries().get("fio") == fio_version


def test_processors(tmp_path: Path) -> None:
    """The description has model, governors and huge pages; an unknown model is the architecture."""
    governor = "sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor"
    pages = "sys/kernel/mm/transparent_hugepage/enabled"
    files = {
        "proc/cpuinfo": "model name\t: AMD EPYC 9354\nphysical id\t: 0",
        governor.format(0): "performance",
        governor.format(1): "powersave",
        pages: "always [madvise] never",
    }
    cpu = processors(write(tmp_path, files))
    assert cpu["processor"] == "AMD EPYC 9354"
    assert cpu["governor"] == "performance, powersave"
    unknown = processors(NOWHERE)
    assert (unknown["processor"], unknown["governor"]) == (os.uname().machine, "")
    assert transparent_huge_pages(tmp_path) == "madvise"
    assert transparent_huge_pages(write(tmp_path, {pages: "nonsense"})) is None


def test_cards_that_are_up_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal cards are counted together; bridges and cards that are down are left out."""
    drivers = {"ens0": "mlx5_core", "ens1": "mlx5_core", "eth0": "ena", "eth2": "ixgbe"}
    for name, driver in drivers.items():
        (tmp_path / "drivers" / driver).mkdir(parents=True, exist_ok=True)
        link(tmp_path / name / "device/driver", tmp_path / "drivers" / driver)
    fast = SimpleNamespace(isup=True, speed=100_000)
    reported = {
        "ens0": fast,
        "ens1": fast,
        "docker0": fast,
        "eth0": SimpleNamespace(isup=True, speed=0),
        "eth2": SimpleNamespace(isup=False, speed=10_000),
    }
    assert all(network["count"] > 0 for network in networks())
    monkeypatch.setattr(psutil, "net_if_stats", lambda: reported)
    assert networks(tmp_path) == [
        {"driver": "mlx5_core", "mbit_per_s": 100_000, "count": 2},
        {"driver": "ena", "count": 1},
    ]


def answer_of(monkeypatch: pytest.MonkeyPatch, answer: object) -> list[dict[str, str]]:
    """Return the GPUs if ``nvidia-smi`` prints this answer, or raises it."""

    def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        if isinstance(answer, Exception):
            raise answer
        return subprocess.CompletedProcess(command, 0, str(answer), "")

    monkeypatch.setattr(subprocess, "run", run)
    return gpus()


def test_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line is a GPU, whose values in brackets are not available and left out."""
    h200 = {
        "name": "NVIDIA H200",
        "memory.total": "143771 MiB",
        "driver_version": "570.86",
        "power.limit": "700.00 W",
        "persistence_mode": "Enabled",
        "pcie.link.gen.max": "5",
        "pcie.link.width.max": "16",
        "pcie.link.gen.current": "1",
        "pcie.link.width.current": "16",
    }
    line = ", ".join(h200.values())
    unknown = "Tesla T4, [N/A], 570.86, N/A, [Not Supported], 5, 16, 1, 16"
    kept = {key: h200[key] for key in h200 if "pcie" in key or key == "driver_version"}
    gpus = answer_of(monkeypatch, f"{line}\n{line}\n{unknown}\n")
    assert gpus == [h200, h200, {"name": "Tesla T4", **kept}]


@pytest.mark.parametrize(
    "answer",
    [
        FileNotFoundError("nvidia-smi"),
        subprocess.TimeoutExpired("nvidia-smi", 20),
        subprocess.CalledProcessError(9, "nvidia-smi"),
        "No devices were found\n",
        "",
    ],
)
def test_no_answer_is_no_gpu(monkeypatch: pytest.MonkeyPatch, answer: object) -> None:
    """A machine has no GPU if the tool is missing, hangs or fails."""
    assert answer_of(monkeypatch, answer) == []


@pytest.mark.parametrize(
    ("group", "limits"), [("0::/pod/box", (5000, 2.5)), ("0::/", (None, 4.0)), ("", (None, None))]
)
def test_control_groups_of_version_2(
    tmp_path: Path, group: str, limits: tuple[int | None, float | None]
) -> None:
    """The group of this process and its parents may have limits; ``max`` is none."""
    files = {
        "pod/box/memory.max": "max",
        "pod/memory.max": "5000",
        "pod/box/cpu.max": "max 100000",
        "pod/cpu.max": "250000 100000",
        "cpu.max": "400000 100000",
    }
    root = write(tmp_path, {f"sys/fs/cgroup/{name}": reported for name, reported in files.items()})
    write(root, {"proc/self/cgroup": group})
    memory = limits[0] or psutil.virtual_memory().total
    assert (memory_bytes(root), processor_quota(root)) == (memory, limits[1])


def test_control_groups_of_version_1(tmp_path: Path) -> None:
    """Each controller has a tree, which a container sees as its root; -1 is no limit."""
    files = {
        "memory/memory.limit_in_bytes": "7000",
        "cpu/cpu.cfs_quota_us": "-1",
        "cpu/cpu.cfs_period_us": "100000",
        "cpu/job/cpu.cfs_quota_us": "50000",
        "cpu/job/cpu.cfs_period_us": "100000",
    }
    groups = "9:cpu,cpuacct:/{}\n4:memory:/docker/abc\n0::/\n"
    root = write(tmp_path, {f"sys/fs/cgroup/{name}": reported for name, reported in files.items()})
    write(root, {"proc/self/cgroup": groups.format("job")})
    assert (memory_bytes(root), processor_quota(root)) == (7000, 0.5)
    write(root, {"proc/self/cgroup": groups.format("")})
    assert processor_quota(root) is None


@given(st.binary(max_size=200))
def test_any_bytes_of_the_kernel_are_read(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    """A text is short and plain, and a control group that makes no sense has no limit."""
    root = tmp_path_factory.mktemp("machine")
    file = write(root, {"proc/self/cgroup": ""}) / "proc/self/cgroup"
    file.write_bytes(content)
    line_read = one_line(file)
    assert isinstance(text(file), str)
    assert len(line_read) <= 60
    assert line_read.isascii()
    assert memory_bytes(root) == psutil.virtual_memory().total


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("12", 12),
        ("", None),
        ("max", None),
        ("-1", None),
        ("1 2", None),
        ("1.5", None),
        ("٣", None),
    ],
)
def test_numbers_of_the_kernel(tmp_path: Path, content: str, expected: int | None) -> None:
    """The kernel's line feed is ignored; a folder or a missing file gives nothing."""
    file = write(tmp_path, {"file": content}) / "file"
    assert number(file) == expected
    for path in (tmp_path / "gone", tmp_path):
        assert (text(path), one_line(path), number(path)) == ("", "", None)
