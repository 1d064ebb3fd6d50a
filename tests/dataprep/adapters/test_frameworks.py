"""Tests of dataprep.adapters.frameworks, and of what the package offers."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

import dataprep
from dataprep import adapters
from dataprep.adapters.frameworks import import_framework


@pytest.mark.parametrize(
    ("name", "title"), [("torch", "PyTorch"), ("tensorflow", "TensorFlow")], ids=str
)
def test_missing(monkeypatch: pytest.MonkeyPatch, name: str, title: str) -> None:
    """A framework that is not there is told with what installs it."""
    monkeypatch.setitem(sys.modules, name, None)
    said = rf"{title} is not installed: pip install 'dataprep-iobench\[{name}\]'"
    with pytest.raises(ImportError, match=said):
        import_framework(name)


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("No module named 'grpc'", name="grpc"),
        OSError("libcudart.so: cannot open shared object file"),
        AttributeError("module 'numpy' has no attribute 'bool'"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_broken(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """A framework whose own imports fail is told with what fails."""

    def fail(name: str) -> ModuleType:
        raise error

    monkeypatch.setattr("dataprep.adapters.frameworks.importlib.import_module", fail)
    with pytest.raises(ImportError, match=f"TensorFlow cannot be imported: {error}"):
        import_framework("tensorflow")


@pytest.mark.parametrize("given", [None, "0"])
def test_tensorflow_is_quiet(monkeypatch: pytest.MonkeyPatch, given: str | None) -> None:
    """Its log is kept to errors, unless somebody asked for more."""
    module = ModuleType("tensorflow")
    monkeypatch.setitem(sys.modules, "tensorflow", module)
    environment = {} if given is None else {"TF_CPP_MIN_LOG_LEVEL": given}
    monkeypatch.setattr("dataprep.adapters.frameworks.os.environ", environment)
    assert import_framework("tensorflow") is module
    assert environment == {"TF_CPP_MIN_LOG_LEVEL": given or "2"}


def test_offered() -> None:
    """The three adapters can be had from the package and from the library."""
    assert adapters.__all__ == ["to_mxnet", "to_tf", "to_torch"]
    for name in adapters.__all__:
        assert getattr(adapters, name) is getattr(dataprep, name)
    with pytest.raises(AttributeError, match="no attribute 'to_jax'"):
        adapters.to_jax  # noqa: B018
