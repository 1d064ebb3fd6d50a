"""Connect to a bucket by boto3, and translate the errors of botocore."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

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
from dataprep.name_encoding import escape
from dataprep.stores.options import StoreOptions

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class S3Bucket:
    """A bucket and a prefix: ``s3://name/prefix``.

    Attributes:
        name: the name of the bucket.
        prefix: the beginning of all keys. It is empty or ends with a slash.
        uri: the address without a slash at its end.
        options: the endpoint, the profile and other options.

    Raises:
        ConfigError: the URI has no bucket, or has several slashes after the bucket. Keys that begin
            with a slash are not supported.
    """

    def __init__(self, uri: str, options: StoreOptions | None = None) -> None:
        self.name, _, prefix = uri.removeprefix("s3://").partition("/")
        if not uri.startswith("s3://") or not self.name:
            raise ConfigError(f"no bucket in {uri!r}: write s3://BUCKET/PREFIX")
        if prefix.startswith("/") and prefix.strip("/"):
            raise ConfigError(
                f"{uri!r} means keys that begin with a slash, which are not supported: write one "
                "slash after the bucket"
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
        """Return a new client of boto3.

        Payloads are not signed. Signing them would halve the rate over plain HTTP. Over TLS, boto3
        never signs them.

        Args:
            attempts: the maximum number of attempts for each request, including the first; None for
                ``max_attempts`` of the options.
            connections: the maximum number of connections that the client keeps open.
            retry_mode: the retry mode of botocore.
            more: further arguments of botocore's ``Config``.

        Raises:
            ConfigError: there is no such profile.
        """
        import boto3
        from botocore.config import Config

        options = self.options
        max_attempts = attempts or options.max_attempts
        addressing_style: Literal["auto", "path"] = "path" if options.endpoint_url else "auto"
        with translate_s3_errors("S3", options):
            config = Config(
                retries={"mode": retry_mode, "total_max_attempts": max_attempts},
                connect_timeout=options.connect_timeout_s,
                read_timeout=options.read_timeout_s,
                max_pool_connections=connections,
                tcp_keepalive=True,
                # Objects are sent with their MD5, which the server checks. A second checksum would
                # take another pass over each shard.
                request_checksum_calculation="when_required",
                s3={"payload_signing_enabled": False, "addressing_style": addressing_style},
                **more,
            )
            session = boto3.Session(profile_name=options.profile, region_name=options.region)
            return session.client("s3", endpoint_url=options.endpoint_url, config=config)

    def object_arguments(self, key: str) -> dict[str, Any]:
        """Return the arguments that each request for the object ``key`` has."""
        return {"Bucket": self.name, "Key": self.prefix + key, **self.payer_arguments()}

    def payer_arguments(self) -> dict[str, Any]:
        """Return the argument with which the caller pays for requests, if that option is set."""
        if not self.options.requester_pays:
            return {}
        return {"RequestPayer": "requester"}

    def put_arguments(self) -> dict[str, str]:
        """Return the additional arguments of requests that store objects."""
        arguments: dict[str, str] = {}
        if self.options.storage_class:
            arguments["StorageClass"] = self.options.storage_class
        if self.options.sse:
            arguments["ServerSideEncryption"] = self.options.sse
        if self.options.sse_kms_key_id:
            arguments["SSEKMSKeyId"] = self.options.sse_kms_key_id
        return arguments

    def translate_s3_errors(self, key: str) -> contextlib.AbstractContextManager[None]:
        """Translate errors of botocore about an object into errors of this package."""
        address = escape(f"s3://{self.name}/{self.prefix}{key}").rstrip("/")
        return translate_s3_errors(address, self.options)


_NOT_FOUND_CODES = ("404", "NoSuchKey", "NoSuchBucket", "NotFound")
_DAMAGED_CODES = (
    "BadDigest",
    "IncompleteBody",
    "InvalidDigest",
    "XAmzContentSHA256Mismatch",
    "XAmzContentChecksumMismatch",
)
_OVERLOADED_CODES = ("SlowDown", "RequestLimitExceeded")
_TRY_LATER = ". Run again later, or with fewer --workers: objects stored so far are kept"


class _Translation(NamedTuple):
    """How an error answer of S3 is translated.

    Attributes:
        codes: the error codes of S3.
        error: the class of the error of this package.
        message: what is wrong and what to do. ``{reason}`` is the message of the server.
    """

    codes: tuple[str, ...]
    error: type[StoreError]
    message: str


_TRANSLATIONS = (
    _Translation(
        (
            "401",
            "403",
            "AccessDenied",
            "Forbidden",
            "InvalidAccessKeyId",
            "SignatureDoesNotMatch",
            "AllAccessDisabled",
            "RequestTimeTooSkewed",
        ),
        PermissionRefused,
        "permission refused ({reason}): check the credentials and the bucket's policy, and "
        "this machine's clock",
    ),
    _Translation(
        _DAMAGED_CODES,
        StoreError,
        "the store received other bytes than were sent ({reason}): something between this machine "
        "and the store changes data",
    ),
    _Translation(
        ("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired"),
        PermissionRefused,
        "the credentials have expired ({reason}): renew them, for instance by aws sso login, and "
        "run the same command again",
    ),
    _Translation(
        ("QuotaExceeded", "InsufficientStorage", "507"), StoreFull, "the store is full ({reason})"
    ),
    _Translation(
        ("PermanentRedirect", "AuthorizationHeaderMalformed", "301"),
        StoreError,
        "the bucket is in another region ({reason}): give --set store.region=REGION",
    ),
)


def without_advice(message: str) -> str:
    """Return an error message without the advice for an overloaded store.

    The advice fits only ``dataprep shard``.
    """
    return message.removesuffix(_TRY_LATER)


def error_code(error: object) -> str:
    """Return the code of an error answer of S3; empty for every other error."""
    # An error without an answer has no attribute ``response``, or has None there.
    response = getattr(error, "response", None) or {}
    return str(response.get("Error", {}).get("Code", ""))


def is_temporary(error: BaseException) -> bool:
    """Whether the request may succeed if it is repeated.

    This is so if the body arrived damaged, the request timed out, or the connection was lost.
    boto3 itself repeats requests after other temporary errors.
    """
    from botocore import exceptions as boto

    if isinstance(error, boto.ClientError):
        return error_code(error) in (*_DAMAGED_CODES, "RequestTimeout")
    return isinstance(
        error,
        boto.ConnectionError
        | boto.HTTPClientError
        | boto.IncompleteReadError
        | boto.FlexibleChecksumError
        | OSError,
    )


@contextlib.contextmanager
def translate_s3_errors(name: str, options: StoreOptions) -> Iterator[None]:
    """Translate errors of botocore into errors of this package. Messages begin with ``name``."""
    from botocore import exceptions as boto

    try:
        yield
    except DataprepError:
        raise
    except boto.ClientError as error:
        raise _error_from_answer(error, name) from None
    except (boto.NoCredentialsError, boto.PartialCredentialsError, boto.TokenRetrievalError):
        raise PermissionRefused(
            f"{name}: no usable AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or run where a role gives them"
        ) from None
    except (boto.ProfileNotFound, boto.ParamValidationError) as error:
        raise ConfigError(f"{name}: {one_line(error)}") from None
    except (boto.ConnectionError, boto.HTTPClientError, boto.IncompleteReadError) as error:
        endpoint = options.endpoint_url or "S3"
        raise StoreUnreachable(
            f"{name}: no complete answer from {endpoint}: {one_line(error).rstrip('.')}. "
            "Check --endpoint-url, the region and the network"
        ) from None
    except (boto.BotoCoreError, KeyError, ValueError, RecursionError) as error:
        # A proxy that drops a header causes a KeyError. Redirects can cause a RecursionError.
        reason = f"{type(error).__name__}: {one_line(error)}"
        raise StoreError(f"{name}: the store's answer cannot be used: {reason}") from None


def _error_from_answer(error: object, name: str) -> StoreError:
    """Translate an error answer of S3.

    Args:
        error: the ``ClientError`` of botocore.
        name: the address of the bucket or object, with which the message begins.
    """
    code = error_code(error)
    response = getattr(error, "response", {})
    reason = one_line(response.get("Error", {}).get("Message") or code)
    if code in _NOT_FOUND_CODES:
        if code == "NoSuchBucket" or name.count("/") <= 2:
            return ObjectNotFound(f"{name}: no such bucket: create it first")
        return ObjectNotFound(f"{name}: not found")
    for translation in _TRANSLATIONS:
        if code in translation.codes:
            return translation.error(f"{name}: {translation.message.format(reason=reason)}")
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode") or 0)
    if status >= 500 or status == 429 or code in _OVERLOADED_CODES:
        reason = reason.rstrip(".") + _TRY_LATER
    return StoreError(f"{name}: {code}: {reason}")


def one_line(text: object) -> str:
    """Return a message of botocore or a server as one line without credentials."""
    return without_credentials(" ".join(str(text).split()))
