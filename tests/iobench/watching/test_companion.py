"""The companion listens to the script until the script has ended."""

from __future__ import annotations

import os

import pytest

from iobench.watching.companion import listen
from iobench.watching.session import END

LINE = b'{"loader": "a"}\n'


@pytest.mark.parametrize(
    ("last", "is_closed", "is_gone"),
    [(END, False, False), (b"", True, False), (b"", False, True)],
    ids=["said", "killed", "workers hold the pipe"],
)
def test_the_end_of_a_script(last: bytes, is_closed: bool, is_gone: bool) -> None:
    """The script announces its end, closes its pipe, or is gone while a worker holds the pipe."""
    read_end, write_end = os.pipe()
    os.write(write_end, LINE + last)
    if is_closed:
        os.close(write_end)
    parent = 0 if is_gone else os.getppid()
    assert listen(read_end, parent) == LINE + last
    os.close(read_end)
    if not is_closed:
        os.close(write_end)
