"""The bucket and prefix behind a place, and boto3's way to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dataprep.errors import ConfigError
from iobench.trial import Place

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class Bucket:
    """``s3://name/prefix``; ``prefix`` ends in a slash or is empty.

    Raises:
        ConfigError: the place is no bucket.
    """

    def __init__(self, place: Place) -> None:
        self.name, _, prefix = place.uri.removeprefix("s3://").partition("/")
        if not place.uri.startswith("s3://") or not self.name:
            raise ConfigError(f"{place.uri!r} is no bucket: write s3://BUCKET/PREFIX")
        self.prefix = prefix.strip("/") + "/" if prefix.strip("/") else ""
        self.options = place.store

    def connect(self, connections: int) -> S3Client:
        """A boto3 client with a pool of ``connections`` and nothing on top of plain requests.

        Payloads are neither signed nor given checksums: over plain HTTP that halves the rate,
        over TLS boto3 does not sign them anyway.
        """
        import boto3
        from botocore.config import Config

        session = boto3.Session(profile_name=self.options.profile, region_name=self.options.region)
        return session.client(
            "s3",
            endpoint_url=self.options.endpoint_url,
            config=Config(
                retries={"mode": "standard", "total_max_attempts": self.options.max_attempts},
                connect_timeout=self.options.connect_timeout_s,
                read_timeout=self.options.read_timeout_s,
                max_pool_connections=connections,
                tcp_keepalive=True,
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
                s3={
                    "payload_signing_enabled": False,
                    "addressing_style": "path" if self.options.endpoint_url else "auto",
                },
            ),
        )

    def payer(self) -> dict[str, Any]:
        """Arguments of every request."""
        return {"RequestPayer": "requester"} if self.options.requester_pays else {}

    def put_arguments(self) -> dict[str, Any]:
        """Arguments of requests that create objects."""
        arguments = {
            "StorageClass": self.options.storage_class,
            "ServerSideEncryption": self.options.sse,
            "SSEKMSKeyId": self.options.sse_kms_key_id,
        }
        return {name: value for name, value in arguments.items() if value}
