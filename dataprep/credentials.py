"""PURE. Refuse credentials in the addresses of a config, and remove them from messages.

Configs, manifests, results and messages are stored and are shown to other people.
"""

from __future__ import annotations

import re

# A parameter of a query or a fragment whose value is a signature, a token or a key.
_SECRET_PARAMETER = re.compile(
    r"(?<=[?&#])(x-(?:amz|goog|ms)-[a-z-]+|awsaccesskeyid|googleaccessid|signature|sig|"
    r"(?:[a-z]+_)?token|(?:access_|secret_|api_)?key)=[^&#\s\"'<>]*",
    re.IGNORECASE,
)
_USER_AND_PASSWORD = re.compile(r"(?<=://)[^/?#\s\"'<>]*@")


def check_no_credentials(address: str) -> str:
    """Return ``address``, which is a path or a URI, if it contains no credentials.

    Raises:
        ValueError: the address is a URI with a user, a password, a signature or a token.
    """
    _, separator, rest = address.partition("://")
    is_uri = bool(separator)
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    has_user = "@" in host
    if is_uri and (has_user or _SECRET_PARAMETER.search(rest)):
        raise ValueError(
            "must not carry a user, password, signature or token: credentials come from the "
            "environment or from a profile"
        )
    return address


def without_credentials(text: str) -> str:
    """Replace the credentials in the addresses of a message with stars.

    The addresses in a config contain no credentials, because they are checked. However, the
    addresses of endpoints and proxies in environment variables may contain credentials.
    """
    without_users = _USER_AND_PASSWORD.sub("***@", text)
    return _SECRET_PARAMETER.sub(r"\1=***", without_users)
