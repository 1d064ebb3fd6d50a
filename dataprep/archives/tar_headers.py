"""PURE. Headers of tar archives: what each member is called, what it is, and where it lies.

POSIX.1-1988 (ustar) and POSIX.1-2001 (pax) as in IEEE Std 1003.1, "pax"; GNU's long names,
base-256 numbers and sparse members as in the GNU tar manual, "Basic Tar Format"; and what came
before both (v7). Nothing but headers is looked at.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

from dataprep.archives.tar_block import BLOCK, is_header, name_of, number, padded, pax_records
from dataprep.errors import CorruptArchive, TruncatedArchive

LARGEST_EXTENSION_BYTES = 1 << 20
"""Of a long name or a pax header; what is larger is an attack on memory, or no tar."""

LARGEST_PADDING_BYTES = 1 << 20
"""Behind the end marker: no program writes blocks (``tar --blocking-factor``) of more."""
UNMARKED = "no end marker after its last member: if it was cut, it lacks some"

FILE, FOLDER, SPARSE = "file", "folder", "sparse file"
_KINDS = {
    **dict.fromkeys(b"0\x007", FILE),
    ord("1"): "hard link",
    ord("2"): "symbolic link",
    ord("3"): "character device",
    ord("4"): "block device",
    ord("5"): FOLDER,
    ord("6"): "FIFO",
    ord("S"): SPARSE,
    ord("M"): "continuation from another volume",
}
_WITHOUT_DATA = frozenset(b"123456")
_SPARSE_CODE = ord("S")
_LONG_NAME, _LONG_LINK, _PAX, _PAX_SOLARIS, _PAX_GLOBAL = b"LKxXg"
_EXTENSIONS = frozenset((_LONG_NAME, _LONG_LINK, _PAX, _PAX_SOLARIS, _PAX_GLOBAL))
_PASSED_OVER = frozenset(b"VADN")
"""Volume labels, Solaris' access lists, GNU's folder dumps and rename lists."""

Argument = TypeVar("Argument")
Result = TypeVar("Result")


class Readable(Protocol):
    """Bytes by offset, which are asked for in rising order."""

    @property
    def size(self) -> int | None:
        """All bytes; None while nobody knows (a compressed stream before its end)."""
        ...

    def read(self, offset: int, length: int) -> bytes:
        """``length`` bytes from ``offset``; fewer only at the end."""
        ...


class Member(NamedTuple):
    """One member. ``offset`` is where its ``size`` bytes begin; ``name`` is as it stands there."""

    name: bytes
    kind: str
    offset: int
    size: int


@dataclass(slots=True)
class Members:
    """The members of the archive that lies from ``start`` to ``end``, or to where it ends.

    ``remark`` says after the last member what is odd about the archive's end; it is empty where
    an end marker followed and nothing but zeros after it. ``archive`` names it in errors.
    """

    source: Readable
    archive: str
    start: int = 0
    end: int | None = None
    remark: str = field(default="", init=False)

    def __iter__(self) -> Iterator[Member]:
        """Members in the order of the archive.

        Raises:
            CorruptArchive: something other than a header stands where one should, or a header
                behind the end marker.
            TruncatedArchive: the archive ends inside a member.
        """
        at = self.start
        told = _Told()
        while block := self._header(at):
            kind, data = block[156], at + BLOCK
            size = self._checked(number, block[124:136], at)
            if kind in _EXTENSIONS:
                content = self._extension(data, size)
                self._checked(partial(told.hear, kind), content, at)
                at = data + padded(size)
                continue
            if kind == _SPARSE_CODE:
                data += self._sparse_maps(block, data)
            name = name_of(block)
            if told:
                name, size, kind = self._checked(told.about, (name, size, kind), at)
            stored = 0 if kind in _WITHOUT_DATA else size
            self._require(at, data, stored, name)
            if kind not in _PASSED_OVER:
                yield Member(name, _kind(kind, name), data, stored)
            at = data + padded(stored)

    def _header(self, at: int) -> bytes:
        """The header at ``at``; nothing at the end of the archive."""
        if self.end is not None and at >= self.end:
            self.remark = UNMARKED
            return b""
        block = self.source.read(at, BLOCK)
        if len(block) < BLOCK:
            size = self.source.size
            if block or (size is not None and size < at):
                raise self._truncated(at if size is None else size)
            self.remark = UNMARKED
            return b""
        if not is_header(block):
            if block.count(0) == BLOCK:
                self.remark = self._behind(at)
                return b""
            raise CorruptArchive(
                f"{self.archive}: no tar header at byte {at:,}, where one should be: the archive "
                "is damaged; compare its MD5 and fetch it again"
            )
        return block

    def _behind(self, marker: int) -> str:
        """What is odd behind the end marker, where there should be zeros and little of them."""
        at = marker + BLOCK
        room = LARGEST_PADDING_BYTES if self.end is None else self.end - at
        data = self.source.read(at, min(room, LARGEST_PADDING_BYTES)) if room > 0 else b""
        rest = data.lstrip(b"\0")
        zeros = (len(data) - len(rest)) // BLOCK * BLOCK
        if is_header(data[zeros : zeros + BLOCK]):
            raise CorruptArchive(
                f"{self.archive}: has a member at byte {at + zeros:,}, behind the end marker at "
                f"byte {marker:,}, where tar programs stop reading: the archive is damaged, fetch "
                "it again; or it is several in a row, unpack it with tar --ignore-zeros and pack "
                "it anew"
            )
        if rest or len(data) == LARGEST_PADDING_BYTES:
            return f"more than padding follows its end marker at byte {marker:,}, and is not read"
        return ""

    def _require(self, at: int, data: int, size: int, name: bytes) -> None:
        """Raise where a member would run past the archive's end, or backwards."""
        if size < 0:
            raise self._corrupt(at, "a size below zero")
        limit = self.source.size if self.end is None else self.end
        if limit is not None and data + size > limit:
            raise self._truncated(
                limit, f" inside {os.fsdecode(name)!r}, which began at byte {at:,}"
            )

    def _checked(self, call: Callable[[Argument], Result], argument: Argument, at: int) -> Result:
        """``call(argument)``; a ValueError is a header that follows no rule."""
        try:
            return call(argument)
        except ValueError as error:
            raise self._corrupt(at, str(error)) from None

    def _corrupt(self, at: int, what: str) -> CorruptArchive:
        return CorruptArchive(
            f"{self.archive}: the tar header at byte {at:,} has {what}: the archive is damaged; "
            "compare its MD5 and fetch it again"
        )

    def _truncated(self, at: int, where: str = "") -> TruncatedArchive:
        return TruncatedArchive(
            f"{self.archive}: ends at byte {at:,}{where}: the archive is truncated, fetch it again"
        )

    def _extension(self, at: int, size: int) -> bytes:
        if not 0 <= size <= LARGEST_EXTENSION_BYTES:
            raise self._corrupt(at - BLOCK, f"a name of {size:,} bytes")
        content = self.source.read(at, size)
        if len(content) < size:
            raise self._truncated(at + len(content))
        return content

    def _sparse_maps(self, block: bytes, at: int) -> int:
        """Bytes of the further maps of holes that follow a sparse member's header."""
        used, more = 0, block[482]
        while more:
            following = self.source.read(at + used, BLOCK)
            if len(following) < BLOCK:
                raise self._truncated(at + used)
            more = following[504]
            used += BLOCK
        return used


