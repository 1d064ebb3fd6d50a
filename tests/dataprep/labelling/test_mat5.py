"""Tests of dataprep.labelling.mat5: what SciPy writes, and what nobody should have written."""

from __future__ import annotations

import io
from random import Random

import numpy as np
import pytest
from scipy.io import savemat

from dataprep.labelling.mat5 import read_structs

KINDS = ("u1", "i2", "i4", "f4", "f8", "u8")


def written(*, compressed: bool = False, kind: str = "f8") -> bytes:
    """Two structs of numbers, texts, a list and a matrix."""
    fields = [(name, "O") for name in ("id", "name", "list", "none", "cell")]
    cell = np.array(["x", "y"], dtype=object)
    rows = np.array(
        [
            (np.array(1, kind), "tench", np.array([1, 2, 3], kind), np.array([]), cell),
            (np.array(200, kind), "Galéocerdo", np.array([4], kind), np.array([]), cell),
        ],
        dtype=fields,
    )
    sink = io.BytesIO()
    savemat(sink, {"other": 3, "rows": rows}, do_compression=compressed)
    return sink.getvalue()


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_what_scipy_writes_is_read(kind: str, compressed: bool) -> None:
    """Numbers of every type and text; what is neither is left out."""
    first, second = read_structs(written(compressed=compressed, kind=kind), "rows")
    assert first == {"id": (1,), "name": "tench", "list": (1, 2, 3), "none": ()}
    assert second == {"id": (200,), "name": "Galéocerdo", "list": (4,), "none": ()}


def test_another_variable_is_refused() -> None:
    """By its name, and one that is no array of structs."""
    with pytest.raises(ValueError, match="no variable 'synsets'"):
        read_structs(written(), "synsets")
    with pytest.raises(ValueError, match="no array of structs"):
        read_structs(written(), "other")


@pytest.mark.parametrize("data", [b"", b"MATLAB 5.0", b"\x89HDF\r\n\x1a\n" + bytes(200)])
def test_other_files_are_refused(data: bytes) -> None:
    """Those of MATLAB 7.3 are HDF5."""
    with pytest.raises(ValueError, match="does not begin as a MATLAB 5 file"):
        read_structs(data, "rows")


@pytest.mark.parametrize("compressed", [False, True])
def test_damage_is_a_value_error(compressed: bool) -> None:
    """Wherever it is; SciPy ends the process over some of these."""
    data = written(compressed=compressed)
    rng = Random(1)
    for _ in range(2000):
        damaged = bytearray(data)
        for _ in range(rng.choice((1, 3, 20))):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            found = read_structs(bytes(damaged[: rng.choice((len(data), 500))]), "rows")
        except ValueError:
            continue
        assert all(isinstance(row, dict) for row in found)
