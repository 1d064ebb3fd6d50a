"""PURE. Credentials in addresses: refused in configs, and removed from messages.

Configs, manifests, results and messages are stored, and are shown to other people.
"""

from __future__ import annotations

import re

_SIGNATURE = re.compile(
    r"(?<=[?&#])(x-(?:amz|goog|ms)-[a-z-]+|awsaccesskeyid|googleaccessid|signature|sig|"
    r"(?:[a-z]+_)?token|(?:access_|secret_|api_)?key)=[^&#\s\"'<>]*",
    re.IGNORECASE,
)
_USER = re.compile(r"(?<=://)[^/?#\s\"'<>]*@")


def check_no_credentials(address: str) -> str:
    """Return ``address``, a path or a URI, if it contains no credentials.

    Raises:
        ValueError: it is a URI with a user, a password, a signature or a token.
    """
    _, is_uri, rest = address.partition("://")
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    has_user = "@" in host
    if is_uri and (has_user or _SIGNATURE.search(rest)):
        raise ValueError(
            "must not carry a user, password, signature or token: credentials come from the "
            "environment or from a profile"
        )
    return address


def without_credentials(text: str) -> str:
    """Replace the credentials in the addresses of a message by stars.

    Configs contain none, since they are checked. But endpoints and proxies in environment variables
    may contain some.
    """
    without_users = _USER.sub("***@", text)
    return _SIGNATURE.sub(r"\1=***", without_users)
