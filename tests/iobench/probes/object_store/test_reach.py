"""Whether a place can be used, and if not, why."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from dataprep.errors import PermissionRefused
from dataprep.stores import StoreOptions
from iobench.errors import TrialFailed, Unavailable
from iobench.faults import FaultProxy, Match, Rule, Status
from iobench.probes.object_store.reach import OVERLOADED, is_overload, overload_said, reach
from iobench.trial import Place

pytestmark = pytest.mark.slow


def without_credentials(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """No chain of credentials finds any."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(folder / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "credentials"))


def test_a_place_that_is_there_is_a_store(place: Place) -> None:
    """What comes back stores and reads."""
    store = reach(place)
    store.put("key", b"data")
    assert store.get("key") == b"data"


def test_no_credentials_are_said_to_be_missing(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing is asked without credentials; the reason says where they come from."""
    without_credentials(monkeypatch, tmp_path)
    with pytest.raises(Unavailable, match="no AWS credentials: set AWS_PROFILE"):
        reach(place)


def test_an_unknown_profile_is_named(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A profile that this machine does not have is not there."""
    without_credentials(monkeypatch, tmp_path)
    options = place.store.model_copy(update={"profile": "nobody"})
    with pytest.raises(Unavailable, match="nobody"):
        reach(Place(place.uri, "empty", options))


def test_a_missing_bucket_is_not_there(place: Place) -> None:
    """The reason names the bucket and what to do."""
    missing = Place("s3://no-such-bucket-here/x", "empty", place.store)
    with pytest.raises(Unavailable, match="s3://no-such-bucket-here: no such bucket: create it"):
        reach(missing)


def test_an_endpoint_that_does_not_answer_is_not_there(bucket: str) -> None:
    """The reason names the endpoint and what to check."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(Unavailable, match=f"no answer from {url}: check") as caught:
            reach(Place(f"s3://{bucket}", "empty", StoreOptions(endpoint_url=url)))
    assert "\n" not in str(caught.value)


def test_a_refused_bucket_is_there(place: Place, proxy: FaultProxy) -> None:
    """A bucket without permission is no missing target."""
    proxy.replace_rules([Rule(Match("HEAD"), Status(403, "AccessDenied"))])
    with pytest.raises(PermissionRefused):
        reach(place)


def test_a_store_that_refuses_everybody_is_told_from_one_that_says_no(
    place: Place, proxy: FaultProxy
) -> None:
    """503 passes, and the reason says to come back; 403 does not."""
    proxy.replace_rules([Rule(Match(), Status(503, "SlowDown", "Please reduce your rate."))])
    with (
        pytest.raises(TrialFailed, match=f"503: Service Unavailable: {OVERLOADED}"),
        overload_said(),
    ):
        reach(place)
    proxy.replace_rules([Rule(Match(), Status(403, "AccessDenied"))])
    with pytest.raises(PermissionRefused), overload_said():
        reach(place)


@pytest.mark.parametrize(
    ("reason", "passes"),
    [
        ("s3://b: 503: Service Unavailable", True),
        ("s3://b/k: SlowDown: Please reduce your request rate.", True),
        ("500", True),
        ("s3://b/5030: AccessDenied", False),
        ("s3://b/k: not found", False),
    ],
)
def test_what_passes(reason: str, passes: bool) -> None:
    """By status or code, not by a number in a name."""
    assert is_overload(reason) == passes
