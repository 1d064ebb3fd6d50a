"""Answers that lack what they should hold: a proxy may drop a header."""

from __future__ import annotations

import datetime
import io
from types import SimpleNamespace
from typing import Any

import pytest

from dataprep.errors import StoreError
from dataprep.stores.s3_answers import part, require_whole
from dataprep.stores.s3_bucket import S3Bucket
from dataprep.stores.s3_reading import S3Reader


def reader(**answers: Any) -> S3Reader:
    """Of a store that gives these."""
    client = SimpleNamespace(
        **{name: lambda found=found, **_: found for name, found in answers.items()}
    )

    def connect() -> Any:
        return client

    return S3Reader(S3Bucket("s3://b/p", None), connect)


def test_what_is_there_is_given() -> None:
    """Whatever it is."""
    assert part({"Size": 0}, "Size", "s3://b") == 0


def test_a_size_that_is_not_told_is_named() -> None:
    """With the object."""
    with pytest.raises(StoreError, match=r"^s3://b/p/k: the store's answer has no ContentLength$"):
        reader(head_object={"ETag": "x"}).head("k")


def test_a_lease_of_no_age_is_named() -> None:
    """Nobody could tell whether it has lapsed."""
    answer = {"Body": io.BytesIO(b"{}"), "ResponseMetadata": {"HTTPHeaders": {}}, "ETag": "x"}
    with pytest.raises(StoreError, match=r"^s3://b/p/k: the store's answer has no LastModified$"):
        reader(get_object=answer).dated("k")
    answer |= {"Body": io.BytesIO(b"{}"), "LastModified": datetime.datetime.now(datetime.UTC)}
    assert reader(get_object=answer).dated("k").data == b"{}"


@pytest.mark.parametrize("lacks", ["Key", "Size"])
def test_an_entry_of_a_listing_is_whole(lacks: str) -> None:
    """One without a name would be lost."""
    entry: dict[str, Any] = {"Key": "a", "Size": 1}
    del entry[lacks]
    with pytest.raises(StoreError, match=f"has no {lacks}"):
        require_whole({"IsTruncated": False, "Contents": [entry]}, "s3://b")
