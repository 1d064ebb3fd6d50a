"""PURE. awscrt's errors as failed requests."""

from __future__ import annotations

import re
from typing import Any

from iobench.probes.object_store.clients.protocol import RequestFailed

_XML = re.compile(r"<Code>(.*?)</Code>(?:.*?<Message>(.*?)</Message>)?", re.S)
_STATUS = {"AWS_ERROR_S3_SLOW_DOWN": "503", "AWS_ERROR_S3_INTERNAL_ERROR": "500"}


def failed_request(error: Any) -> RequestFailed:
    """What went wrong, by the answer's status and XML, or by the runtime's name for it.

    An answer that breaks off is a connection that is closed: awscrt tells no difference.
    """
    status = getattr(error, "status_code", None)
    if status and status >= 300:
        xml = _XML.search((getattr(error, "body", None) or b"").decode(errors="replace"))
        said = f"{xml[1]}: {xml[2] or 'no message'}" if xml else "no message"
        return RequestFailed(str(status), f"{status} {said}")
    words = f"{error.name}: {error.message}"
    if error.name in _STATUS:
        return RequestFailed(_STATUS[error.name], words)
    return RequestFailed("timeout" if "TIMEOUT" in error.name else "connection", words)
