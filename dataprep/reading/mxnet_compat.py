"""Import MXNet 1.9.1 with a newer version of NumPy than it supports.

MXNet is retired (https://attic.apache.org/projects/mxnet.html) and 1.9.1 is its last release on
PyPI. Its import reads names from NumPy that NumPy has removed: NumPy 1.26 has no ``bool`` and no
financial functions, and 2.x also lacks ``PZERO``, ``NaN``, ``alltrue``, ``in1d`` and others.

One fault is not repaired: NumPy 2.3 has no ``ndarray.tostring``, so that ``mxnet.recordio.pack``
fails for a list of labels. This package does not call it.
"""

from __future__ import annotations

import importlib
from functools import partial
from types import ModuleType

import numpy as np

# MXNet never calls these functions. It only re-exports them.
_FINANCIAL = ("fv", "ipmt", "irr", "mirr", "nper", "npv", "pmt", "ppmt", "pv", "rate")


def import_mxnet() -> ModuleType:
    """Import MXNet, after setting the names that it needs in the ``numpy`` module.

    The names stay set. They have the meaning that they had in older versions of NumPy, except the
    financial functions, which are None. A name that NumPy still has is not replaced.

    Raises:
        ImportError: MXNet is not installed.
    """
    names: dict[str, object] = dict.fromkeys(_FINANCIAL) | {
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
        "msort": partial(np.sort, axis=0),
        "trapz": vars(np).get("trapezoid"),
    }
    for name, value in names.items():
        if name not in vars(np):  # getattr warns or raises for a name that NumPy has removed
            setattr(np, name, value)
    return importlib.import_module("mxnet")
