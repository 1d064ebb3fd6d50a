"""Whether a place can be written to, and if not, why: in one line, skipped or failed."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from dataprep.errors import ObjectNotFound, StoreError, StoreUnreachable
from dataprep.stores import Store, open_store
from dataprep.stores.s3_bucket import without_advice
from iobench.errors import TrialFailed, Unavailable
from iobench.trial import Place

OVERLOADED = "the store refuses requests for now: try again later, or with fewer connections"
_PASSING = re.compile(r"\b(?:429|500|502|503|504|SlowDown|ServiceUnavailable|InternalError)\b")


def is_overload(reason: str) -> bool:
    """Whether an error is a store's that does not say no, but not now."""
    return _PASSING.search(reason) is not None


@contextlib.contextmanager
def overload_said() -> Iterator[None]:
    """What to do about a store that refuses everybody, added to its own words.

    Raises:
        TrialFailed: in place of the store's error.
    """
    try:
        yield
    except StoreError as error:
        if type(error) is not StoreError or not is_overload(str(error)):
            raise
        said = without_advice(str(error)).rstrip(".")
        raise TrialFailed(f"{said}: {OVERLOADED}") from None


def reach(place: Place) -> Store:
    """The store at ``place``.

    Raises:
        Unavailable: no credentials, no such bucket, no answer: the target is not there.
        PermissionRefused: it is there, and may not be used.
        StoreError: it answers, and refuses.
    """
    _require_credentials(place)
    store = open_store(place.uri, place.store)
    try:
        store.prepare()
    except ObjectNotFound as error:
        raise Unavailable(str(error)) from None
    except StoreUnreachable:
        where = place.store.endpoint_url or "S3"
        raise Unavailable(
            f"{place.uri}: no answer from {where}: check the target's endpoint_url, its region "
            "and the network"
        ) from None
    return store


def _require_credentials(place: Place) -> None:
    if not place.uri.startswith("s3://"):
        return
    import boto3
    from botocore.exceptions import BotoCoreError

    try:
        credentials = boto3.Session(profile_name=place.store.profile).get_credentials()
    except BotoCoreError as error:
        raise Unavailable(f"{place.uri}: no usable AWS credentials: {error}") from None
    if credentials is None:
        raise Unavailable(
            f"{place.uri}: no AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or run where a role gives them"
        )
