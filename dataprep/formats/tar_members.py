"""PURE. The members of a tar in the ustar format: encode their headers, and read them.

A member is a header of 512 bytes, followed by its content. The content is padded with zeros to a
multiple of 512 bytes. A tar ends with 1,024 zero bytes.

Headers do not depend on the time or the machine. The modification time, the owner and the group are
0. The mode is 0644.

Reference: POSIX.1-2017, ``pax``, "ustar Interchange Format".
"""

from __future__ import annotations

import os
from typing import NamedTuple

from dataprep.errors import CorruptRecord, RecordError, TruncatedRecord
from dataprep.formats.protocol import Window, damaged

BLOCK_BYTES = 512
TRAILER = bytes(2 * BLOCK_BYTES)
"""The bytes that mark the end of a tar."""

LARGEST_MEMBER_BYTES = 8**11 - 1
"""The maximum size of a member, because a header stores the size in eleven octal digits."""

ZEROS = bytes(BLOCK_BYTES)
"""A block of zeros. Two of them end a tar."""

# Tars of other programs can have members that this package does not write.
OTHER_TARS_HINT = "--kind webdataset reads tars of other programs"

# The fields of a header, as slices of its bytes.
_NAME = slice(0, 100)
_SIZE = slice(124, 136)
_CHECKSUM = slice(148, 156)
_TYPE = slice(156, 157)
_MAGIC = slice(257, 263)
_PREFIX = slice(345, 500)

_MODE_AND_OWNERS = b"0000644\0" + 2 * b"0000000\0"
_TIME = b"00000000000\0"
# Type, link name, magic and version; then owner and group names, device numbers, the prefix of the
# name, and padding.
_AFTER_CHECKSUM = b"0" + bytes(100) + b"ustar\x0000" + bytes(2 * 32 + 2 * 8 + 155 + 12)
# For the checksum of a header, the bytes of the checksum itself count as spaces.
_FIXED_SUM = sum(_MODE_AND_OWNERS) + sum(_TIME) + sum(_AFTER_CHECKSUM) + 8 * ord(" ")


class Member(NamedTuple):
    """A member of a tar.

    Attributes:
        key: the part of the name before the first dot of the file name. The members of a sample
            have the same key.
        extension: the part after this dot, in lower case.
        start: the offset of the content in bytes.
        size: the size of the content in bytes.
    """

    key: bytes
    extension: bytes
    start: int
    size: int

    @property
    def end(self) -> int:
        """The offset at which the next header begins."""
        return self.start + self.size + -self.size % BLOCK_BYTES

    @property
    def name(self) -> str:
        """The name of the member, for messages."""
        return repr(os.fsdecode(self.key + b"." + self.extension))


def encode_member(name: bytes, content: bytes) -> bytes:
    """The header and the content of a member, padded with zeros."""
    return encode_header(name, len(content)) + content + bytes(-len(content) % BLOCK_BYTES)


def encode_header(name: bytes, size: int) -> bytes:
    """The ustar header of a member.

    Args:
        name: the name of the member, at most 100 bytes.
        size: the size of its content in bytes.

    Raises:
        RecordError: the content has 8 GiB or more, which the field for the size cannot hold.
    """
    if size > LARGEST_MEMBER_BYTES:
        raise RecordError(
            f"a member of {size} bytes is too large: a member of a tar must be below 8 GiB"
        )
    digits = b"%011o\0" % size
    checksum = b"%06o\0 " % (_FIXED_SUM + sum(name) + sum(digits))
    padded_name = name.ljust(100, b"\0")
    return b"".join((padded_name, _MODE_AND_OWNERS, digits, _TIME, checksum, _AFTER_CHECKSUM))


def member_at(data: Window, header_start: int, location: tuple[str, int, int]) -> Member:
    """The member whose header begins at byte ``header_start``.

    Args:
        data: the bytes of the shard.
        header_start: where the header begins.
        location: the name of the shard, and the number and the offset of the record, for errors.

    Raises:
        CorruptRecord: no header of a regular file begins there.
        TruncatedRecord: the shard ends inside the header or the content.
    """
    header = bytes(data[header_start : header_start + BLOCK_BYTES])
    if len(header) < BLOCK_BYTES:
        raise damaged(
            TruncatedRecord, *location, f"the file ends inside the header at byte {header_start}"
        )
    if not has_checksum(header):
        problem = f"the checksum of the header at byte {header_start} does not match"
        raise damaged(CorruptRecord, *location, problem)
    member_type = header[_TYPE]
    if member_type not in (b"0", b"\0"):
        problem = f"a member of type {member_type!r}"
        if member_type in (b"x", b"g"):
            problem = "a pax header"
        problem = f"{problem} at byte {header_start} ({OTHER_TARS_HINT})"
        raise damaged(CorruptRecord, *location, problem)
    size = _octal(header[_SIZE])
    if size is None:
        raise damaged(
            CorruptRecord, *location, f"the header at byte {header_start} has no octal size"
        )
    name = header[_NAME].partition(b"\0")[0]
    if header[_MAGIC] == b"ustar\0" and header[_PREFIX.start]:
        name = header[_PREFIX].partition(b"\0")[0] + b"/" + name
    folder, slash, base = name.rpartition(b"/")
    stem, _, extension = base.partition(b".")
    member = Member(folder + slash + stem, extension.lower(), header_start + BLOCK_BYTES, size)
    if member.end > len(data):
        problem = f"the {size} bytes of {member.name} run past the end of the file at {len(data)}"
        raise damaged(TruncatedRecord, *location, problem)
    return member


def has_checksum(header: bytes) -> bool:
    """Whether a block of a tar is a header with a correct checksum."""
    checksum = header[_CHECKSUM]
    # The bytes of the checksum itself count as spaces.
    expected = sum(header) - sum(checksum) + len(checksum) * ord(" ")
    return _octal(checksum) == expected


def _octal(field: bytes) -> int | None:
    """The octal number in a field of a header; None if the field contains anything else."""
    digits = field.strip(b" \0")
    if not digits.isdigit() or b"8" in digits or b"9" in digits:
        return None
    return int(digits, 8)
