"""Uploads in parts that nobody will complete.

S3 keeps the parts of an upload, and charges for them, until it is completed or aborted (S3 User
Guide, "Aborting a multipart upload"). A writer that fails aborts its own; one that was killed
cannot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dataprep.errors import DataprepError
from dataprep.stores.s3_answers import part
from dataprep.stores.s3_bucket import S3Bucket
from dataprep.stores.s3_errors import translated

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def abort(bucket: S3Bucket, client: S3Client, ours: Callable[[str], bool]) -> None:
    """Abort the uploads below the bucket's prefix of whose keys ``ours`` is true.

    Nothing happens where that is not allowed, or not known to the server: they hinder nobody.
    """
    pages = client.get_paginator("list_multipart_uploads")
    asked = {"Bucket": bucket.name, "Prefix": bucket.prefix, **bucket.payer()}
    try:
        with translated(bucket.uri, bucket.options):
            for page in pages.paginate(**asked):
                for upload in page.get("Uploads", ()):
                    key = part(upload, "Key", bucket.uri).removeprefix(bucket.prefix)
                    if ours(key):
                        number = part(upload, "UploadId", bucket.uri)
                        client.abort_multipart_upload(**bucket.object(key), UploadId=number)
    except DataprepError:
        pass
