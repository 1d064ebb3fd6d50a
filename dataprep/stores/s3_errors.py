"""botocore's errors as this package's, in one place."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from dataprep.errors import (
    ConfigError,
    ObjectNotFound,
    PermissionRefused,
    StoreError,
    StoreFull,
    StoreUnreachable,
)
from dataprep.stores.options import StoreOptions

_NOT_FOUND = {"404", "NoSuchKey", "NoSuchBucket", "NotFound"}
_REFUSED = {
    *("401", "403", "AccessDenied", "Forbidden", "InvalidAccessKeyId", "SignatureDoesNotMatch"),
    *("ExpiredToken", "TokenRefreshRequired", "RequestTimeTooSkewed", "AllAccessDisabled"),
}
_FULL = {"QuotaExceeded", "InsufficientStorage", "507"}
_DAMAGED_ON_THE_WAY = {"BadDigest", "IncompleteBody", "InvalidDigest", "RequestTimeout"}
_DAMAGED_ON_THE_WAY |= {"XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch"}


def is_passing(error: BaseException) -> bool:
    """Whether the same request may succeed at once: a broken body or connection."""
    from botocore import exceptions as boto

    if isinstance(error, boto.ClientError):
        return _code(error) in _DAMAGED_ON_THE_WAY
    return isinstance(error, boto.HTTPClientError | boto.IncompleteReadError | OSError)


@contextlib.contextmanager
def translated(name: str, options: StoreOptions) -> Iterator[None]:
    """Turn what botocore raises into one clear sentence about ``name``."""
    from botocore import exceptions as boto

    try:
        yield
    except StoreError:
        raise
    except boto.ClientError as error:
        raise _from_answer(error, name, options) from None
    except (boto.NoCredentialsError, boto.PartialCredentialsError, boto.TokenRetrievalError):
        raise PermissionRefused(
            f"{name}: no usable AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or run where a role gives them"
        ) from None
    except boto.ProfileNotFound as error:
        raise ConfigError(f"{error}") from None
    except (boto.HTTPClientError, boto.IncompleteReadError) as error:
        where = options.endpoint_url or "S3"
        raise StoreUnreachable(
            f"{name}: no complete answer from {where}: {error}. Check --endpoint-url, the "
            "region and the network"
        ) from None
    except (boto.BotoCoreError, ValueError) as error:
        raise StoreError(f"{name}: {error}") from None


def _code(error: object) -> str:
    response = getattr(error, "response", {})
    return str(response.get("Error", {}).get("Code", ""))


def _from_answer(error: object, name: str, options: StoreOptions) -> StoreError:
    code = _code(error)
    response = getattr(error, "response", {})
    said = response.get("Error", {}).get("Message") or code
    if code in _NOT_FOUND:
        if code == "NoSuchBucket" or name.count("/") <= 2:
            return ObjectNotFound(f"{name}: no such bucket: create it first")
        return ObjectNotFound(f"{name}: not found")
    if code in _REFUSED:
        return PermissionRefused(
            f"{name}: permission refused ({said}): check the credentials and the bucket's policy"
        )
    if code in _FULL:
        return StoreFull(f"{name}: the store is full ({said})")
    if code in ("PermanentRedirect", "AuthorizationHeaderMalformed", "301"):
        return StoreError(f"{name}: the bucket is in another region ({said}): set --set store.region")
    return StoreError(f"{name}: {code}: {said}")
