"""Make the index of a tar archive: a table with the location of each member.

An index is kept in a cache folder for later runs. The content of a file decides whether it is a
tar, and whether it is compressed. Only for a tar without members, the name decides too. Tars inside
a tar are indexed, too, one level deep, which ILSVRC2012's tar of tars needs. Members that must not
be opened, such as links and paths out of the archive, are in the index with a reason.
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
from typing import BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from dataprep.errors import CorruptArchive, NotAnArchive, SourceError, TruncatedArchive
from dataprep.name_encoding import CODEC
from dataprep.output.samples_table import readable
from dataprep.sources.file_names import TAR_ENDING
from dataprep.sources.tar_archive import Archive, GzipContent, decompressing
from dataprep.stores.local import LocalStore
from dataprep.threaded_map import in_order

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
"""The columns of an index.

- name: the path of the member, as if each tar were unpacked into a folder.
- tar: the tar that contains the member and whose name may be the class: an inner tar, or one of
  several archives. Empty for the other members of an archive that is the whole source.
- container: the file, or its decompressed content, to which the offset refers.
- offset, bytes: the location of the member's content.
- status, problem: for a member that is not a sample, ``failed`` or ``skipped``, and the reason;
  null for other members.
- content: the content of a small member that may give the class of a sample (``is_sidecar``).
"""

MAX_CONTENT_BYTES = 4096
"""An index contains the content of sidecars (``is_sidecar``) that are smaller than this."""

EMPTY = "a tar that holds no files"
"""The reason why a tar without members is not a sample."""

is_sidecar = re.compile(r"[^/]\.(?:cls|json)\Z", re.IGNORECASE).search
"""Whether a member may give the class of a WebDataset sample, according to its name."""

_BLOCK_BYTES = tarfile.BLOCKSIZE
_PROBE_BYTES = 4096 - _BLOCK_BYTES
"""The number of bytes of a file or member that are read to recognise a tar.

Together with the header of a member, they are 4 KiB.
"""

_PADDING_BYTES = 2**20
"""The number of bytes from an end marker on that must be zeros.

