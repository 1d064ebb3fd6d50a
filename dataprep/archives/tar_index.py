"""Where every member of a tar lies, and of the tars within it: one pass over headers.

One level of nesting is looked into, as ILSVRC's tar of tars needs; what is a tar is told by its
content. Members that must not be followed (links, devices, names that lead out of the archive)
are listed with the reason, never opened.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dataprep.archives.compression import GZIP, PROBE_BYTES, beginning, compression_of, hint
from dataprep.archives.tar_block import BLOCK, is_header
from dataprep.archives.tar_headers import FILE, FOLDER, Member, Members, Readable
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
        remarks: number of a part to what is odd about its end: it may lack members.
    """

    parts: tuple[Part, ...]
    part: NDArray[np.int32]
    names: Sequence[bytes]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    refused: dict[int, str]
    remarks: dict[int, str]

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
    remark: str = ""

    def add(self, member: Member, reason: str) -> None:
        """One more; ``reason`` is why it is not to be opened, or empty."""
        name = member.name
        if reason:
            self.refused[len(self.names)] = reason
        self.names.append(name)
        self.offsets.append(member.offset)
        self.sizes.append(member.size)


class Inner(NamedTuple):
    """A tar within the file: what to read it from, and from where to where it lies there.

    ``finish`` is called when all of its headers are read.
    """

    source: Readable
    start: int
    end: int | None
    finish: Callable[[], object] | None = None


TAR = "tar"

OpenInner = Callable[[Part], Inner]


def _nobody(parts: Sequence[Part]) -> None:
    """Tell nobody."""


def index_tar(
    source: Readable,
    whole: Part,
    open_inner: OpenInner | None,
    threads: int = 0,
    announce: Callable[[Sequence[Part]], None] = _nobody,
) -> TarIndex:
    """The index of the tar that ``source`` holds.

    ``open_inner`` opens a tar within it by itself, several at a time where ``threads`` says so;
    ``announce`` hears of all of them before.
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
    for member in _files(members):
        reason, holds_tar = _looked_at(source, member)
        if not holds_tar:
            outer.add(member, reason)
            continue
        part = Part(member.name, member.offset, member.size, holds_tar == GZIP)
        if open_inner:
            waiting.append(part)
        elif part.compressed:
            raise CorruptArchive(
                f"{archive}: compressed itself, with compressed {os.fsdecode(member.name)!r} "
                "within: decompress the outer one first, as in gunzip --keep"
            )
        else:
            inner.append(_index_part(part, Inner(source, part.start, _end(part)), archive))
    outer.remark = members.remark
    if open_inner:
        opener = open_inner
        announce(waiting)

        def one(part: Part) -> _Found:
            return _index_part(part, opener(part), archive)

        inner.extend(in_order(one, waiting, threads))
    return _joined([outer, *inner])


def _files(members: Members) -> Iterator[Member]:
    """Members but for folders, names tidied."""
    for member in members:
        if member.kind != FOLDER:
            yield member._replace(name=tidy(member.name))


def _looked_at(source: Readable, member: Member) -> tuple[str, str | None]:
    """Why a member must not be opened, if so; and whether it holds a tar, in which form."""
    if reason := refusal(member):
        return reason, None
    first = source.read(member.offset, min(member.size, BLOCK))
    kind = compression_of(first)
    if kind is None:
        return "", TAR if is_tar(first) else None
    if kind != GZIP:
        return hint(kind), None
    first = source.read(member.offset, min(member.size, PROBE_BYTES))
    return "", GZIP if is_tar(beginning(first, BLOCK)) else None


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


def is_tar(first: bytes) -> bool:
    """Whether 512 bytes begin a tar, with a damaged header maybe.

    No image begins with a checksum of itself, nor with the magic of POSIX and GNU headers.
    """
    return len(first) == BLOCK and (is_header(first) or first[257:262] == b"ustar")


def _end(part: Part) -> int:
    return part.start + part.bytes


def _index_part(part: Part, opened: Inner, archive: str) -> _Found:
    name = f"{archive}: {os.fsdecode(part.name)}"
    found = _Found(part)
    members = Members(opened.source, name, opened.start, opened.end)
    for member in _files(members):
        found.add(member, refusal(member))
    found.remark = members.remark
    if opened.finish:
        opened.finish()
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
        remarks={number: one.remark for number, one in enumerate(found) if one.remark},
    )
