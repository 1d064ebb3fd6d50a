"""Removes everything that probes left in a place."""

from __future__ import annotations

import contextlib

from dataprep.ordered import in_order
from dataprep.stores import open_store
from dataprep.stores.s3_bucket import S3Bucket
from iobench.probes.object_store.pool import PREFIX
from iobench.trial import Place

_DELETES_AT_ONCE = 8


def clean(place: Place) -> int:
    """Delete every object below the probes' prefix, and abort uploads; how many objects.

    A store that refuses requests for now is given up at once: a run that has ended should end.

    Raises:
        StoreError: they may not be listed or deleted.
    """
    store = open_store(place.uri, place.store)
    store.prepare()
    keys = [info.key for info in store.list(PREFIX)]
    for _ in in_order(store.delete, keys, _DELETES_AT_ONCE):
        pass
    if place.uri.startswith("s3://"):
        _abort_uploads(S3Bucket(place.uri, place.store))
    return len(keys)


def _abort_uploads(bucket: S3Bucket) -> None:
    """Parts of a trial that was killed: seen in no listing of objects, and paid for."""
    from botocore.exceptions import BotoCoreError, ClientError

    # Listing uploads is a permission of its own, which the probe does not need.
    with (
        contextlib.suppress(BotoCoreError, ClientError),
        contextlib.closing(bucket.connect()) as client,
    ):
        pages = client.get_paginator("list_multipart_uploads")
        for page in pages.paginate(Bucket=bucket.name, Prefix=bucket.prefix + PREFIX):
            for upload in page.get("Uploads", ()):
                client.abort_multipart_upload(
                    Bucket=bucket.name, Key=upload["Key"], UploadId=upload["UploadId"]
                )
