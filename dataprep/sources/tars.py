"""Tar archives read in place: an index of the place of each member, stored between runs.

The content decides what is a tar and what is compressed. One level of nesting is indexed, as
ILSVRC2012's tar of tars needs. Members that must not be opened, such as links and paths that leave
the archive, are rows with a reason.
"""

from __future__ import annotations

import contextlib
import io
import os
import posixpath
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from dataprep.errors import CorruptArchive, NotAnArchive, SourceError, TruncatedArchive
from dataprep.names import CODEC
from dataprep.ordered import in_order
from dataprep.samples import readable
from dataprep.sources.archives import Archive, GzipContent, inflating
from dataprep.stores.local import LocalStore

INDEX = pa.schema(
    {
        "name": pa.large_binary(),
        "tar": pa.large_binary(),
        "container": pa.large_binary(),
        "offset": pa.int64(),
        "bytes": pa.int64(),
        "status": pa.string(),
        "problem": pa.string(),
        "content": pa.large_binary(),
    }
)
"""Of an index: a member's name as if each tar were unpacked into a folder, the tar of its class or
nothing, what its offset belongs to, the status and reason of what is no sample, and the content of
a small member that may give the class of a sample (``is_sidecar``)."""

KEPT_BELOW_BYTES = 4096
"""Members of this size and more are not kept in an index."""

_BLOCK = tarfile.BLOCKSIZE
_PROBE_BYTES = 4096 - _BLOCK  # of a member, read together with its header
_PADDING_BYTES = 2**20
_WITH_FILE = 2**63  # the end of a tar in gzip data, whose size is not known
_THREADS = 16
_WORTH_A_NOTE_BYTES = 10**9
_PASSED_OVER = {b"V", b"A", b"D", b"N"}  # volume labels, access lists, GNU's dumps and renames
_KINDS = {
    tarfile.LNKTYPE: "hard link",
    tarfile.SYMTYPE: "symbolic link",
    tarfile.CHRTYPE: "character device",
    tarfile.BLKTYPE: "block device",
    tarfile.FIFOTYPE: "FIFO",
}
_DECOMPRESS = {
    b"\xfd7zXZ\x00": "compressed with xz, which cannot be read in parts: decompress it first "
    "(unxz --keep)",
    b"BZh": "compressed with bzip2, which cannot be read in parts: decompress it first "
    "(bunzip2 --keep)",
    b"\x28\xb5\x2f\xfd": "compressed with zstd, which cannot be read in parts: decompress it "
    "first (unzstd)",
}
EMPTY = "a tar that holds no files"
"""The reason why a tar without members is no sample."""

TAR_ENDING = re.compile(
    r"\.(tar(\.(gz|bz2|xz|zst|lz4|lz|lzma|lzo|z|part|partial|crdownload))?|t(gz|bz2?|xz|zst))\Z",
    re.IGNORECASE,
)
"""The end of a name that promises a tar, compressed or not, or a part of one."""

is_sidecar = re.compile(r"[^/]\.(?:cls|json)\Z", re.IGNORECASE).search
"""Whether a member may give the class of a WebDataset sample by its name: a match, or None."""


def members(
    file: BinaryIO, title: str, start: int, end: int, note: Callable[[str], None]
) -> Iterator[tarfile.TarInfo]:
    """Every member but folders of a tar, with its name tidied.

    Args:
        file: what the tar is in. It may be moved between two members.
        title: what the tar is called in messages.
        start, end: bytes at which it begins and ends; ``_WITH_FILE`` where it ends with the file.
        note: is called where the tar has no end marker.

    Raises:
        TruncatedArchive: it ends inside a member.
        CorruptArchive: a header is damaged, or more follows the end marker.
    """
    # Opened for writing, it reads nothing by itself.
    tar = tarfile.TarFile(fileobj=io.BytesIO(), mode="w", encoding=CODEC[0], errors=CODEC[1])
    tar.fileobj = file
    at = start
    while at < end:
        file.seek(at)
        block = file.read(_BLOCK)
        if not block:
            break
        file.seek(at)
        if not any(block):
            # Tar programs stop at the end marker, and would not read what follows.
            if any(file.read(min(end - at, _PADDING_BYTES))):
                raise CorruptArchive(
                    f"{title}: more than padding follows its end marker at byte {at:,}: the "
                    "archive is damaged, fetch it again; or it is several in a row, unpack it "
                    "with tar --ignore-zeros and pack it anew"
                )
            return
        try:
            member = tarfile.TarInfo.fromtarfile(tar)
        except (tarfile.TarError, ValueError, LookupError) as error:
            raise CorruptArchive(
                f"{title}: no tar header at byte {at:,}, where one should be ({error}): the "
                "archive is damaged; compare its MD5 and fetch it again"
            ) from None
        is_whole = at < tar.offset <= end and member.size >= 0
        if is_whole and end == _WITH_FILE:
            file.seek(tar.offset - 1)
            is_whole = bool(file.read(1))
        if not is_whole:
            where = "" if end == _WITH_FILE else f" at byte {end:,}"
            raise TruncatedArchive(
                f"{title}: ends{where} inside {member.name!r}, which begins at byte {at:,}: the "
                "archive is truncated, fetch it again"
            )
        at = tar.offset
        if not member.isdir() and member.type not in _PASSED_OVER:
            member.name = posixpath.normpath(member.name)
            yield member
    note(f"{title}: no end marker after its last member: if it was cut, members are missing")


