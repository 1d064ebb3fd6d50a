"""What a training loop needs, or why it is skipped."""

from __future__ import annotations

import pytest

from iobench.consumers import processor, requirements
from iobench.errors import Unavailable


@pytest.mark.parametrize(
    ("asked", "there", "expected"),
    [("auto", True, True), ("auto", False, False), ("cpu", True, False), ("gpu", True, True)],
)
def test_auto_takes_a_gpu_where_there_is_one(asked: str, there: bool, expected: bool) -> None:
    """``cpu`` leaves it alone, ``gpu`` insists."""
    assert requirements.takes_gpu(asked, there, "build") is expected


def test_a_gpu_that_was_asked_for_is_not_replaced() -> None:
    """Its lack is a reason to skip, which names the build that looked for it."""
    with pytest.raises(Unavailable, match="build finds no GPU"):
        requirements.takes_gpu("gpu", False, "build")


@pytest.mark.parametrize("has_bfloat16", [True, False])
def test_a_cpu_mixes_only_with_bfloat16_of_its_own(
    has_bfloat16: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``auto`` is float32 on every CPU; ``mixed`` is refused where it would be emulated."""
    monkeypatch.setattr(processor, "has_bfloat16", lambda: has_bfloat16)
    assert requirements.cpu_precision("auto") == "float32"
    assert requirements.cpu_precision("float32") == "float32"
    if has_bfloat16:
        assert requirements.cpu_precision("mixed") == "bfloat16"
    else:
        with pytest.raises(Unavailable, match="AVX512_BF16 or AMX"):
            requirements.cpu_precision("mixed")
    with pytest.raises(Unavailable, match="needs a GPU"):
        requirements.cpu_precision("mixed", mixes=False)


@pytest.mark.parametrize(
    ("asked", "capability", "bfloat16", "expected"),
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
    asked: str, capability: tuple[int, int], bfloat16: bool, expected: str
) -> None:
    """Tensor cores begin with 7.0, bfloat16 with 8.0; before them ``auto`` is float32."""
    assert requirements.gpu_precision(asked, capability, bfloat16=bfloat16) == expected
