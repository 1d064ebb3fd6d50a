"""botocore's errors as this package's, in one place."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import NamedTuple

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
from dataprep.stores.options import StoreOptions

_NOT_FOUND = {"404", "NoSuchKey", "NoSuchBucket", "NotFound"}
_REFUSED = {
    *("401", "403", "AccessDenied", "Forbidden", "InvalidAccessKeyId", "SignatureDoesNotMatch"),
    "AllAccessDisabled",
}
_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired"}
_TOO_MANY = {"SlowDown", "ServiceUnavailable", "RequestLimitExceeded", "429", "503"}
_FULL = {"QuotaExceeded", "InsufficientStorage", "507"}
_NOT_AS_SENT = {
    *("BadDigest", "IncompleteBody", "InvalidDigest"),
    *("XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch"),
}
_DAMAGED_ON_THE_WAY = {*_NOT_AS_SENT, "RequestTimeout"}


_FEWER = ". Run it again later, or with fewer --workers: what is stored is kept"
_LATER = ". The store failed at each attempt: run it again later, what is stored is kept"


def without_advice(said: str) -> str:
    """A store's refusal without what a job does about it, for those who do something else."""
    return said.removesuffix(_FEWER).removesuffix(_LATER)


def is_passing(error: BaseException) -> bool:
    """Whether the same request may succeed at once: a broken body or connection."""
    from botocore import exceptions as boto

    if isinstance(error, boto.ClientError):
        return error_code(error) in _DAMAGED_ON_THE_WAY
    unanswered = boto.ConnectionError | boto.HTTPClientError | boto.IncompleteReadError
    return is_checksum(error) or isinstance(error, unanswered | OSError)


def is_checksum(error: BaseException) -> bool:
    """Whether a body that was read does not have the checksum stored with it."""
    from botocore import exceptions as boto

    return isinstance(error, boto.FlexibleChecksumError)


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
    except boto.ProfileNotFound as error:
        raise ConfigError(f"{error}") from None
    except boto.ParamValidationError as error:
        raise ConfigError(f"{name}: {_one_line(error)}") from None
    except (boto.ConnectionError, boto.HTTPClientError, boto.IncompleteReadError) as error:
        where = options.endpoint_url or "S3"
        raise StoreUnreachable(
            f"{name}: no complete answer from {where}: {_one_line(error).rstrip('.')}. "
            "Check --endpoint-url, the region and the network"
        ) from None
    except boto.FlexibleChecksumError:
        raise StoreError(
            f"{name}: what arrives has another checksum than what was stored: it is damaged "
            "there, or something on the way changes data. If it stays so, remove it and run again"
        ) from None
    except RecursionError:  # botocore follows each redirect by a call of itself
        raise StoreError(
            f"{name}: the store redirects without end: check --endpoint-url and the region"
        ) from None
    except (boto.BotoCoreError, ValueError) as error:
        raise StoreError(f"{name}: {_one_line(error)}") from None


def _one_line(text: object) -> str:
    return without_credentials(" ".join(str(text).split()))


def error_code(error: object) -> str:
    """S3's code for an error answer; empty for every other error."""
    response = getattr(error, "response", None) or {}  # None in errors without an answer
    return str(response.get("Error", {}).get("Code", ""))


def _from_answer(error: object, name: str) -> StoreError:
    code = error_code(error)
    response = getattr(error, "response", {})
    said = _one_line(response.get("Error", {}).get("Message") or code)
    if code in _NOT_FOUND:
        if code == "NoSuchBucket" or name.count("/") <= 2:
            return ObjectNotFound(f"{name}: no such bucket: create it first")
        return ObjectNotFound(f"{name}: not found")
    for codes, kind, what, advice in _ANSWERS:
        if code in codes:
            return kind(f"{name}: {what} ({said}){advice}")
    advice = ""
    if code in _TOO_MANY:
        advice = _FEWER
    elif _status(error) >= 500:
        advice = _LATER
    return StoreError(f"{name}: {code}: {said.rstrip('.') if advice else said}{advice}")


class _Answer(NamedTuple):
    """Codes of one kind, the error for them, what happened, and what to do about it."""

    codes: AbstractSet[str]
    error: type[StoreError]
    what: str
    advice: str


_ANSWERS = (
    _Answer(
        _REFUSED,
        PermissionRefused,
        "permission refused",
        ": check the credentials and the bucket's policy",
    ),
    _Answer(
        _NOT_AS_SENT,
        StoreError,
        "what reaches the store is not what was sent",
        ": something between here and there changes data",
    ),
    _Answer(
        _EXPIRED,
        PermissionRefused,
        "the credentials have expired",
        ": renew them, for instance by aws sso login, and run the same command again",
    ),
    _Answer(
        {"RequestTimeTooSkewed"},
        PermissionRefused,
        "this machine's clock and the store's differ too much",
        ": set the clock (timedatectl set-ntp true), and run the same command again",
    ),
    _Answer(_FULL, StoreFull, "the store is full", ""),
    _Answer(
        {"PermanentRedirect", "AuthorizationHeaderMalformed", "301"},
        StoreError,
        "the bucket is in another region",
        ": set --set store.region",
    ),
)


def _status(error: object) -> int:
    response = getattr(error, "response", None) or {}
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode") or 0)
