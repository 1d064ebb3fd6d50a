"""What a training loop needs of a machine, and why a loop is skipped without it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iobench.consumers import ConsumerSettings, requirements
from iobench.errors import Unavailable

XEON = """processor\t: 0
model name\t: Some  Xeon(R) 8480+ CPU
flags\t\t: fpu avx512f {flag} amx_tile

processor\t: 1
model name\t: another
flags\t\t: avx512_bf16
"""
CORES = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("requested", "there", "expected"),
    [("auto", True, True), ("auto", False, False), ("cpu", True, False), ("gpu", True, True)],
)
def test_auto_takes_a_gpu_where_there_is_one(requested: str, there: bool, expected: bool) -> None:
    """``auto`` takes a GPU if there is one, ``cpu`` takes none, and ``gpu`` requires one."""
    assert requirements.takes_gpu(requested, there, "build") is expected


def test_a_gpu_that_was_asked_for_is_not_replaced() -> None:
    """The loop is skipped without a GPU, and the reason names the build that found none."""
    with pytest.raises(Unavailable, match=r"build finds no GPU: .* or set device: cpu"):
        requirements.takes_gpu("gpu", False, "build")


def test_cuda_is_another_word_for_gpu() -> None:
    """``cuda``, torch's word, is accepted for ``gpu``."""
    assert ConsumerSettings.model_validate({"device": "cuda"}).device == "gpu"


@pytest.mark.parametrize("has_bfloat16", [True, False])
def test_a_cpu_mixes_only_with_bfloat16_of_its_own(
    has_bfloat16: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``auto`` is float32 on every CPU; ``mixed`` is refused if bfloat16 would be emulated."""
    monkeypatch.setattr(requirements, "has_bfloat16", lambda: has_bfloat16)
    assert requirements.cpu_precision("auto") == "float32"
    assert requirements.cpu_precision("float32") == "float32"
    if has_bfloat16:
        assert requirements.cpu_precision("mixed") == "bfloat16"
    else:
        with pytest.raises(Unavailable, match="AVX512_BF16 or AMX"):
            requirements.cpu_precision("mixed")
    with pytest.raises(Unavailable, match="needs a GPU"):
        requirements.cpu_precision("mixed", mixes_on_cpu=False)


@pytest.mark.parametrize(
    ("requested", "capability", "bfloat16", "expected"),
    [
        ("auto", (9, 0), True, "bfloat16"),
        ("auto", (9, 0), False, "float16"),
        ("auto", (7, 0), True, "float16"),
        ("auto", (6, 1), True, "float32"),
        ("mixed", (6, 1), True, "float16"),
        ("float32", (9, 0), True, "float32"),
    ],
)
def test_a_gpu_mixes_with_what_its_tensor_cores_know(
    requested: str, capability: tuple[int, int], bfloat16: bool, expected: str
) -> None:
    """Tensor cores begin with 7.0 and bfloat16 with 8.0; ``auto`` is float32 before."""
    assert requirements.gpu_precision(requested, capability, prefers_bfloat16=bfloat16) == expected


@pytest.fixture
def cpuinfo(tmp_path: Path) -> Path:
    """Return the path of a file that stands for the kernel's ``/proc/cpuinfo``."""
    return tmp_path / "cpuinfo"


def test_the_model_is_named_with_its_threads(cpuinfo: Path) -> None:
    """The description is the first processor's name with single spaces."""
    cpuinfo.write_text(XEON)
    assert requirements.describe_cpu(2, cpuinfo) == "Some Xeon(R) 8480+ CPU, 2 threads"
    assert requirements.describe_cpu(1, cpuinfo) == "Some Xeon(R) 8480+ CPU, 1 thread"


@pytest.mark.parametrize("text", [None, "", "Features : fp asimd\n", "model name :\n"])
def test_a_cpu_without_a_name_is_called_by_its_architecture(
    cpuinfo: Path, text: str | None
) -> None:
    """This holds for Arm kernels, which give no model, and for systems without the file."""
    if text is not None:
        cpuinfo.write_text(text)
    assert requirements.describe_cpu(4, cpuinfo).endswith(" CPU, 4 threads")
    assert not requirements.has_bfloat16(cpuinfo)


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
    """The flags are AVX512_BF16 and AMX on x86-64, and bf16 on Arm."""
    cpuinfo.write_text(text)
    assert requirements.has_bfloat16(cpuinfo) is expected


@pytest.mark.parametrize(("reported", "expected"), [("3", 3), ("", None), ("0", None), ("x", None)])
def test_threads_are_those_that_are_set(
    reported: str, expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A number in the environment counts; otherwise each core has a thread."""
    monkeypatch.setenv("SOME_THREADS", reported)
    assert requirements.threads("SOME_THREADS") == (expected or CORES)