def index_tar(archive: Archive, tar: str, note: Callable[[str], None]) -> pa.Table:
    """The index of an archive, from the cache folder if it is the same that was indexed.

    ``tar`` is what the archive is called as the tar of a class, or empty. ``note`` is called with
    what takes long, before it is done, and with what is odd about the archive.

    Raises:
        NotAnArchive: it is no tar, or compressed by anything but gzip.
        CorruptArchive: it is damaged or truncated.
        SourceError: a tar of tars that is called the tar of a class.
        StoreError: it could not be read this time.
    """
    with contextlib.suppress(OSError, pa.ArrowException):
        return pq.read_table(readable(archive.kept(tar)), page_checksum_verification=True)
    with inflating(archive.uri):
        table = _index(archive, tar, note)
    content = io.BytesIO()
    pq.write_table(table, content, compression="zstd", write_page_checksum=True)
    with contextlib.suppress(OSError):
        archive.keep(content.getbuffer(), tar)
    return table


def _index(archive: Archive, tar: str, note: Callable[[str], None]) -> pa.Table:
    """As ``index_tar``, by one pass over the headers of the archive."""
    first = archive.read(0, _PROBE_BYTES) if archive.size else b""
    kind = tar_kind(first)
    if _is_empty_tar(archive.key, archive.size, first):
        return _table(tar, archive.key, [])
    if not kind:
        why = _unreadable(first) or "no tar archive: its content begins otherwise"
        raise NotAnArchive(f"{archive.uri}: {why}")
    is_packed = kind == "gzip"
    if is_packed:
        content = GzipContent(archive)
        note(
            "compressed archives are decompressed once to be indexed, at about 4 s a GB. After "
            f"that each image decompresses up to {content.spacing_bytes / 1e6:.0f} MB before it. "
            "gunzip --keep avoids both"
        )
        key, file, end = content.key, content.open(), _WITH_FILE
    else:
        if archive.size >= _WORTH_A_NOTE_BYTES:
            note(f"{archive.uri}: reading headers in {archive.size / 1e9:,.1f} GB, once")
        key, file, end = archive.key, archive.open(archive.size), archive.size
    rows: list[_Row] = []
    inner = _inner_tars(members(file, archive.uri, 0, end, note), file, rows)

    def index_inner(member: tarfile.TarInfo) -> pa.Table:
        if tar:
            raise SourceError(
                f"{archive.uri} is a tar of tars: shard one at a time, as in --source {archive.uri}"
            )
        start, end = member.offset_data, member.offset_data + member.size
        content = file if is_packed else archive.open(end)
        inside = members(content, f"{archive.uri}: {member.name}", start, end, note)
        rows = [_row(each, _refusal(each), _kept(content, each)) for each in inside]
        return _table(member.name, key, rows)

    # Tars in a compressed archive can only be read as they come.
    in_turn = is_packed or isinstance(archive.store, LocalStore)
    tables = list(in_order(index_inner, inner, 0 if in_turn else _THREADS))
    if is_packed:
        content.finish(file)
    return pa.concat_tables([_table(tar, key, rows), *tables])


