"""PURE. Read the files in a tar that is in memory, and report it if some of them may be missing."""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterator

_READ_ERRORS = (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError, OverflowError)
"""The exceptions, besides its own, that ``tarfile`` raises for a damaged tar."""

_PADDING_BYTES = 2**20
"""The number of bytes from the end marker on that must be zeros, as in ``sources.tar_index``."""

_XZ_MAGIC = b"\xfd7zXZ\0"


def files_in_tar(data: bytes, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the content of each wanted file in a tar.

    Args:
        data: the tar, which may be compressed with gzip, bzip2 or xz.
        is_wanted: whether the file of this path is yielded. Links are never yielded.

    Raises:
        tarfile.TarError: the tar is damaged or truncated.
    """
    if data.startswith(_XZ_MAGIC):
        # A stream of xz never ends with a zero. Zeros after it are padding, which lzma refuses.
        data = data.rstrip(b"\0")
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:*") as tar:
            while (member := tar.next()) is not None:
                # tarfile keeps a list of all members. Clear it to save memory.
                tar.members = []  # type: ignore[attr-defined]
                content = tar.extractfile(member) if member.isfile() else None
                if content and is_wanted(member.name):
                    yield member.name, content.read()
            _require_end_marker(tar)
    except _READ_ERRORS as error:
        raise tarfile.ReadError(str(error)) from None


def _require_end_marker(tar: tarfile.TarFile) -> None:
    """Require that a tar ends with blocks of zeros where ``next`` has found no further member.

    ``next`` ends in the same way at a damaged header, and where a file was cut between two members.

    Raises:
        tarfile.ReadError: there is no end marker, or there are data after it.
    """
    file = tar.fileobj
    assert file is not None  # noqa: S101  for mypy
    file.seek(tar.offset)
    block = file.read(tarfile.BLOCKSIZE)
    if len(block) < tarfile.BLOCKSIZE or any(block):
        raise tarfile.ReadError(
            f"neither a file nor the end marker is at byte {tar.offset:,}, where one should be; "
            "fetch the archive again"
        )
    if _has_data(file.read):
        raise tarfile.ReadError(
            f"more than padding follows its end marker at byte {tar.offset:,}: the archive is "
            "damaged, fetch it again; or it consists of several archives, unpack it with "
            "tar --ignore-zeros and pack it again"
        )


def _has_data(read: Callable[[int], bytes]) -> bool:
    """Whether a byte other than zero follows within the length of the padding.

    Args:
        read: a function that returns the next bytes, at most the given number.
    """
    # If a read fails, all bytes of this read are lost. Therefore each read is one block.
    for _ in range(_PADDING_BYTES // tarfile.BLOCKSIZE):
        try:
            block = read(tarfile.BLOCKSIZE)
        except gzip.BadGzipFile as error:
            # Bytes after the compressed data are ignored, as by gzip(1). The other errors of this
            # type, such as a wrong checksum, are damage.
            if str(error).startswith("Not a gzipped file"):
                return False
            raise
        if any(block):
            return True
        if not block:
            return False
    return False