class _Told:
    """What long names and pax headers say of the next member, or of all that follow."""

    def __init__(self) -> None:
        self._name = b""
        self._next: dict[bytes, bytes] = {}
        self._all: dict[bytes, bytes] = {}

    def __bool__(self) -> bool:
        return bool(self._name or self._next or self._all)

    def hear(self, kind: int, content: bytes) -> None:
        """Take the content of an extension header.

        Raises:
            ValueError: it follows no rule.
        """
        if kind == _LONG_NAME:
            self._name = content.partition(b"\0")[0]
        elif kind == _PAX_GLOBAL:
            self._all.update(pax_records(content))
        elif kind != _LONG_LINK:
            self._next = pax_records(content)

    def about(self, stated: tuple[bytes, int, int]) -> tuple[bytes, int, int]:
        """Name, size and kind of the next member; an empty value takes an earlier one back.

        Raises:
            ValueError: a size that is no number.
        """
        name, size, kind = stated
        pax = {**self._all, **self._next}
        name = pax.get(b"path") or self._name or name
        if any(key.startswith(b"GNU.sparse.") for key in pax):
            name, kind = pax.get(b"GNU.sparse.name") or name, _SPARSE_CODE
        if told := pax.get(b"size"):
            size = int(told)
        self._name, self._next = b"", {}
        return name, size, kind


def _kind(code: int, name: bytes) -> str:
    if code in (0, 48) and name.endswith(b"/"):
        return FOLDER
    return _KINDS.get(code) or f"member of unknown type {chr(code)!r}"
