"""Credentials in addresses: refused, or left out of what is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.credentials import check_no_credentials, without_credentials


@pytest.mark.parametrize(
    "address",
    [
        "https://bucket.s3.amazonaws.com/a?X-Amz-Credential=AKIA&X-Amz-Signature=hunter2",
        "https://bucket.s3.amazonaws.com/a?AWSAccessKeyId=AKIA&Expires=9&Signature=hunter2",
        "https://account.blob.core.windows.net/a?sv=2024&sig=hunter2",
        "s3://bucket/prefix?versionId=1&x-amz-security-token=hunter2",
        "gs://bucket/a#access_token=hunter2",
        "s3://me:hunter2@bucket/a",
        "other://hunter2@bucket?x",
    ],
)
def test_signed_addresses_are_refused_and_not_repeated(address: str) -> None:
    """What would be a credential in a manifest or a result never gets there."""
    with pytest.raises(ValueError, match=r"must not carry a user") as caught:
        check_no_credentials(address)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    ["/data/x?sig=1", "me@host:/x", "s3://bucket/a@b/c", "s3://bucket/q?a#b", "s3://b/signature=1"],
)
def test_paths_and_keys_may_look_odd(address: str) -> None:
    """A path is no URI, and an object's key may hold what it likes."""
    assert check_no_credentials(address) == address


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            'Could not connect to the endpoint URL: "http://me:hunter2@127.0.0.1:9/bucket"',
            'Could not connect to the endpoint URL: "http://***@127.0.0.1:9/bucket"',
        ),
        (
            "GET https://h/x?X-Amz-Signature=hunter2&partNumber=1 failed: 403",
            "GET https://h/x?X-Amz-Signature=***&partNumber=1 failed: 403",
        ),
        ("http://a:hunter2@b and https://hunter2@c/x@y", "http://***@b and https://***@c/x@y"),
        ("mail me@example.org, key=1", "mail me@example.org, key=1"),
    ],
)
def test_messages_of_others_are_told_without_credentials(said: str, told: str) -> None:
    """Everything else of them stays."""
    assert without_credentials(said) == told


@given(st.from_regex(r"[a-z0-9:%]{1,9}", fullmatch=True), st.text(max_size=5), st.text(max_size=5))
def test_no_user_of_an_address_is_told(user: str, before: str, after: str) -> None:
    """Whatever stands around it, and once is enough."""
    told = without_credentials(f"{before} http://{user}@host {after}")
    assert f"http://{user}@" not in told
    assert without_credentials(told) == told