Tar programs fill the last block of an archive with zeros. A tar without members is not larger.
"""

_END_OF_FILE = 2**63
"""The end of a tar in gzip data, whose size is not known."""

_THREADS = 16
_MIN_NOTE_BYTES = 10**9  # the headers of smaller archives are read in a short time
_TYPES_WITHOUT_CONTENT = {
    b"V",  # volume label
    b"A",  # access list
    b"D",  # GNU dump
    b"N",  # GNU rename
}
_TYPES_NOT_OPENED = {
    tarfile.LNKTYPE: "hard link",
    tarfile.SYMTYPE: "symbolic link",
    tarfile.CHRTYPE: "character device",
    tarfile.BLKTYPE: "block device",
    tarfile.FIFOTYPE: "FIFO",
}
_OTHER_COMPRESSIONS = {
    b"\xfd7zXZ\x00": "compressed with xz, which cannot be read in parts: decompress it first "
    "(unxz --keep)",
    b"BZh": "compressed with bzip2, which cannot be read in parts: decompress it first "
    "(bunzip2 --keep)",
    b"\x28\xb5\x2f\xfd": "compressed with zstd, which cannot be read in parts: decompress it "
    "first (unzstd)",
}


class _MemberRow(NamedTuple):
    """A member of a tar, with columns of ``INDEX``. ``size`` is the column ``bytes``."""

    name: str
    offset: int
    size: int
    status: str | None = None
    problem: str | None = None
    content: bytes | None = None


def members(
    file: BinaryIO, title: str, start: int, end: int, note: Callable[[str], None]
) -> Iterator[tarfile.TarInfo]:
    """Yield the members of a tar with normalised names, except folders and members without content.

    Args:
        file: the file that contains the tar. The caller may seek in it between two members.
        title: the tar, as messages call it.
        start: the first byte of the tar.
        end: the first byte after the tar; ``_END_OF_FILE`` if the tar ends with the file and the
            size of the file is not known.
        note: called with a message if the tar has no end marker.

    Raises:
        TruncatedArchive: the tar ends inside a member.
        CorruptArchive: a header is damaged, or there are data after the end marker.
    """
    # Opened for writing, a TarFile reads nothing before ``fromtarfile`` is called.
    tar = tarfile.TarFile(fileobj=io.BytesIO(), mode="w", encoding=CODEC[0], errors=CODEC[1])
    tar.fileobj = file
    position = start
    while position < end:
        file.seek(position)
        block = file.read(_BLOCK_BYTES)
        if not block:
            break
        file.seek(position)
        if not any(block):
            # Tar programs stop at the end marker, so that they would ignore data after it.
            if any(file.read(min(end - position, _PADDING_BYTES))):
                raise CorruptArchive(
                    f"{title}: more than padding follows its end marker at byte {position:,}: the "
                    "archive is damaged, fetch it again; or it consists of several archives, "
                    "unpack it with tar --ignore-zeros and pack it again"
                )
            return
        try:
            member = tarfile.TarInfo.fromtarfile(tar)
        except (tarfile.TarError, ValueError, LookupError) as error:
            raise CorruptArchive(
                f"{title}: no tar header at byte {position:,}, where one should be ({error}): the "
                "archive is damaged; compare its MD5 and fetch it again"
            ) from None
        # ``fromtarfile`` sets ``tar.offset`` to the first byte after the member.
        is_complete = position < tar.offset <= end and member.size >= 0
        if is_complete and end == _END_OF_FILE:
            file.seek(tar.offset - 1)
            is_complete = bool(file.read(1))
        if not is_complete:
            where = "" if end == _END_OF_FILE else f" at byte {end:,}"
            raise TruncatedArchive(
                f"{title}: ends{where} inside {member.name!r}, which begins at byte {position:,}: "
                "the archive is truncated, fetch it again"
            )
        position = tar.offset
        if not member.isdir() and member.type not in _TYPES_WITHOUT_CONTENT:
            member.name = posixpath.normpath(member.name)
            yield member
    note(f"{title}: no end marker after its last member: if it was cut, members are missing")


def index_tar(archive: Archive, tar: str, note: Callable[[str], None]) -> pa.Table:
    """Return the index of an archive.

    The index is read from the cache folder if this version of the archive was indexed before.
    Otherwise it is made, and stored there if the folder can be written.

    Args:
        archive: the archive.
        tar: the key of the archive if its name may be a class; else empty.
        note: called with a message before each step that takes long, and for unusual archives.

    Raises:
        NotAnArchive: the file is not a tar, or is compressed in another way than by gzip.
        CorruptArchive: the archive is damaged or truncated.
        SourceError: a tar of tars is one of several archives in a folder.
        ConfigError: the archive is compressed, and the cache folder cannot be written.
        StoreError: the store failed. Indexing the archive again may succeed.
    """
    with contextlib.suppress(OSError, pa.ArrowException):
        return pq.read_table(readable(archive.read_cache(tar)), page_checksum_verification=True)
    with decompressing(archive.uri):
        table = _read_index(archive, tar, note)
    content = io.BytesIO()
    pq.write_table(table, content, compression="zstd", write_page_checksum=True)
    with contextlib.suppress(OSError):
        archive.write_cache(content.getbuffer(), tar)
    return table


def _read_index(archive: Archive, tar: str, note: Callable[[str], None]) -> pa.Table:
    """Make the index by one pass over the headers. The arguments are those of ``index_tar``."""
    head = archive.read(0, _PROBE_BYTES) if archive.size else b""
    if _is_empty_tar(archive.key, archive.size, head):
        return _table(tar, archive.key, [])
    compression = tar_compression(head)
    if not compression:
        reason = _unreadable_reason(head) or "no tar archive: its content begins otherwise"
        raise NotAnArchive(f"{archive.uri}: {reason}")
    if compression == "gzip":
        return _read_compressed(archive, tar, note)
    if archive.size >= _MIN_NOTE_BYTES:
        note(f"{archive.uri}: reading headers in {archive.size / 1e9:,.1f} GB, once")
    file = archive.open(archive.size)
    rows: list[_MemberRow] = []
    inner_tars = _inner_tars(members(file, archive.uri, 0, archive.size, note), file, rows)

    def index_inner(member: tarfile.TarInfo) -> pa.Table:
        # Each call opens its own file, because several calls run at the same time.
        inner_file = archive.open(member.offset_data + member.size)
        return _index_inner_tar(archive, tar, archive.key, inner_file, member, note)

    # From a disk, one thread reads as fast as several.
    threads = 0 if isinstance(archive.store, LocalStore) else _THREADS
    tables = [*in_order(index_inner, inner_tars, threads)]
    return pa.concat_tables([_table(tar, archive.key, rows), *tables])


def _read_compressed(archive: Archive, tar: str, note: Callable[[str], None]) -> pa.Table:
    """Make the index of a gzip archive, and store its points (``tar_archive``).

    The arguments are those of ``index_tar``.
    """
    content = GzipContent(archive)
    note(
        "compressed archives are decompressed once to be indexed, at about 4 s per GB. After "
        f"that, reading an image decompresses up to {content.spacing_bytes / 1e6:.0f} MB before "
        "it. gunzip --keep avoids both"
    )
    file = content.open()
    rows: list[_MemberRow] = []
    # Inner tars are read in their order, because going back in compressed data is slow.
    inner_tars = _inner_tars(members(file, archive.uri, 0, _END_OF_FILE, note), file, rows)
    tables = [
        _index_inner_tar(archive, tar, content.key, file, member, note) for member in inner_tars
    ]
    content.finish(file)
    return pa.concat_tables([_table(tar, content.key, rows), *tables])


def _index_inner_tar(
    archive: Archive,
    tar: str,
    container: str,
    file: BinaryIO,
    member: tarfile.TarInfo,
    note: Callable[[str], None],
) -> pa.Table:
    """The index of a tar inside an archive.

    Args:
        archive: the outer archive.
        tar: as for ``index_tar``.
        container: the container to which the offsets refer.
        file: a file with the content of the outer archive.
        member: the inner tar.
        note: as for ``index_tar``.

    Raises:
        SourceError: the outer archive is one of several in a folder.
    """
    if tar:
        raise SourceError(
            f"{archive.uri} is a tar of tars: shard one at a time, as in --source {archive.uri}"
        )
    start = member.offset_data
    title = f"{archive.uri}: {member.name}"
    rows = []
    for inner_member in members(file, title, start, start + member.size, note):
        content = _sidecar_content(file, inner_member)
        rows.append(_member_row(inner_member, _refusal_reason(inner_member), content))
    return _table(member.name, container, rows)


def _inner_tars(
    outer_members: Iterator[tarfile.TarInfo], file: BinaryIO, rows: list[_MemberRow]
) -> Iterator[tarfile.TarInfo]:
    """Yield the members that are tars. While iterating, add all other members to ``rows``.

    Args:
        outer_members: the members of the outer archive.
        file: a file with the content of the outer archive.
        rows: the rows of the index for the outer archive.
    """
    for member in outer_members:
        problem, head = _refusal_reason(member), b""
        if not problem:
            file.seek(member.offset_data)
            head = file.read(min(member.size, _PROBE_BYTES))
        compression = tar_compression(head)
        if compression == "none" or _is_empty_tar(member.name, member.size, head):
            yield member
        else:
            content = _sidecar_content(file, member)
            rows.append(
                _member_row(member, problem or _unreadable_reason(head, compression), content)
            )


def _member_row(member: tarfile.TarInfo, problem: str | None, content: bytes | None) -> _MemberRow:
    """The row of a member, which fails if it has a problem."""
    if problem:
        return _MemberRow(member.name, member.offset_data, 0, "failed", problem, content)
    return _MemberRow(member.name, member.offset_data, member.size, content=content)


def _sidecar_content(file: BinaryIO, member: tarfile.TarInfo) -> bytes | None:
    """The content of a small sidecar, so that no later request reads it; None for other members."""
    if not is_sidecar(member.name) or member.size >= MAX_CONTENT_BYTES or _refusal_reason(member):
        return None
    file.seek(member.offset_data)
    return file.read(member.size)


def _table(tar: str, container: str, rows: Sequence[_MemberRow]) -> pa.Table:
    """Make the index of one tar.

    If the tar has no members, the only row is the tar itself; without ``tar``, there is no row.
    """
    if not rows:
        return index_without_members(tar, "skipped", EMPTY) if tar else INDEX.empty_table()
    names = paths_in_folder(tar, [row.name for row in rows])
    columns = {
        "name": [os.fsencode(name) for name in names],
        "tar": [os.fsencode(tar)] * len(rows),
        "container": [os.fsencode(container)] * len(rows),
        "offset": [row.offset for row in rows],
        "bytes": [row.size for row in rows],
        "status": [row.status for row in rows],
        "problem": [row.problem for row in rows],
        "content": [row.content for row in rows],
    }
    return pa.table(columns, schema=INDEX)


def index_without_members(name: str, status: str, problem: str) -> pa.Table:
    """Make the index of a file that has no members. The only row is the file itself."""
    return _table("", "", [_MemberRow(name, 0, 0, status, problem)])


def paths_in_folder(tar: str, names: Sequence[str]) -> list[str]:
    """The paths of members as if their tar were unpacked into a folder with its name.

    The members of ``n01440764.tar`` are below the folder ``n01440764``. If all members are already
    in a folder with that name, the folder is not repeated.
    """
    folder = TAR_ENDING.sub("", tar)
    above, slash, stem = folder.rpartition("/")
    prefix = above + slash
    if tar and not all(name.startswith(f"{stem}/") for name in names):
        prefix = f"{folder}/"
    return [prefix + name for name in names]


def tar_compression(head: bytes) -> str:
    """The compression of a tar: ``none`` or ``gzip``. Empty if the file is not a tar.

    Args:
        head: the first bytes of the file, which decide.
    """
    if _begins_tar(head):
        return "none"
    try:
        content = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, _BLOCK_BYTES)
    except zlib.error:
        return ""
    return "gzip" if _begins_tar(content) else ""


def _is_empty_tar(name: str, size_bytes: int, head: bytes) -> bool:
    """Whether a file has the name of a tar and contains only zeros, as far as it was read.

    A tar without members consists of an end marker, which is two blocks of zeros, and of padding. A
    larger file of zeros is a download that has reserved its space but is not complete.
    """
    is_small = 2 * _BLOCK_BYTES <= size_bytes <= _PADDING_BYTES
    return is_small and not any(head) and TAR_ENDING.search(name) is not None


def _begins_tar(head: bytes) -> bool:
    """Whether the first bytes of a file are the header of a member.

    A damaged header counts too if it contains the magic bytes ``ustar`` of POSIX and GNU.
    """
    with contextlib.suppress(tarfile.HeaderError):
        return bool(tarfile.TarInfo.frombuf(head[:_BLOCK_BYTES], *CODEC))
    return head[257:262] == b"ustar"


def _unreadable_reason(head: bytes, compression: str = "") -> str | None:
    """Why a compressed file cannot be read, and what to do; None if it is not compressed."""
    if compression == "gzip":
        return (
            "a compressed tar in another tar: unpack the outer tar and name the folder of its tars "
            "as the source"
        )
    for start, reason in _OTHER_COMPRESSIONS.items():
        if head.startswith(start):
            return reason
    return None


def _refusal_reason(member: tarfile.TarInfo) -> str | None:
    """Why a member must not be opened; None if it may be opened."""
    if leaves_archive(member.name):
        return "member whose path leads out of the archive"
    if member.issparse():
        return "sparse file in the archive"
    if not member.isreg():
        unknown = f"member of unknown type {member.type.decode('latin-1')!r}"
        return f"{_TYPES_NOT_OPENED.get(member.type, unknown)} in the archive"
    return "member without a name" if member.name == "." else None


def leaves_archive(name: str) -> bool:
    """Whether the normalised path of a member is absolute or leads out of the archive."""
    return name.startswith(("/", "../")) or name == ".."
