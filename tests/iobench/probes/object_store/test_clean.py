"""Nothing of a probe stays."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import pytest

from dataprep.errors import StoreError
from dataprep.stores import open_store
from dataprep.stores.s3_bucket import S3Bucket
from iobench.faults import FaultProxy, Match, Rule, Status
from iobench.probes.object_store.clean import clean
from iobench.probes.object_store.pool import PREFIX
from iobench.trial import Outcome, Place

pytestmark = pytest.mark.slow


def test_only_what_probes_wrote_is_removed(trial: Callable[..., Outcome], place: Place) -> None:
    """Objects beside the probes' own prefix stay."""
    store = open_store(place.uri, place.store)
    store.put("mine", b"data")
    trial()
    assert clean(place) == 5  # four objects to read, and one to open connections with
    assert [info.key for info in store.list()] == ["mine"]
    assert clean(place) == 0


def test_uploads_of_killed_trials_are_aborted(place: Place) -> None:
    """Parts without an object are found and removed, and only those of probes."""
    bucket = S3Bucket(place.uri, place.store)
    with closing(bucket.connect(attempts=2)) as client:
        for key in (PREFIX + "multipart/0", "mine"):
            client.create_multipart_upload(Bucket=bucket.name, Key=bucket.prefix + key)
        clean(place)
        left = client.list_multipart_uploads(Bucket=bucket.name)["Uploads"]
    assert [upload["Key"] for upload in left] == [bucket.prefix + "mine"]


def test_who_may_not_list_uploads_may_still_clean(place: Place, proxy: FaultProxy) -> None:
    """Objects are removed without that permission."""
    open_store(place.uri, place.store).put(PREFIX + "read/1/00000", b"x")
    proxy.replace_rules([Rule(Match("GET", "uploads"), Status(403, "AccessDenied"))])
    assert clean(place) == 1


def test_a_store_that_refuses_is_given_up_at_once(place: Place, proxy: FaultProxy) -> None:
    """One question, two attempts: a run that has ended is not held up by minutes of them."""
    proxy.replace_rules([Rule(Match(), Status(503, "SlowDown"))])
    patient = replace(place, store=place.store.model_copy(update={"max_attempts": 50}))
    with pytest.raises(StoreError, match="503"):
        clean(patient)
    assert [request.method for request in proxy.requests] == ["HEAD", "HEAD"]
