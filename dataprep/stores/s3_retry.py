"""Repeat requests to S3: PUTs by ``send_with_retries``, GETs by ``call_with_retries``.

boto3 itself repeats a request if the server refuses it temporarily or if the connection is lost. It
makes up to ``store.max_attempts`` attempts, in its adaptive mode, which slows down when the server
is overloaded.

An object is sent at most ``store.max_attempts`` times in all. ``Upload.attempts`` counts the
attempts of boto3, the attempts of ``send_with_retries``, and the attempts after which the store
held other bytes than were sent.
"""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

from dataprep.errors import StoreError
from dataprep.message_text import counted
from dataprep.stores.protocol import Upload
from dataprep.stores.s3_bucket import error_code, is_temporary, one_line

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

Answer = TypeVar("Answer")

PUT_RETRY_MESSAGE = "%s is sent again, attempt %d of %d: %s"
"""The log message (level WARNING) for each repetition of a PUT.

Its arguments are the address of the object, the number of the attempt, the maximum number of
attempts, and the reason why the previous attempt failed.
"""

READ_ATTEMPTS = 4
"""The maximum number of times that an object is read.

It is read again if its bytes do not arrive, or do not match its ETag.
"""

_FIRST_PAUSE_S = 0.2
_MAX_PAUSE_S = 20.0

# Another request for the same object was in progress.
_CONFLICT_CODES = ("ConditionalRequestConflict", "OperationAborted")

_log = logging.getLogger(__name__)


class _NoAttemptsLeft(Exception):
    """An object was sent the maximum number of times."""


def send_with_retries(
    client: S3Client,
    upload: Upload,
    arguments: Mapping[str, Any],
    *,
    address: str,
    max_attempts: int,
) -> str:
    """Send an object by PUT until the server has accepted or finally refused it.

    boto3 repeats requests after temporary refusals and lost connections. This function repeats the
    request if the body arrived damaged, or after a conflict with another request.

    Args:
        client: a client that ``count_put_attempts`` was called with.
        upload: the object. ``upload.attempts`` and ``upload.reason`` are updated.
        arguments: the arguments of ``put_object`` except for the body and its MD5.
        address: the address of the object, for messages.
        max_attempts: the maximum number of times that the object is sent, including the attempts
            that ``upload.attempts`` already counts.

    Returns:
        The ETag of the stored object, without quotes.

    Raises:
        StoreError: there are no attempts left. The message has the reason of the last failure.
        botocore.exceptions.ClientError: the server finally refused the object.
        botocore.exceptions.BotoCoreError: the last attempt failed without an answer.
    """
    pause_s = _FIRST_PAUSE_S
    while True:
        attempts_before = upload.attempts
        try:
            answer = client.put_object(
                Body=cast(IO[bytes], _Body(upload, address, max_attempts)),
                ContentMD5=base64.b64encode(upload.md5).decode(),
                **cast(Any, arguments),
            )
            return str(answer.get("ETag", "")).strip('"')
        except _NoAttemptsLeft as error:
            raise StoreError(f"{address}: not stored {error}") from None
        except Exception as error:
            may_succeed = is_temporary(error) or error_code(error) in _CONFLICT_CODES
            # An error before the request was sent has counted no attempt.
            upload.attempts = max(upload.attempts, attempts_before + 1)
            if not may_succeed or upload.attempts >= max_attempts:
                raise
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _MAX_PAUSE_S)


def call_with_retries(request: Callable[[], Answer], attempts: int = READ_ATTEMPTS) -> Answer:
    """Call ``request`` until it succeeds or fails permanently, at most ``attempts`` times.

    The first pause between two calls takes 0.2 s, and each pause is twice as long as the previous
    one. The error of the last call is raised.
    """
    for attempt in range(attempts - 1):
        try:
            return request()
        except Exception as error:
            if not is_temporary(error):
                raise
        time.sleep(_FIRST_PAUSE_S * 2**attempt)
    return request()


def count_put_attempts(client: S3Client) -> None:
    """Register callbacks that count each attempt of a PUT, and record why an attempt failed."""
    events = client.meta.events
    events.register("before-send.s3.PutObject", _before_attempt)
    events.register("needs-retry.s3.PutObject", _after_attempt)


class _Body:
    """The body of an upload as a file object for botocore, without a copy of its bytes."""

    def __init__(self, upload: Upload, address: str, max_attempts: int) -> None:
        self.upload = upload
        self._address = address
        self._max_attempts = max_attempts
        self._position = 0

    def __len__(self) -> int:
        return len(self.upload.data)

    def read(self, size: int) -> memoryview:
        """Return the next ``size`` bytes; fewer at the end."""
        start = self._position
        self._position += size
        return self.upload.data[start : self._position]

    def seek(self, offset: int) -> None:
        """Set the position, in bytes. botocore calls this before another attempt."""
        self._position = offset

    def count_attempt(self) -> None:
        """Count an attempt that begins, and log it if it is a repetition.

        Raises:
            _NoAttemptsLeft: the object was sent the maximum number of times.
        """
        upload = self.upload
        if upload.attempts >= self._max_attempts:
            raise _NoAttemptsLeft(
                f"after {counted(self._max_attempts, 'attempt')}: {upload.reason}"
            )
        upload.attempts += 1
        if upload.attempts > 1:
            _log.warning(
                PUT_RETRY_MESSAGE,
                self._address,
                upload.attempts,
                self._max_attempts,
                upload.reason,
            )


def _before_attempt(request: Any, **_: Any) -> None:
    """Count an attempt of a PUT. botocore calls this before each attempt, including retries."""
    if isinstance(request.body, _Body):
        request.body.count_attempt()


def _after_attempt(
    request_dict: Mapping[str, Any],
    response: tuple[Any, Mapping[str, Any]] | None = None,
    caught_exception: Exception | None = None,
    **_: Any,
) -> None:
    """Record why an attempt of a PUT failed. botocore calls this after each attempt."""
    body = request_dict.get("body")
    if not isinstance(body, _Body):
        return
    if caught_exception is not None:
        body.upload.reason = one_line(caught_exception)
    elif response is not None and "Error" in response[1]:
        error = response[1]["Error"]
        body.upload.reason = one_line(f"{error.get('Code', '')} {error.get('Message', '')}")
