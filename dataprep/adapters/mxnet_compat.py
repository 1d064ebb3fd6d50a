"""MXNet 1.9.1 on a NumPy that is newer than it knows.

MXNet is retired (https://attic.apache.org/projects/mxnet.html) and 1.9.1 is its last release on
PyPI. On import it reads names from NumPy that NumPy has removed: 1.26 has no ``bool`` and no
financial functions, 2.x also has no ``PZERO``, ``NaN``, ``alltrue``, ``in1d`` and others.

Not repaired: NumPy 2.3 has no ``ndarray.tostring``, so ``mxnet.recordio.pack`` fails for a list of
labels. ``dataprep.formats.recordio.pack_image_header`` does not need it.
"""

from __future__ import annotations

import importlib
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

# MXNet only exports them again.
_FINANCIAL = ("fv", "ipmt", "irr", "mirr", "nper", "npv", "pmt", "ppmt", "pv", "rate")


def import_mxnet() -> ModuleType:
    """Import MXNet after the names that it needs were set in the ``numpy`` module, for good.

    They have their old meaning, except the financial functions, which are None. A name that NumPy
    has is not replaced.

    Raises:
        ImportError: MXNet is not installed.
    """
    names: dict[str, Any] = dict.fromkeys(_FINANCIAL) | {
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
        if name not in vars(np):  # to ask NumPy itself for a removed name warns or raises
            setattr(np, name, value)
    return importlib.import_module("mxnet")
