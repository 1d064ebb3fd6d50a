"""PURE. Credentials in addresses: refused in configs, left out of messages.

Configs, manifests, results and messages are kept and shown to others.
"""

from __future__ import annotations

import re

_SIGNED = re.compile(
    r"(?<=[?&#])(x-(?:amz|goog|ms)-[a-z-]+|awsaccesskeyid|googleaccessid|signature|sig|"
    r"(?:[a-z]+_)?token|(?:access_|secret_|api_)?key)=[^&#\s\"'<>]*",
    re.IGNORECASE,
)
_USER = re.compile(r"(?<=://)[^/?#\s\"'<>]*@")


def check_no_credentials(address: str) -> str:
    """``address`` itself: a path, or a URI that may be written down.

    Raises:
        ValueError: a URI with a user, a password, a signature or a token in it.
    """
    _, is_uri, rest = address.partition("://")
    user = "@" in re.split(r"[/?#]", rest, maxsplit=1)[0]
    if is_uri and (user or _SIGNED.search(rest)):
        raise ValueError(
            "must not carry a user, password, signature or token: credentials come from the "
            "environment or from a profile"
        )
    return address


def without_credentials(text: str) -> str:
    """Replace the credentials in the addresses of a message by stars.

    Endpoints of the environment and proxies can have some: configs are checked, they are not.
    """
    return _SIGNED.sub(r"\1=***", _USER.sub("***@", text))
