"""Where requests would go, as boto3 works it out."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataprep.stores import StoreOptions
from iobench.targets.endpoints import endpoint_of

_NAMES = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION")


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No settings but those of the test; gives back the file of profiles."""
    for name in (*_NAMES, "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    config = tmp_path / "config"
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    return config


def test_amazon_unless_told() -> None:
    """No region is made up."""
    assert endpoint_of(StoreOptions()) == ("https://s3.amazonaws.com", None)
    url, region = endpoint_of(StoreOptions(region="eu-west-1"))
    assert (url, region) == ("https://s3.eu-west-1.amazonaws.com", "eu-west-1")


def test_told_by_config_environment_and_profile(
    plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each in its way."""
    plain.write_text("[profile lab]\nregion = us-west-2\nendpoint_url = http://lab:9\n")
    assert endpoint_of(StoreOptions(endpoint_url="http://store:9"))[0] == "http://store:9"
    assert endpoint_of(StoreOptions(profile="lab")) == ("http://lab:9", "us-west-2")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://here:9")
    assert endpoint_of(StoreOptions())[0] == "http://here:9"


def test_a_profile_that_is_not_there_tells_nothing() -> None:
    """Its trials will say so; the environment is described all the same."""
    assert endpoint_of(StoreOptions(profile="nobody")) == (None, None)
