"""Tests of dataprep.adapters.mxnet_compat."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

from dataprep.adapters.mxnet_compat import import_mxnet


@pytest.fixture
def fake_mxnet(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module called mxnet; NumPy has its own names again afterwards."""
    before = dict(vars(np))
    module = ModuleType("mxnet")
    monkeypatch.setitem(sys.modules, "mxnet", module)
    yield module
    for name in set(vars(np)) - set(before):
        delattr(np, name)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # NumPy 1.26's own old names warn
def test_numpy_has_the_old_names_afterwards(fake_mxnet: ModuleType) -> None:
    """Every name that MXNet reads on import is there, and means what it did."""
    assert import_mxnet() is fake_mxnet
    old = vars(np)
    assert np.dtype(old["bool"]) == np.dtype(bool)
    assert old["PINF"] == -old["NINF"] == old["Inf"] == np.inf
    assert np.isnan([old["NaN"], old["NAN"]]).all()
    assert not np.signbit(old["PZERO"])
    assert np.signbit(old["NZERO"])
    assert old["alltrue"]([True, True])
    assert old["sometrue"]([False, True])
    assert old["product"]([2, 3]) == 6
    assert old["round_"](2.6) == 3
    assert old["trapz"]([1, 2, 3]) == 4
    assert old["in1d"]([1, 2], [2]).tolist() == [False, True]
    assert np.array_equal(old["msort"]([[3, 1], [2, 4]]), [[2, 1], [3, 4]])


def test_financial_functions_are_there_but_raise(fake_mxnet: ModuleType) -> None:
    """The functions NumPy 1.20 removed can be looked up, and say where they went."""
    import_mxnet()
    for name in ("fv", "ipmt", "irr", "mirr", "nper", "npv", "pmt", "ppmt", "pv", "rate"):
        with pytest.raises(NotImplementedError, match="numpy-financial"):
            vars(np)[name](1, 2)


def test_names_that_numpy_has_are_left_alone(fake_mxnet: ModuleType) -> None:
    """What NumPy itself has is the same object as before."""
    before = dict(vars(np))
    import_mxnet()
    assert all(vars(np)[name] is value for name, value in before.items())


def test_without_mxnet_it_is_an_import_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where MXNet is not installed, the usual ImportError is raised."""
    monkeypatch.setitem(sys.modules, "mxnet", None)
    monkeypatch.setattr("dataprep.adapters.mxnet_compat._missing_names", dict)
    with pytest.raises(ImportError):
        import_mxnet()
