"""Names in a tar that say that they are longer than memory."""

from __future__ import annotations

import gzip
import io
import tarfile

import pytest

from dataprep.tar_members import BoundedMember


def _tar(kind: bytes, told_bytes: int, content: bytes = b"") -> bytes:
    """One header that is read whole, then its content."""
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = kind, told_bytes
    return gzip.compress(header.tobuf(tarfile.GNU_FORMAT) + content)


def _names(data: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(data), tarinfo=BoundedMember) as tar:
        return tar.getnames()


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_a_name_of_a_size_that_none_has_is_refused(kind: bytes) -> None:
    """Before there is room made for it."""
    with pytest.raises(tarfile.ReadError, match=r"of 1,125,899,906,842,624 bytes"):
        _names(_tar(kind, 2**50))


def test_long_names_are_read() -> None:
    """Of both kinds."""
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz", format=form) as tar:
            tar.addfile(tarfile.TarInfo("x" * 5000))
        assert _names(buffer.getvalue()) == ["x" * 5000]
