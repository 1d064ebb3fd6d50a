"""The companion listens to the script until that has ended."""

from __future__ import annotations

import os

import pytest

from iobench.watching.companion import listen
from iobench.watching.session import END

LINE = b'{"loader": "a"}\n'


@pytest.mark.parametrize(
    ("last", "closed", "gone"),
    [(END, False, False), (b"", True, False), (b"", False, True)],
    ids=["said", "killed", "workers hold the pipe"],
)
def test_the_end_of_a_script(last: bytes, closed: bool, gone: bool) -> None:
    """It says so, or its pipe is closed, or it is gone and a forked worker holds its pipe open."""
    read_end, write_end = os.pipe()
    os.write(write_end, LINE + last)
    if closed:
        os.close(write_end)
    assert listen(read_end, 0 if gone else os.getppid()) == LINE + last
    os.close(read_end)
    if not closed:
        os.close(write_end)
