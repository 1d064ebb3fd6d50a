"""One boto3 session for all trials in this process."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import boto3
import pytest


@pytest.fixture(scope="module", autouse=True)
def one_session() -> Iterator[None]:
    """Let boto3 read its model of S3 once, which would take most of the time."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(boto3, "Session", lru_cache(boto3.Session))
        yield
