"""A bucket and a prefix in it: how boto3 reaches it, and what botocore's errors mean here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from dataprep.credentials import without_credentials
from dataprep.errors import (
    ConfigError,
    DataprepError,
    ObjectNotFound,
    PermissionRefused,
    StoreError,
    StoreFull,
    StoreUnreachable,
)
from dataprep.names import escape
from dataprep.stores.options import StoreOptions

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class S3Bucket:
    """``s3://name/prefix``; ``prefix`` ends in a slash or is empty.

    Raises:
        ConfigError: the URI names no bucket, or has more than one slash after it: keys may begin
            with a slash, and are others than those without.
    """

    def __init__(self, uri: str, options: StoreOptions | None = None) -> None:
        self.name, _, prefix = uri.removeprefix("s3://").partition("/")
        if not uri.startswith("s3://") or not self.name:
            raise ConfigError(f"no bucket in {uri!r}: write s3://BUCKET/PREFIX")
        if prefix.startswith("/") and prefix.strip("/"):
            raise ConfigError(
                f"{uri!r} means keys that begin with a slash, which cannot be asked for: write "
                "one slash after the bucket"
            )
        self.prefix = prefix.strip("/")
        if self.prefix:
            self.prefix += "/"
        self.uri = f"s3://{self.name}/{self.prefix}".rstrip("/")
        self.options = options or StoreOptions()

    def connect(
        self,
        *,
        attempts: int | None = None,
        connections: int = 1,
        retry_mode: Literal["adaptive", "standard"] = "adaptive",
        **more: Any,
    ) -> S3Client:
        """Return a client of boto3; ``more`` goes into botocore's ``Config``.

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
        """Return the arguments of every request for one object."""
        return {"Bucket": self.name, "Key": self.prefix + key, **self.payer()}

    def payer(self) -> dict[str, Any]:
        """Return the arguments of every request."""
        return {"RequestPayer": "requester"} if self.options.requester_pays else {}

    def put_arguments(self) -> dict[str, Any]:
        """Return the arguments of requests that create objects."""
        arguments = {
            "StorageClass": self.options.storage_class,
            "ServerSideEncryption": self.options.sse,
            "SSEKMSKeyId": self.options.sse_kms_key_id,
        }
        return {name: value for name, value in arguments.items() if value}

    def translated(self, key: str) -> contextlib.AbstractContextManager[None]:
        """Turn botocore's errors about an object into errors of this package."""
        return translated(escape(f"s3://{self.name}/{self.prefix}{key}").rstrip("/"), self.options)


_NOT_FOUND = ("404", "NoSuchKey", "NoSuchBucket", "NotFound")
_NOT_AS_SENT = (
    *("BadDigest", "IncompleteBody", "InvalidDigest"),
    *("XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch"),
)
_LATER = ". Run it again later, or with fewer --workers: what is stored is kept"

# Codes of S3's error answers; the error for them; what happened, and what to do about it.
_ANSWERS: tuple[tuple[tuple[str, ...], type[StoreError], str], ...] = (
    (
        (
            *("401", "403", "AccessDenied", "Forbidden", "InvalidAccessKeyId"),
            *("SignatureDoesNotMatch", "AllAccessDisabled", "RequestTimeTooSkewed"),
        ),
        PermissionRefused,
        "permission refused ({said}): check the credentials and the bucket's policy, and "
        "this machine's clock",
    ),
    (
        _NOT_AS_SENT,
        StoreError,
        "what reaches the store is not what was sent ({said}): something between here and there "
        "changes data",
    ),
    (
        ("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired"),
        PermissionRefused,
        "the credentials have expired ({said}): renew them, for instance by aws sso login, and "
        "run the same command again",
    ),
    (("QuotaExceeded", "InsufficientStorage", "507"), StoreFull, "the store is full ({said})"),
    (
        ("PermanentRedirect", "AuthorizationHeaderMalformed", "301"),
        StoreError,
        "the bucket is in another region ({said}): set --set store.region",
    ),
)


def without_advice(said: str) -> str:
    """A store's refusal without the advice to a job, for programs with advice of their own."""
    return said.removesuffix(_LATER)


def error_code(error: object) -> str:
    """Return S3's code for an error answer; empty for every other error."""
    response = getattr(error, "response", None) or {}  # None in errors without an answer
    return str(response.get("Error", {}).get("Code", ""))


def is_passing(error: BaseException) -> bool:
    """Whether the same request may succeed at once: a broken body or connection."""
    from botocore import exceptions as boto

    if isinstance(error, boto.ClientError):
        return error_code(error) in (*_NOT_AS_SENT, "RequestTimeout")
    return isinstance(
        error,
        boto.ConnectionError
        | boto.HTTPClientError
        | boto.IncompleteReadError
        | boto.FlexibleChecksumError
        | OSError,
    )


@contextlib.contextmanager
def translated(name: str, options: StoreOptions) -> Iterator[None]:
    """Turn what botocore raises into one clear sentence about ``name``."""
    from botocore import exceptions as boto

    try:
        yield
    except DataprepError:
        raise
    except boto.ClientError as error:
        raise _from_answer(error, name) from None
    except (boto.NoCredentialsError, boto.PartialCredentialsError, boto.TokenRetrievalError):
        raise PermissionRefused(
            f"{name}: no usable AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or run where a role gives them"
        ) from None
    except (boto.ProfileNotFound, boto.ParamValidationError) as error:
        raise ConfigError(f"{name}: {one_line(error)}") from None
    except (boto.ConnectionError, boto.HTTPClientError, boto.IncompleteReadError) as error:
        where = options.endpoint_url or "S3"
        raise StoreUnreachable(
            f"{name}: no complete answer from {where}: {one_line(error).rstrip('.')}. "
            "Check --endpoint-url, the region and the network"
        ) from None
    except (boto.BotoCoreError, KeyError, ValueError, RecursionError) as error:
        # A proxy may drop a header; botocore follows each redirect by a call of itself.
        said = f"{type(error).__name__}: {one_line(error)}"
        raise StoreError(f"{name}: the store's answer cannot be used: {said}") from None


def _from_answer(error: object, name: str) -> StoreError:
    code, response = error_code(error), getattr(error, "response", {})
    said = one_line(response.get("Error", {}).get("Message") or code)
    if code in _NOT_FOUND:
        if code == "NoSuchBucket" or name.count("/") <= 2:
            return ObjectNotFound(f"{name}: no such bucket: create it first")
        return ObjectNotFound(f"{name}: not found")
    for codes, kind, message in _ANSWERS:
        if code in codes:
            return kind(f"{name}: {message.format(said=said)}")
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode") or 0)
    later = status >= 500 or status == 429 or code in ("SlowDown", "RequestLimitExceeded")
    return StoreError(f"{name}: {code}: {said.rstrip('.') + _LATER if later else said}")


def one_line(text: object) -> str:
    """Return a message of botocore or a server as one line without credentials."""
    return without_credentials(" ".join(str(text).split()))
