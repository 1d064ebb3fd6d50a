"""What the process of a trial reports about an error."""

from __future__ import annotations

import pytest

from iobench.errors import TrialFailed
from iobench.trials.trial_process_main import describe_error


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (TrialFailed("no images"), "no images"),
        (ValueError("bad\n  shape"), "ValueError: bad shape"),
        (KeyError(), "KeyError"),
    ],
    ids=str,
)
def test_reason(error: Exception, message: str) -> None:
    """The reason is one line, and the error of a third party has its kind."""
    assert describe_error(error) == message


def test_a_long_one_is_cut() -> None:
    """A long message is shortened, so that it does not fill the report."""
    message = describe_error(RuntimeError("x " * 5000))
    assert len(message) < 450
    assert message.startswith("RuntimeError: x x")
    assert message.endswith(" ...")
