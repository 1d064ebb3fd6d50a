"""The frameworks, imported once. Warnings during their import are not errors."""

from __future__ import annotations

import importlib
import os
import warnings
from types import ModuleType

import pytest

from dataprep.reading.mxnet_compat import import_mxnet


@pytest.fixture(scope="session")
def tensorflow() -> ModuleType:
    """TensorFlow, quiet and on the CPU."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("tensorflow")


@pytest.fixture(scope="session")
def mxnet() -> ModuleType:
    """MXNet, with the NumPy names that it needs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_mxnet()
