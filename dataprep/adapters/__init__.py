"""Bridges to the frameworks that read the shards; nothing in the core imports from here.

Each framework is imported by the call that needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataprep.adapters.mxnet_iter import to_mxnet
    from dataprep.adapters.tf_data import to_tf
    from dataprep.adapters.torch_dataset import to_torch

_HOMES = {"to_mxnet": "mxnet_iter", "to_tf": "tf_data", "to_torch": "torch_dataset"}

__all__ = ["to_mxnet", "to_tf", "to_torch"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dataprep.adapters' has no attribute {name!r}")
    return getattr(import_module(f"dataprep.adapters.{_HOMES[name]}"), name)
