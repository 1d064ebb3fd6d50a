"""The answers that the proxy gives itself, in S3's form."""

from __future__ import annotations

from http import HTTPStatus
from io import BytesIO
from xml.sax.saxutils import escape

from iobench.faults.kinds import Status
from iobench.faults.wire import Body, Head

_PHRASES = {int(status): status.phrase for status in HTTPStatus}


def s3_error(fault: Status, method: str) -> tuple[Head, Body]:
    """The response that ``fault`` stands for; as after every ``HEAD``, without its body there."""
    xml = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<Error><Code>{escape(fault.s3_code)}</Code>"
        f"<Message>{escape(fault.message)}</Message>"
        "<RequestId>injected-fault</RequestId></Error>"
    ).encode()
    head = Head(f"HTTP/1.1 {fault.code} {_PHRASES.get(fault.code, 'Injected Fault')}")
    if fault.code in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
        xml = b""
    else:
        head = head.with_field("Content-Type", "application/xml")
        head = head.with_field("Content-Length", str(len(xml)))
    for name, value in fault.headers:
        head = head.with_field(name, value)
    if method == "HEAD":
        xml = b""
    return head, Body(BytesIO(xml), len(xml))
