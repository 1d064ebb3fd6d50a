"""The provider of a store, as far as its endpoint shows it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.stores import StoreOptions
from iobench.machine.object_stores import describe_store, endpoint_of

URI = "s3://jane-of-acme/prefix"


@pytest.mark.parametrize(
    ("endpoint", "kind", "encrypted"),
    [
        ("https://s3.amazonaws.com", "aws-s3", True),
        ("https://s3.eu-central-1.amazonaws.com", "aws-s3", True),
        ("https://bucket.vpce-1a2b.s3.us-east-1.vpce.amazonaws.com", "aws-s3", True),
        ("https://s3.cn-north-1.amazonaws.com.cn", "aws-s3", True),
        ("https://storage.googleapis.com", "google-cloud-storage", True),
        ("https://1234abcd.r2.cloudflarestorage.com", "cloudflare-r2", True),
        ("https://s3.us-west-004.backblazeb2.com", "backblaze-b2", True),
        ("https://s3.wasabisys.com", "wasabi", True),
        ("http://127.0.0.1:9000", "s3-compatible", False),
        ("https://minio.jane-of-acme.org", "s3-compatible", True),
        ("https://amazonaws.com.jane-of-acme.org", "s3-compatible", True),
        ("https://notamazonaws.com", "s3-compatible", True),
    ],
)
def test_providers(endpoint: str, kind: str, encrypted: bool) -> None:
    """The endpoint names the provider; a similar name is not mistaken for it."""
    description = describe_store(URI, endpoint, "eu-central-1")
    assert (description["kind"], description["encrypted"]) == (kind, encrypted)
    assert ("region" in description) == (kind == "aws-s3")
    assert "jane-of-acme" not in json.dumps(description)
    assert "1234abcd" not in json.dumps(description)


def test_where_a_nameless_server_is() -> None:
    """A server without a known name is on this machine or elsewhere."""
    names = [
        describe_store(URI, f"http://{host}:9")["name"]
        for host in ("localhost", "127.0.0.1", "[::1]", "10.1.2.3", "52.1.2.3", "store")
    ]
    here = "S3-compatible, on this machine"
    assert names == [here, here, here, *["S3-compatible"] * 3]


@pytest.mark.parametrize(
    ("uri", "endpoint", "kind"),
    [
        ("s3://data--use1-az4--x-s3/p", "https://s3.amazonaws.com", "aws-s3-express"),
        ("s3://data--use1-az4--x-s3/p", "http://localhost:9", "s3-compatible"),
        (URI, None, "unknown"),
        ("swift://container-of-jane/x", "https://s3.amazonaws.com", "swift"),
        ("jane/of-acme", None, "unknown"),
    ],
)
def test_other_stores(uri: str, endpoint: str | None, kind: str) -> None:
    """Express buckets are known by their names, and stores of other packages by their scheme."""
    assert describe_store(uri, endpoint)["kind"] == kind


@given(st.text(max_size=40), st.text(max_size=10))
def test_a_region_is_one_of_aws_or_left_out(region: str, bucket: str) -> None:
    """A text that is not a region of AWS is not kept."""
    description = describe_store(f"s3://{bucket}", "https://s3.amazonaws.com", region)
    assert "region" not in description or description["region"] == region
    assert len(description.get("region", "")) < 25


def test_the_endpoint_of_options_profile_and_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Options, profile and environment may give the endpoint; the default is Amazon's."""
    for name in ("ENDPOINT_URL", "ENDPOINT_URL_S3", "REGION", "DEFAULT_REGION", "PROFILE"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    profiles = tmp_path / "config"
    profiles.write_text("[profile lab]\nregion = us-west-2\nendpoint_url = http://lab:9\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(profiles))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    assert endpoint_of(StoreOptions())[0] == "https://s3.amazonaws.com"
    european = endpoint_of(StoreOptions(region="eu-west-1"))
    assert european == ("https://s3.eu-west-1.amazonaws.com", "eu-west-1")
    assert endpoint_of(StoreOptions(endpoint_url="http://store:9"))[0] == "http://store:9"
    assert endpoint_of(StoreOptions(profile="lab")) == ("http://lab:9", "us-west-2")
    assert endpoint_of(StoreOptions(profile="nobody")) == (None, None)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://here:9")
    assert endpoint_of(StoreOptions())[0] == "http://here:9"
