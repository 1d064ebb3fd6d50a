"""The message of an error in a worker, without torch's traceback around it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dataprep.errors import TruncatedRecord
from iobench.loaders.torch_loader import worker_error_message

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")


class Broken:
    """A data set that raises at every item."""

    def __init__(self, error: Callable[[], Exception]) -> None:
        self._error = error

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        raise self._error()


def truncated() -> Exception:
    """Return an error of dataprep."""
    return TruncatedRecord("train-00000-of-00002: record 3 runs past the end\nof the file")


def lookup() -> Exception:
    """Return an error of Python."""
    return LookupError("nobody: knows")


def indented() -> Exception:
    """Return an error with a line in its message that looks like one of a traceback."""
    return RuntimeError("sample 3: cannot be decoded:\n  truncated at byte 77\nsee log")


def ending_indented() -> Exception:
    """Return an error whose last line looks like one of a traceback."""
    return ValueError("bad:\n  x")


def wordless() -> Exception:
    """Return an error without a message."""
    return OverflowError()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (truncated, "train-00000-of-00002: record 3 runs past the end\nof the file"),
        (lookup, "LookupError: nobody: knows"),
        (indented, "RuntimeError: sample 3: cannot be decoded:\n  truncated at byte 77\nsee log"),
        (ending_indented, "ValueError: bad:\n  x"),
        (wordless, "OverflowError"),
    ],
)
def test_a_workers_error_keeps_its_message(error: Callable[[], Exception], message: str) -> None:
    """The message is that of the worker's error; an error of this process has none."""
    with pytest.raises(Exception, match="Caught") as caught:
        list(torch.utils.data.DataLoader(Broken(error), num_workers=1))
    assert worker_error_message(caught.value) == message
    assert worker_error_message(error()) is None


def test_another_error_is_no_workers() -> None:
    """An error is not taken for one of a worker because of its message."""
    assert worker_error_message(ValueError("")) is None
    assert worker_error_message(ValueError("Caught a cold")) is None
