"""Headers of tars that ``tarfile`` reads, without room for as many bytes as one says a name has."""

from __future__ import annotations

import tarfile

_LONGEST_BYTES = 2**20
_READ_WHOLE = {
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
}


class BoundedMember(tarfile.TarInfo):
    """For ``tarfile.open(tarinfo=...)``: long names and pax records of at most 1 MiB.

    In a compressed tar Python makes room for all of them before it reads the first.
    """

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> BoundedMember:
        """As TarInfo's. Raises ``tarfile.ReadError`` where a name is of a size that none has."""
        found = super().frombuf(buf, encoding, errors)
        if found.type in _READ_WHOLE and not 0 <= found.size <= _LONGEST_BYTES:
            raise tarfile.ReadError(f"a name, or a pax record, of {found.size:,} bytes")
        return found
