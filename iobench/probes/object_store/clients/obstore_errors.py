"""obstore's errors as failed requests.

obstore raises one class for most failures and puts what happened into its text: the answer's
status and XML, then the error of the Rust library below it, drawn as a tree.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from iobench.probes.object_store.clients.protocol import RequestFailed

_STATUS = re.compile(r"status code: (\d{3})")
_XML = re.compile(r"<Code>(.*?)</Code>(?:.*?<Message>(.*?)</Message>)?", re.S)
_TREE = "\n\nDebug source:"
_BARE_REDIRECT = "redirect without LOCATION"


@contextlib.contextmanager
def translated(*, in_body: bool = False) -> Iterator[None]:
    """Turn what obstore raises into ``RequestFailed``."""
    from obstore.exceptions import BaseError

    try:
        yield
    except (BaseError, OSError) as error:
        raise failed_request(error, in_body=in_body) from None


def failed_request(error: BaseException, *, in_body: bool = False) -> RequestFailed:
    """PURE. What went wrong, by its text. ``in_body``: after the answer's head had arrived."""
    text = str(error)
    if status := _STATUS.search(text):
        xml = _XML.search(text)
        said = f"{xml[1]}: {xml[2] or 'no message'}" if xml else "no message"
        return RequestFailed(status[1], f"{status[1]} {said}")
    first_line = text.split(_TREE)[0]
    if _BARE_REDIRECT in text:
        return RequestFailed("301", f"301 the bucket is in another region: {first_line}")
    if "kind: Timeout" in text or "TimedOut" in text:
        return RequestFailed("timeout", f"no answer in time: {first_line}")
    if in_body:
        return RequestFailed("truncated", f"the body broke off: {first_line}")
    return RequestFailed("connection", first_line)
