"""MXNet 1.9.1 on a NumPy newer than it knows.

MXNet is retired (https://attic.apache.org/projects/mxnet.html) and 1.9.1 is its last release on
PyPI. On import it reads names from NumPy that have since gone: on NumPy 1.26 ``bool`` and the
financial functions, on NumPy 2 also ``PZERO``, ``NaN``, ``alltrue``, ``in1d`` and others. All
but the financial functions are given back under their old meaning. Those, which MXNet only
looks up to export again, raise when called.

Not mended: on NumPy 2.3, which has no ``ndarray.tostring``, ``mxnet.recordio.pack`` fails for a
list of labels. ``dataprep.formats.recordio.pack_image_header`` does not need it.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

_FINANCIAL = ("fv", "ipmt", "irr", "mirr", "nper", "npv", "pmt", "ppmt", "pv", "rate")


def import_mxnet() -> ModuleType:
    """MXNet, imported after the names it misses were set in the ``numpy`` module, for good.

    A name that NumPy has is left as it is. Raises ``ImportError`` where MXNet is not installed.
    """
    for name, value in _missing_names().items():
        setattr(np, name, value)
    return importlib.import_module("mxnet")


def _missing_names() -> dict[str, object]:
    names: dict[str, object] = {
        "bool": np.bool_,
        "PZERO": 0.0,
        "NZERO": -0.0,
        "PINF": np.inf,
        "NINF": -np.inf,
        "Inf": np.inf,
        "NAN": np.nan,
        "NaN": np.nan,
        "alltrue": np.all,
        "in1d": np.isin,
        "product": np.prod,
        "round_": np.round,
        "sometrue": np.any,
        "msort": _msort,
        "trapz": vars(np).get("trapezoid"),
    }
    names.update(dict.fromkeys(_FINANCIAL, _removed))
    # vars(), since asking NumPy for a name that has gone warns or raises.
    return {name: value for name, value in names.items() if name not in vars(np)}


def _msort(values: npt.ArrayLike) -> npt.NDArray[Any]:
    return np.sort(values, axis=0)


def _removed(*args: object, **options: object) -> None:
    raise NotImplementedError("NumPy 1.20 removed its financial functions; use numpy-financial")
