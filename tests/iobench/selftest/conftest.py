"""What trials in this process share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import boto3
import pytest


@pytest.fixture(scope="module", autouse=True)
def one_session() -> Iterator[None]:
    """boto3 reads its model of S3 once, not for every loop: it takes most of the time otherwise."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(boto3, "Session", lru_cache(boto3.Session))
        yield