def _inner_tars(
    found: Iterator[tarfile.TarInfo], file: BinaryIO, rows: list[_Row]
) -> Iterator[tarfile.TarInfo]:
    """The members that are tars; the others are added to ``rows``."""
    for member in found:
        problem, first = _refusal(member), b""
        if not problem:
            file.seek(member.offset_data)
            first = file.read(min(member.size, _PROBE_BYTES))
        kind = tar_kind(first)
        if kind == "tar" or _is_empty_tar(member.name, member.size, first):
            yield member
        else:
            content = _kept(file, member)
            rows.append(_row(member, problem or _unreadable(first, kind), content))


_Row = tuple[str, int, int, str | None, str | None, bytes | None]
"""Of a member: its name, offset, bytes, status and reason where it must not be opened, content."""


def _row(member: tarfile.TarInfo, problem: str | None, content: bytes | None) -> _Row:
    if problem:
        return member.name, member.offset_data, 0, "failed", problem, content
    return member.name, member.offset_data, member.size, None, None, content


def _kept(file: BinaryIO, member: tarfile.TarInfo) -> bytes | None:
    """The content of a member that an index keeps, so that it takes no request later."""
    if not is_sidecar(member.name) or member.size >= KEPT_BELOW_BYTES or _refusal(member):
        return None
    file.seek(member.offset_data)
    return file.read(member.size)


def _table(tar: str, container: str, rows: Sequence[_Row]) -> pa.Table:
    """The index of one tar; one without members is a row itself."""
    if not rows:
        return no_archive(tar, "skipped", EMPTY) if tar else INDEX.empty_table()
    names, *places = zip(*rows, strict=True)
    encoded = [os.fsencode(name) for name in unpacked(tar, names)]
    repeated = [[os.fsencode(text)] * len(rows) for text in (tar, container)]
    columns = zip(INDEX.names, [encoded, *repeated, *places], strict=True)
    return pa.table(dict(columns), schema=INDEX)


def no_archive(name: str, status: str, problem: str) -> pa.Table:
    """The index of a file that has no members: the file itself."""
    return _table("", "", [(name, 0, 0, status, problem, None)])


def unpacked(tar: str, names: Sequence[str]) -> list[str]:
    """Members of ``n01440764.tar`` as they are called below a folder ``n01440764``.

    Where all of them are in a folder of that name already, it is not put before them twice.
    """
    folder = TAR_ENDING.sub("", tar)
    above, slash, stem = folder.rpartition("/")
    before = above + slash
    if tar and not all(name.startswith(f"{stem}/") for name in names):
        before = f"{folder}/"
    return [before + name for name in names]


def tar_kind(first: bytes) -> str:
    """``tar`` or ``gzip`` for a tar, plain or compressed, by its first bytes; else empty.

    A damaged tar is one too, if its header has the magic of POSIX and GNU.
    """
    if _begins_tar(first):
        return "tar"
    try:
        content = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(first, _BLOCK)
    except zlib.error:
        return ""
    return "gzip" if _begins_tar(content) else ""


def _is_empty_tar(name: str, size: int, first: bytes) -> bool:
    """Whether a file is called a tar and consists of an end marker, as far as it was read.

    A larger file of zeros is a download that has not been filled.
    """
    is_small = 2 * _BLOCK <= size <= _PADDING_BYTES
    return is_small and not any(first) and TAR_ENDING.search(name) is not None


def _begins_tar(first: bytes) -> bool:
    with contextlib.suppress(tarfile.HeaderError):
        return bool(tarfile.TarInfo.frombuf(first[:_BLOCK], *CODEC))
    return first[257:262] == b"ustar"


def _unreadable(first: bytes, kind: str = "") -> str | None:
    """Why a compressed file is not read, and what to do."""
    if kind == "gzip":
        return (
            "a compressed tar in another tar: unpack the outer one and name the folder of its tars "
            "as the source"
        )
    return next((why for begin, why in _DECOMPRESS.items() if first.startswith(begin)), None)


def _refusal(member: tarfile.TarInfo) -> str | None:
    """Why a member must not be opened."""
    if leaves_archive(member.name):
        return "member whose path leads out of the archive"
    if member.issparse():
        return "sparse file in the archive"
    if not member.isreg():
        kind = f"member of unknown type {member.type.decode('latin-1')!r}"
        return f"{_KINDS.get(member.type, kind)} in the archive"
    return "member without a name" if member.name == "." else None


def leaves_archive(name: str) -> bool:
    """Whether a member's path, normalised, is absolute or leads out of its archive."""
    return name.startswith(("/", "../")) or name == ".."
