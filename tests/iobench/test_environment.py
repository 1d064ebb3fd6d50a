"""The machine in words, without a name of host, user or account."""

from __future__ import annotations

import getpass
import json
import os
import platform
import socket
import subprocess
from pathlib import Path, PurePosixPath

import psutil
import pytest

from iobench import environment
from iobench.environment import describe
from iobench.mounts import file_system


class TestDescribe:
    def test_it_says_what_figures_depend_on(self, tmp_path: Path) -> None:
        """Versions, processors, memory, and the file system of each target."""
        found = describe({"here": tmp_path})
        assert found["python"] == platform.python_version()
        assert found["processors"] == len(os.sched_getaffinity(0))
        assert 0 < found["memory_bytes"] <= psutil.virtual_memory().total
        assert found["libraries"]["numpy"]
        here = found["targets"]["here"]
        assert here["total_bytes"] >= here["free_bytes"] > 0
        assert here["file_system"] == file_system(tmp_path)

    def test_it_is_json(self, tmp_path: Path) -> None:
        """As the result keeps it."""
        found = describe({"here": tmp_path})
        assert json.loads(json.dumps(found, allow_nan=False)) == found

    def test_a_target_may_not_be_there_yet(self, tmp_path: Path) -> None:
        """Its file system is that of what is above it."""
        found = describe({"later": tmp_path / "a" / "b"})["targets"]["later"]
        assert found["file_system"] == file_system(tmp_path)
        assert "total_bytes" not in found

    def test_nobody_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Neither host nor user nor the paths that may hold their names."""
        home = tmp_path / "home-of-jane"
        home.mkdir()
        monkeypatch.setenv("USER", "jane-of-all-users")
        monkeypatch.setenv("HOSTNAME", "her-own-machine")
        text = json.dumps(describe({"disk": home})).lower()
        for name in (home.name, "jane-of-all-users", "her-own-machine", str(tmp_path)):
            assert name.lower() not in text
        for name in (socket.gethostname(), platform.node(), getpass.getuser(), str(Path.home())):
            words = text.replace('"', " ").replace(",", " ").split()
            assert name.lower() not in words

    def test_each_library_is_named_as_it_is_installed(self) -> None:
        """One that is not there has no version."""
        found = environment.libraries()
        assert "nothing-of-this-name" not in found
        assert set(found) <= set(environment._LIBRARIES)


class TestGpus:
    def answered(self, monkeypatch: pytest.MonkeyPatch, answer: object) -> list[dict[str, str]]:
        """GPUs where the tool answers so, or raises."""

        def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
            if isinstance(answer, Exception):
                raise answer
            return subprocess.CompletedProcess(command, 0, str(answer), "")

        monkeypatch.setattr(subprocess, "run", run)
        return environment.gpus()

    def test_each_has_name_memory_and_driver(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A line of the tool's is one GPU."""
        line = "NVIDIA H200, 143771 MiB, 570.86\n"
        found = self.answered(monkeypatch, line * 2)
        gpu = {"name": "NVIDIA H200", "memory.total": "143771 MiB", "driver_version": "570.86"}
        assert found == [gpu, gpu]

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
    def test_no_answer_is_no_gpu(self, monkeypatch: pytest.MonkeyPatch, answer: object) -> None:
        """A missing, hanging or complaining tool stops nothing."""
        assert self.answered(monkeypatch, answer) == []


def test_a_processor_has_a_name() -> None:
    """The kernel's, or the architecture's where it gives none."""
    assert environment.processor().strip()
    assert PurePosixPath(environment.processor()).name
