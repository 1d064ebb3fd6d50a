"""Frameworks by name, with a word of what brings one that is missing."""

from __future__ import annotations

import importlib
import os
from types import ModuleType

from dataprep.adapters.mxnet_compat import import_mxnet

_TITLES = {"torch": "PyTorch", "tensorflow": "TensorFlow", "mxnet": "MXNet"}


def import_framework(name: str) -> ModuleType:
    """``torch``, ``tensorflow`` or ``mxnet``, each by the extra of the same name.

    TensorFlow's start-up log is kept to errors unless ``TF_CPP_MIN_LOG_LEVEL`` is set.

    Raises:
        ImportError: not installed, or broken; it says what installs it.
    """
    try:
        if name == "mxnet":
            return import_mxnet()
        if name == "tensorflow":
            os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        return importlib.import_module(name)
    except Exception as error:  # a broken one raises anything: OSError, AttributeError, ...
        if isinstance(error, ModuleNotFoundError) and error.name == name:
            raise ImportError(
                f"{_TITLES[name]} is not installed: pip install 'dataprep-iobench[{name}]'",
                name=name,
            ) from None
        raise ImportError(f"{_TITLES[name]} cannot be imported: {error}", name=name) from error
