"""Large files written past the page cache, where the system can do that.

Through the cache each byte is copied into fresh pages, which then wait for the disk; this way the
disk takes it from where it lies. What asks for a page at once reads it from the disk.
"""

from __future__ import annotations

import errno
import fcntl
import os

from dataprep.stores.protocol import Buffer

_FROM_BYTES = 2**22
_BLOCK_BYTES = 4096
_NO_WAY = (errno.EINVAL, errno.EOPNOTSUPP)


def write_all(descriptor: int, data: Buffer) -> None:
    """Write ``data`` from the file's position on: whole blocks by ``O_DIRECT``, then the rest.

    The usual way where ``data`` is small or begins at no page, or where the file system knows no
    other. Raises OSError as ``os.write`` does.
    """
    view = memoryview(data).cast("B")
    if view.nbytes >= _FROM_BYTES:
        view = view[_written_directly(descriptor, view) :]
    while view:
        view = view[os.write(descriptor, view) :]


def _written_directly(descriptor: int, view: memoryview) -> int:
    """How many bytes the disk took from memory."""
    whole = view.nbytes // _BLOCK_BYTES * _BLOCK_BYTES
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    done = 0
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | getattr(os, "O_DIRECT", 0))
        while done < whole:
            done += os.write(descriptor, view[done:whole])
    except OSError as error:
        if error.errno not in _NO_WAY:
            raise
    finally:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags)
    return done
