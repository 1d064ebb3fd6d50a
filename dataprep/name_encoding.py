r"""PURE. Escape the names of source files, so that text files can store any name.

On Linux, a file name is a sequence of bytes. It may contain tabs, line ends and bytes that are not
valid UTF-8. In memory, a name is the ``str`` that ``os.fsdecode`` returns.

Parquet and JSON contain valid text only, and ``.lst`` files separate names by tabs and line ends.
In these files, names are escaped. A backslash becomes ``\\``. The bytes of control characters, of
line separators (U+0085, U+2028, U+2029) and bytes that are not valid UTF-8 become ``\xHH``. All
other characters stay as they are.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence

_SPECIAL = re.compile("[\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
CODEC = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
"""The encoding and the error handler with which ``str.encode`` returns the bytes of a name."""

_ESCAPED = re.compile(rb"\\(\\|x[0-9a-f]{2})")


def escape(name: str) -> str:
    """Return a name as one line of valid text without tabs."""
    return _SPECIAL.sub(_escape_character, name)


def escape_all(names: Sequence[str]) -> list[str]:
    """Escape many names. This is fast if no name contains a character that must be escaped."""
    if _SPECIAL.search("".join(names)) is None:
        return [*names]
    return [escape(name) for name in names]


def unescape_all(texts: Sequence[str]) -> list[str]:
    """Return the names that were passed to ``escape_all``."""
    return [unescape(text) for text in texts]


def by_bytes(names: Iterable[str]) -> list[str]:
    """Sort names by their bytes."""
    ordered = [*names]
    if "".join(ordered).isascii():
        ordered.sort()
    else:
        ordered.sort(key=to_bytes)
    return ordered


def unescape(text: str) -> str:
    """Return the name that was passed to ``escape``."""
    if "\\" not in text:
        return text
    return os.fsdecode(_ESCAPED.sub(_unescape_byte, to_bytes(text)))


def to_bytes(name: str) -> bytes:
    """Return the bytes of a name, in a third of the time that ``os.fsencode`` takes."""
    return name.encode(*CODEC)


def is_encodable(name: str) -> bool:
    """Whether a name can be encoded as UTF-8. The result does not depend on the locale.

    A text of JSON can have surrogates without a partner (``\\ud800``), which are no character.
    """
    try:
        name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _escape_character(match: re.Match[str]) -> str:
    if match[0] == "\\":
        return "\\\\"
    return "".join(f"\\x{byte:02x}" for byte in match[0].encode("utf-8", "surrogateescape"))


def _unescape_byte(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return b"\\" if code == b"\\" else bytes([int(code[1:], 16)])
