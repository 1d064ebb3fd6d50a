"""PURE. What members of archives are called as samples, and which of equal names counts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

_ENDINGS = (b".tar", b".tar.gz", b".tgz")


def without_ending(name: bytes) -> bytes:
    """The name of a tar without the ending that says so."""
    ending = next((e for e in sorted(_ENDINGS, key=len, reverse=True) if name.endswith(e)), b"")
    return name[: len(name) - len(ending)]


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
