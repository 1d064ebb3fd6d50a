"""A CPU is told by its model and what it can do."""

from __future__ import annotations

from pathlib import Path

import pytest

from iobench.consumers import processor

XEON = """processor\t: 0
model name\t: Some  Xeon(R) 8480+ CPU
flags\t\t: fpu avx512f {flag} amx_tile

processor\t: 1
model name\t: another
flags\t\t: avx512_bf16
"""


@pytest.fixture
def cpuinfo(tmp_path: Path) -> Path:
    """Where a test writes what the kernel would say."""
    return tmp_path / "cpuinfo"


def test_the_model_is_named_with_its_threads(cpuinfo: Path) -> None:
    """The first processor's name, its spaces put in order."""
    cpuinfo.write_text(XEON)
    assert processor.describe(2, cpuinfo) == "Some Xeon(R) 8480+ CPU, 2 threads"
    assert processor.describe(1, cpuinfo) == "Some Xeon(R) 8480+ CPU, 1 thread"


@pytest.mark.parametrize("text", [None, "", "Features : fp asimd\n", "model name :\n"])
def test_a_cpu_without_a_name_is_called_by_its_architecture(
    cpuinfo: Path, text: str | None
) -> None:
    """Arm kernels give no model, other systems no file."""
    if text is not None:
        cpuinfo.write_text(text)
    assert processor.describe(4, cpuinfo).endswith(" CPU, 4 threads")
    assert not processor.has_bfloat16(cpuinfo)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (XEON.format(flag="avx512_bf16"), True),
        (XEON.format(flag="amx_bf16"), True),
        (XEON.format(flag="avx512_vnni"), False),
        ("Features\t: fp asimd bf16 i8mm\n", True),
    ],
)
def test_bfloat16_is_the_first_processors_own(cpuinfo: Path, text: str, expected: bool) -> None:
    """AVX512_BF16 and AMX on x86-64, bf16 on Arm."""
    cpuinfo.write_text(text)
    assert processor.has_bfloat16(cpuinfo) is expected


def test_there_is_a_core_to_run_on() -> None:
    """At least the one that runs this."""
    assert processor.cores() >= 1


@pytest.mark.parametrize(("told", "expected"), [("3", 3), ("", None), ("0", None), ("x", None)])
def test_threads_are_those_that_are_set(
    told: str, expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A number in the environment counts; otherwise there is one a core."""
    monkeypatch.setenv("SOME_THREADS", told)
    assert processor.threads("SOME_THREADS") == (expected or processor.cores())
