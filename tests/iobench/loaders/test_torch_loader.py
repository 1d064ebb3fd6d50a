"""What a worker's error was about, without torch's traceback around it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dataprep.errors import TruncatedRecord
from iobench.loaders.torch_loader import worker_error_message

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")


class Broken:
    """Raises at every item."""

    def __init__(self, error: Callable[[], Exception]) -> None:
        self._error = error

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        raise self._error()


def truncated() -> Exception:
    """One of ours."""
    return TruncatedRecord("train-00000-of-00002: record 3 runs past the end\nof the file")


def lookup() -> Exception:
    """One of Python's."""
    return LookupError("nobody: knows")


def indented() -> Exception:
    """One whose message has lines that look like a traceback's."""
    return RuntimeError("sample 3: cannot be decoded:\n  truncated at byte 77\nsee log")


def ending_indented() -> Exception:
    """One whose last line does."""
    return ValueError("bad:\n  x")


def wordless() -> Exception:
    """One without a message."""
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
def test_a_workers_error_is_told_as_it_was(error: Callable[[], Exception], message: str) -> None:
    """torch's workers wrap errors; an error of this process needs no unwrapping."""
    with pytest.raises(Exception, match="Caught") as caught:
        list(torch.utils.data.DataLoader(Broken(error), num_workers=1))
    assert worker_error_message(caught.value) == message
    assert worker_error_message(error()) is None


def test_another_error_is_no_workers() -> None:
    """Its message does not matter."""
    assert worker_error_message(ValueError("")) is None
    assert worker_error_message(ValueError("Caught a cold")) is None
