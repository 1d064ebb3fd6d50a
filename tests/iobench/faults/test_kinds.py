"""Which faults can be built."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from iobench.faults import Delay, Fault, FlipByte, RateLimit, SetHeader, Stall, Status, Truncate


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Delay(-1), "Delay: s"),
        (lambda: RateLimit(0), "RateLimit: bytes_per_s"),
        (lambda: Status(100, "Continue"), "Status: code"),
        (lambda: Status(600, "Nothing"), "Status: code"),
        (lambda: Truncate(-1), "Truncate: after_bytes"),
        (lambda: FlipByte(0, mask=0), "FlipByte: mask"),
        (lambda: FlipByte(0, mask=256), "FlipByte: mask"),
        (lambda: Stall(-1), "Stall: s"),
        (lambda: Stall(1, after_bytes=-1), "Stall: after_bytes"),
        (lambda: SetHeader("content-length", "1"), "use Truncate"),
        (lambda: SetHeader("ETag", "a\r\nb"), "one line"),
    ],
)
def test_fault_that_cannot_be_is_refused(make: Callable[[], Fault], message: str) -> None:
    """A value out of range is refused when the fault is built, with its field's name."""
    with pytest.raises(ValueError, match=message):
        make()


def test_faults_are_values() -> None:
    """Equal faults compare and hash alike, so that a log can be compared with the rules."""
    assert len({FlipByte(3), FlipByte(3), FlipByte(3, "upload")}) == 2
