"""What lies behind a place."""

from __future__ import annotations

import pytest

from dataprep.errors import ConfigError
from dataprep.stores import StoreOptions
from iobench.probes.object_store.bucket import Bucket
from iobench.trial import Place


@pytest.mark.parametrize(
    ("uri", "prefix"),
    [("s3://name", ""), ("s3://name/", ""), ("s3://name/a", "a/"), ("s3://name/a/b/", "a/b/")],
)
def test_a_prefix_ends_in_one_slash_or_is_empty(uri: str, prefix: str) -> None:
    """Keys are appended to it."""
    bucket = Bucket(Place(uri, "empty"))
    assert (bucket.name, bucket.prefix) == ("name", prefix)


@pytest.mark.parametrize("uri", ["/mnt/disk", "s3://", "memory://name"])
def test_what_is_no_bucket_is_refused(uri: str) -> None:
    """The reason says what to write."""
    with pytest.raises(ConfigError, match="write s3://BUCKET/PREFIX"):
        Bucket(Place(uri, "empty"))


def test_options_become_arguments() -> None:
    """Storage class, encryption and who pays reach every request that they belong to."""
    options = StoreOptions(storage_class="STANDARD_IA", sse="AES256", requester_pays=True)
    bucket = Bucket(Place("s3://name", "empty", options))
    assert bucket.put_arguments() == {
        "StorageClass": "STANDARD_IA",
        "ServerSideEncryption": "AES256",
    }
    assert bucket.payer() == {"RequestPayer": "requester"}
    assert Bucket(Place("s3://name", "empty")).put_arguments() == {}
