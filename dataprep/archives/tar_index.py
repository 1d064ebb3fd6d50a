"""Where every member of a tar lies, and of the tars within it: one pass over headers.

One level of nesting is looked into, as ILSVRC's tar of tars needs; what is a tar is told by its
content. Members that must not be followed (links, devices, names that lead out of the archive)
are listed with the reason, never opened.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dataprep.archives.compression import GZIP, compression_of, hint
from dataprep.archives.tar_headers import BLOCK, FILE, FOLDER, Member, Members, Readable, is_header
from dataprep.errors import CorruptArchive
from dataprep.ordered import in_order


class Part(NamedTuple):
    """An archive: the whole file first, then each tar within it.

    ``start`` and ``bytes`` say where in the whole (decompressed) it lies, ``name`` is its own as
    a member. ``compressed`` is whether it is a gzip file; offsets of its members are those of
    its content then.
    """

    name: bytes
    start: int
    bytes: int
    compressed: bool


@dataclass(frozen=True)
class TarIndex:
    """Members as columns, in the order of the archive; folders left out.

    Attributes:
        parts: the archives that the members lie in.
        part: int32 number of each member's part.
        names: each as it stands in its part, without a leading ``./``.
        offsets: int64 first byte, counted within the innermost compressed part, or the file.
        sizes: int64 bytes.
        refused: row to why the member is not to be opened.
        unmarked: names of archives without an end marker: they may be cut.
    """

    parts: tuple[Part, ...]
    part: NDArray[np.int32]
    names: Sequence[bytes]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    refused: dict[int, str]
    unmarked: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.names)


@dataclass(slots=True)
class _Found:
    """Members of one part, while it is gone through."""

    part: Part
    names: list[bytes] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)
    marked: bool = True

    def add(self, member: Member, reason: str) -> None:
        """One more; ``reason`` is why it is not to be opened, or empty."""
        name = member.name
        if reason:
            self.refused[len(self.names)] = reason
        self.names.append(name)
        self.offsets.append(member.offset)
        self.sizes.append(member.size)


class Opened(NamedTuple):
    """A tar within the file: where to read it, and from where to where its headers lie there."""

    source: Readable
    start: int
    end: int | None


OpenInner = Callable[[Part], Opened]


def index_tar(
    source: Readable, whole: Part, open_inner: OpenInner | None, threads: int = 0
) -> TarIndex:
    """The index of the tar that ``source`` holds.

    ``open_inner`` opens a tar within it by itself, several at a time where ``threads`` says so.
    Without it ``source`` can only be read once and forwards, and inner tars are gone through as
    they come.

    Raises:
        CorruptArchive: damaged, truncated, or compressed twice.
    """
    archive = os.fsdecode(whole.name)
    outer = _Found(whole)
    inner: list[_Found] = []
    waiting: list[Part] = []
    members = Members(source, archive)
    for member in members:
        if member.kind == FOLDER:
            continue
        member = member._replace(name=tidy(member.name))
        reason = refusal(member)
        first = b"" if reason else source.read(member.offset, min(member.size, BLOCK))
        kind = None if reason else compression_of(first)
        part = Part(member.name, member.offset, member.size, kind == GZIP)
        if kind == GZIP or (not kind and _is_tar(first)):
            if open_inner:
                waiting.append(part)
            elif kind == GZIP:
                raise CorruptArchive(
                    f"{archive}: compressed itself, with compressed {os.fsdecode(member.name)!r} "
                    "within: decompress the outer one first, as in gunzip"
                )
            else:
                inner.append(_index_part(part, Opened(source, part.start, _end(part)), archive))
        else:
            outer.add(member, reason or (hint(kind) if kind else ""))
    outer.marked = members.marked
    if open_inner:
        opener = open_inner

        def one(part: Part) -> _Found:
            return _index_part(part, opener(part), archive)

        inner.extend(in_order(one, waiting, threads))
    return _joined([outer, *inner])


def tidy(name: bytes) -> bytes:
    """The name without empty parts and dots, so that ``./x`` and ``x`` are one."""
    if b"./" not in name and b"//" not in name:
        return name
    absolute = name.startswith(b"/")
    parts = [part for part in name.split(b"/") if part not in (b"", b".")]
    return b"/" * absolute + b"/".join(parts)


def refusal(member: Member) -> str:
    """Why a member must not be opened; empty where it may."""
    name = member.name
    if name.startswith(b"/"):
        return "member with an absolute path"
    if b".." in name and b".." in name.split(b"/"):
        return "member whose path leads out of the archive"
    if member.kind != FILE:
        return f"{member.kind} in the archive"
    return "" if name else "member without a name"


def _is_tar(first: bytes) -> bool:
    """Whether a member begins as a tar does: no image has both the word and the checksum."""
    return len(first) == BLOCK and first[148:156] != bytes(8) and is_header(first)


def _end(part: Part) -> int:
    return part.start + part.bytes


def _index_part(part: Part, opened: Opened, archive: str) -> _Found:
    name = f"{archive}: {os.fsdecode(part.name)}"
    found = _Found(part)
    members = Members(opened.source, name, opened.start, opened.end)
    for member in members:
        if member.kind != FOLDER:
            member = member._replace(name=tidy(member.name))
            found.add(member, refusal(member))
    found.marked = members.marked
    return found


def _joined(found: Sequence[_Found]) -> TarIndex:
    refused: dict[int, str] = {}
    names: list[bytes] = []
    for one in found:
        refused.update({len(names) + row: why for row, why in one.refused.items()})
        names.extend(one.names)
    counts = [len(one.names) for one in found]
    return TarIndex(
        parts=tuple(one.part for one in found),
        part=np.repeat(np.arange(len(found), dtype=np.int32), counts),
        names=names,
        offsets=np.array([o for one in found for o in one.offsets], dtype=np.int64),
        sizes=np.array([s for one in found for s in one.sizes], dtype=np.int64),
        refused=refused,
        unmarked=tuple(os.fsdecode(one.part.name) for one in found if not one.marked),
    )
