"""PURE. Read the files in a tar that is in memory, and report it if some of them may be missing."""

from __future__ import annotations

import io
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterator

_READ_ERRORS = (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError, OverflowError)
"""The exceptions, besides its own, that ``tarfile`` raises for a damaged tar."""

_PADDING_BYTES = 2**20
"""The number of bytes from the end marker on that must be zeros, as in ``sources.tar_index``."""


def files_in_tar(data: bytes, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the content of each wanted file in a tar.

    Args:
        data: the tar, which may be compressed with gzip, bzip2 or xz.
        is_wanted: whether the file of this path is yielded. Links are never yielded.

    Raises:
        tarfile.TarError: the tar is damaged or truncated.
    """
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
    rest = file.read(_PADDING_BYTES)
    if len(rest) < tarfile.BLOCKSIZE or any(rest):
        raise tarfile.ReadError(
            f"neither a file nor the end marker is at byte {tar.offset:,}, where one should be; "
            "fetch the archive again"
        )
