"""PURE. What members of archives are called as samples, and which of equal names counts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

_COMPRESSED = (b"gz", b"bz2", b"xz", b"zst", b"lz4", b"lz", b"lzma", b"lzo", b"z")
_UNFINISHED = (b"part", b"partial", b"crdownload")
_ENDINGS = (
    *(b".tar", b".tgz", b".tbz", b".tbz2", b".txz", b".tzst"),
    *(b".tar." + more for more in _COMPRESSED + _UNFINISHED),
)


def is_called_tar(name: bytes) -> bool:
    """Whether the name promises a tar, compressed or not, or a part of one."""
    return name.lower().endswith(_ENDINGS)


def without_ending(name: bytes) -> bytes:
    """The name of a tar without the ending that says so, in capitals too."""
    found = (len(ending) for ending in _ENDINGS if name.lower().endswith(ending))
    return name[: len(name) - next(found, 0)]


def unpacked(archive: bytes, members: Sequence[bytes]) -> list[bytes]:
    """Members of ``n01440764.tar`` as they are called below a folder ``n01440764``.

    Where all of them lie in a folder of that name already, it is not put before them twice.
    """
    above, _, stem = without_ending(archive).rpartition(b"/")
    inside = stem + b"/"
    if members and all(name.startswith(inside) for name in members):
        prefix = above + b"/" if above else b""
    else:
        prefix = (above + b"/" if above else b"") + inside
    return [prefix + name for name in members]


def in_name_order(names: Sequence[bytes]) -> tuple[list[int], list[int]]:
    """Rows sorted by name, equal names in the order in which they stand; and replaced rows.

    A later member of the same name replaces an earlier one, as it does when a tar is unpacked.
    """
    order = sorted(range(len(names)), key=names.__getitem__)
    replaced = [row for row, after in pairwise(order) if names[row] == names[after]]
    return order, replaced
