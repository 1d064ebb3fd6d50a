"""Frameworks are optional: they are imported on use, and each adapter checks its input."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dataprep
from dataprep.errors import ConfigError
from dataprep.reading import frameworks
from dataprep.reading.frameworks import import_framework
from dataprep.reading.mxnet_compat import import_mxnet


@pytest.fixture(autouse=True)
def _numpy_as_before() -> Iterator[None]:
    """Remove the names that a test has added to NumPy."""
    before = set(vars(np))
    yield
    for name in set(vars(np)) - before:
        delattr(np, name)


@pytest.mark.parametrize(
    ("name", "title"), [("torch", "PyTorch"), ("tensorflow", "TensorFlow"), ("mxnet", "MXNet")]
)
def test_a_missing_framework(monkeypatch: pytest.MonkeyPatch, name: str, title: str) -> None:
    """The error says how to install a missing framework."""
    monkeypatch.setitem(sys.modules, name, None)
    message = rf"{title} is not installed: pip install 'dataprep-iobench\[{name}\]'"
    with pytest.raises(ImportError, match=message):
        import_framework(name)


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("No module named 'grpc'", name="grpc"),
        OSError("libcudart.so: cannot open shared object file"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_broken_framework(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """The error says what is wrong with a broken framework."""

    def fail(name: str) -> ModuleType:
        raise error

    monkeypatch.setattr("dataprep.reading.frameworks.importlib.import_module", fail)
    with pytest.raises(ImportError, match=f"TensorFlow cannot be imported: {error}"):
        import_framework("tensorflow")


@pytest.mark.parametrize("arguments", [None, "0"])
def test_tensorflow_logs_errors_only(
    monkeypatch: pytest.MonkeyPatch, arguments: str | None
) -> None:
    """TensorFlow logs only errors, unless the environment sets another level."""
    monkeypatch.setitem(sys.modules, "tensorflow", ModuleType("tensorflow"))
    environment = {} if arguments is None else {"TF_CPP_MIN_LOG_LEVEL": arguments}
    monkeypatch.setattr("dataprep.reading.frameworks.os.environ", environment)
    import_framework("tensorflow")
    assert environment == {"TF_CPP_MIN_LOG_LEVEL": arguments or "2"}


def test_the_library_offers_the_adapters() -> None:
    """The names of the library and of the package are the same functions."""
    for name in frameworks.__all__:
        assert getattr(frameworks, name) is getattr(dataprep, name)


ADAPTERS: dict[str, tuple[Callable[..., object], str]] = {
    "": (lambda dataset: dataprep.to_torch(dataset), ""),
    "tensorflow": (lambda dataset: dataprep.to_tf(dataset), ""),
    "recordio": (lambda dataset: dataprep.to_mxnet(dataset, batch_size=8), ", format='recordio'"),
}


@pytest.mark.parametrize("format", ADAPTERS)
@pytest.mark.parametrize("arguments", ["some/where", Path("some/where"), None], ids=str)
def test_a_path_is_not_a_data_set(format: str, arguments: object) -> None:
    """The TypeError says how to open a data set, with the framework installed or not."""
    adapter, chosen = ADAPTERS[format]
    with pytest.raises(TypeError) as caught:
        adapter(arguments)
    assert f"dataprep.open(path, 'train'{chosen})" in str(caught.value)


def test_another_format(output: Path) -> None:
    """MXNet reads only recordio, and the error says how to open the data set."""
    with pytest.raises(ConfigError, match="format='recordio'"):
        ADAPTERS["recordio"][0](dataprep.open(output, format="tfrecord"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # its own old names emit warnings
def test_numpy_gets_the_names_that_mxnet_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each added name has its old meaning, and existing names are not replaced."""
    before: dict[str, Any] = dict(vars(np))
    monkeypatch.setitem(sys.modules, "mxnet", module := ModuleType("mxnet"))
    assert import_mxnet() is module
    old = vars(np)
    assert all(old[name] is value for name, value in before.items())
    assert np.dtype(old["bool"]) == np.dtype(bool)
    assert old["PINF"] == -old["NINF"] == old["Inf"] == np.inf
    assert np.isnan([old["NaN"], old["NAN"]]).all()
    assert np.signbit([old["PZERO"], old["NZERO"]]).tolist() == [False, True]
    assert old["alltrue"]([True, True])
    assert old["sometrue"]([False, True])
    assert old["product"]([2, 3]) == 6
    assert old["round_"](2.6) == 3
    assert old["trapz"]([1, 2, 3]) == 4
    assert old["in1d"]([1, 2], [2]).tolist() == [False, True]
    assert old["ipmt"] is None
    assert np.array_equal(old["msort"]([[3, 1], [2, 4]]), [[2, 1], [3, 4]])
