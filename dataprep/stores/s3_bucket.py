"""A bucket and a prefix in it, and boto3's way there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from dataprep.credentials import check_no_credentials, without_credentials
from dataprep.errors import ConfigError
from dataprep.names import escape
from dataprep.stores.options import StoreOptions
from dataprep.stores.s3_errors import translated

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_AMAZON = (".amazonaws.com", ".amazonaws.com.cn")


class S3Bucket:
    """``s3://name/prefix``; ``prefix`` ends in a slash or is empty.

    Raises:
        ConfigError: the URI names no bucket, carries credentials, or has more than one slash after
            the bucket: keys may begin with one, and are others than those without.
    """

    def __init__(self, uri: str, options: StoreOptions | None = None) -> None:
        self.name, _, prefix = uri.removeprefix("s3://").partition("/")
        if not uri.startswith("s3://") or not self.name:
            raise ConfigError(f"no bucket in {uri!r}: write s3://BUCKET/PREFIX")
        try:
            check_no_credentials(uri)
        except ValueError as error:
            raise ConfigError(f"an S3 URI {error}") from None
        if prefix.startswith("/") and prefix.strip("/"):
            raise ConfigError(
                f"{uri!r} means keys that begin with a slash, which cannot be asked for: did you "
                f"mean 's3://{self.name}/{prefix.lstrip('/')}'?"
            )
        self.prefix = prefix.strip("/") + "/" if prefix.strip("/") else ""
        self.options = options or StoreOptions()

    @property
    def uri(self) -> str:
        """``s3://name/prefix``."""
        return f"s3://{self.name}/{self.prefix}".rstrip("/")

    def shown(self, key: str) -> str:
        """The URI of an object, fit for a message."""
        return escape(f"s3://{self.name}/{self.prefix}{key}")

    def connect(
        self,
        *,
        attempts: int | None = None,
        connections: int = 1,
        retry_mode: Literal["adaptive", "standard"] = "adaptive",
        **more: Any,
    ) -> S3Client:
        """A client of boto3; ``more`` goes into botocore's ``Config``.

        ``attempts`` None is what the options say. Payloads are not signed: over plain HTTP that
        halves the rate, over TLS boto3 never does it.
        """
        import boto3
        from botocore.config import Config

        options = self.options
        with translated("S3", options):
            session = boto3.Session(profile_name=options.profile, region_name=options.region)
            return session.client(
                "s3",
                endpoint_url=options.endpoint_url,
                config=Config(
                    retries={
                        "mode": retry_mode,
                        "total_max_attempts": attempts or options.max_attempts,
                    },
                    connect_timeout=options.connect_timeout_s,
                    read_timeout=options.read_timeout_s,
                    max_pool_connections=connections,
                    tcp_keepalive=True,
                    # Objects are sent with their MD5, which the server checks: a second checksum
                    # would cost a pass over each shard.
                    request_checksum_calculation="when_required",
                    s3={
                        "payload_signing_enabled": False,
                        "addressing_style": "path" if options.endpoint_url else "auto",
                    },
                    **more,
                ),
            )

    def object(self, key: str) -> dict[str, Any]:
        """Arguments of every request for one object."""
        return {"Bucket": self.name, "Key": self.prefix + key, **self.payer()}

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


def another_server(uri: str, options: StoreOptions) -> str | None:
    """The endpoint by which a bucket is reached, unless it is Amazon's; to be shown.

    boto3 is asked: an option, the environment and its own config file can name one, also with a
    password, which is left out.

    Raises:
        ConfigError, StoreError: boto3 cannot be set up so.
    """
    server = S3Bucket(uri, options).connect().meta.endpoint_url
    is_amazon = (urlsplit(server).hostname or "").endswith(_AMAZON)
    return None if is_amazon else without_credentials(server)
