"""Which server a client is sent to."""

from __future__ import annotations

import pytest

from dataprep.stores import StoreOptions
from iobench.probes.object_store.clients.endpoints import endpoint_url

HERE = "http://127.0.0.1:9"


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"])
def test_the_environment_is_asked_last(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """What the options say goes before; an empty variable says nothing."""
    for each in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(each, raising=False)
    assert endpoint_url(StoreOptions()) is None
    monkeypatch.setenv(name, "")
    assert endpoint_url(StoreOptions()) is None
    monkeypatch.setenv(name, "http://elsewhere")
    assert endpoint_url(StoreOptions()) == "http://elsewhere"
    assert endpoint_url(StoreOptions(endpoint_url=HERE)) == HERE
