r"""Source names that survive every file they are written to.

A name is bytes on Linux: it may hold tabs, newlines and bytes that are not UTF-8. In memory it
is a ``str`` as ``os.fsdecode`` makes it. In Parquet, JSON and ``.lst`` files, which hold text
or separate by tabs and lines, it is escaped: a backslash becomes ``\\``, and each byte of a
control character, of a line separator (U+0085, U+2028, U+2029) or of anything that is not
UTF-8 becomes ``\xHH``. Every other name looks like itself.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence

_SPECIAL = re.compile("[\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
CODEC = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
"""How ``str.encode`` gives a name's own bytes."""

_ESCAPED = re.compile(rb"\\(\\|x[0-9a-f]{2})")


def escape(name: str) -> str:
    """The name as one line of valid text without tabs."""
    return _SPECIAL.sub(_escape_one, name)


def escape_all(names: Sequence[str]) -> list[str]:
    """``escape`` for many names, most of which have nothing to escape."""
    if _SPECIAL.search("".join(names)) is None:
        return [*names]
    return [escape(name) for name in names]


def unescape_all(texts: Sequence[str]) -> list[str]:
    """The names that ``escape_all`` was given."""
    return [unescape(text) for text in texts]


def by_bytes(names: Iterable[str]) -> list[str]:
    """The names in the order of their bytes."""
    found = [*names]
    found.sort(key=None if "".join(found).isascii() else to_bytes)
    return found


def unescape(text: str) -> str:
    """The name that ``escape`` was given."""
    if "\\" not in text:
        return text
    return os.fsdecode(_ESCAPED.sub(_unescape_one, to_bytes(text)))


def to_bytes(name: str) -> bytes:
    """The name's own bytes: ``os.fsencode`` in a third of its time."""
    return name.encode(*CODEC)


def _escape_one(match: re.Match[str]) -> str:
    if match[0] == "\\":
        return "\\\\"
    return "".join(f"\\x{byte:02x}" for byte in match[0].encode("utf-8", "surrogateescape"))


def _unescape_one(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return b"\\" if code == b"\\" else bytes([int(code[1:], 16)])
