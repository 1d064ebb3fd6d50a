"""NVIDIA GPUs as their tool tells them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.environment.nvidia import gpus, parsed

FULL = (
    "NVIDIA H200, 143771 MiB, 570.86, 5, 16, 1, 16, 700.00 W, Disabled, Enabled, 00000000:3B:00.0"
)
PLAIN = "NVIDIA H200, 143771 MiB, 570.86"
Answers = Callable[[str], object]


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> Callable[[Answers], list[dict[str, str]]]:
    """GPUs where the tool answers a question so, or raises."""

    def asked(answers: Answers) -> list[dict[str, str]]:
        def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
            answer = answers(command[1])
            if isinstance(answer, Exception):
                raise answer
            return subprocess.CompletedProcess(command, 0, str(answer), "")

        monkeypatch.setattr(subprocess, "run", run)
        return gpus(Path("/nowhere"))

    return asked


Asked = Callable[[Answers], list[dict[str, str]]]


def test_each_has_name_memory_driver_and_link(answered: Asked) -> None:
    """A line of the tool's is one GPU; where it sits in the machine is not kept."""
    gpu = {
        "name": "NVIDIA H200",
        "memory.total": "143771 MiB",
        "driver_version": "570.86",
        "pcie.link.gen.max": "5",
        "pcie.link.width.max": "16",
        "pcie.link.gen.current": "1",
        "pcie.link.width.current": "16",
        "power.limit": "700.00 W",
        "mig.mode.current": "Disabled",
        "persistence_mode": "Enabled",
    }
    assert answered(lambda question: f"{FULL}\n{FULL}\n") == [gpu, gpu]


def test_an_old_driver_is_asked_for_less(answered: Asked) -> None:
    """One field that it does not know, and it refuses them all."""

    def old(question: str) -> object:
        refusal = subprocess.CalledProcessError(2, "nvidia-smi")
        return refusal if "mig.mode" in question else f"{PLAIN}\n"

    assert answered(old) == [
        {"name": "NVIDIA H200", "memory.total": "143771 MiB", "driver_version": "570.86"}
    ]


@pytest.mark.parametrize(
    "answer",
    [
        FileNotFoundError("nvidia-smi"),
        subprocess.TimeoutExpired("nvidia-smi", 20),
        subprocess.CalledProcessError(9, "nvidia-smi"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        "No devices were found\n",
        "",
    ],
)
def test_no_answer_is_no_gpu(answered: Asked, answer: object) -> None:
    """A missing, hanging or complaining tool stops nothing."""
    assert answered(lambda question: answer) == []


def test_what_is_not_available_is_left_out(tmp_path: Path) -> None:
    """The tool says so in brackets; a node is told where the kernel has one."""
    fields = ("name", "power.limit", "mig.mode.current", "pci.bus_id")
    node = tmp_path / "bus/pci/devices/0000:3b:00.0/numa_node"
    node.parent.mkdir(parents=True)
    node.write_text("1\n")
    line = "Tesla T4, [N/A], [Not Supported], 00000000:3B:00.0"
    assert parsed(line, fields, tmp_path) == [{"name": "Tesla T4", "numa_node": "1"}]
    node.write_text("-1\n")
    assert parsed(line, fields, tmp_path) == [{"name": "Tesla T4"}]


@given(st.text(max_size=100))
def test_no_answer_breaks_it(text: str) -> None:
    """Rows of another shape are none."""
    for gpu in parsed(text, ("name", "pci.bus_id"), Path("/nowhere")):
        assert set(gpu) <= {"name"}
