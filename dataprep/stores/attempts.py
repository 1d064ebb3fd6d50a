"""Attempts, with waits between them that double."""

from __future__ import annotations

import time
from collections.abc import Iterator


def attempts(most: int, first_wait_s: float) -> Iterator[bool]:
    """Whether this attempt is the last of ``most``; each but the first comes after a wait."""
    for number in range(most):
        if number:
            time.sleep(first_wait_s * 2 ** (number - 1))
        yield number + 1 == most
