"""Errors of a file system as errors of this package, which say what to do."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

from dataprep.errors import ObjectNotFound, PermissionRefused, StoreError, StoreFull

_FULL = (errno.ENOSPC, errno.EDQUOT)
_TOO_MANY = (errno.EMFILE, errno.ENFILE)
_NOWHERE = (errno.ENAMETOOLONG, errno.ELOOP)


@contextlib.contextmanager
def translated(name: str) -> Iterator[None]:
    """OSError as an error of this package, which says what to do."""
    try:
        yield
    except StoreError:
        raise
    except FileNotFoundError:
        raise ObjectNotFound(f"no such file: {name!r}") from None
    except PermissionError as error:
        raise PermissionRefused(f"permission denied: {error.filename or name!r}") from None
    except OSError as error:
        if error.errno in _FULL:
            raise StoreFull(
                f"no space left while writing {name!r}: free some and run again, it resumes"
            ) from None
        if error.errno == errno.EROFS:
            raise PermissionRefused(
                f"{error.filename or name!r}: the disk is read-only: mount it for writing, or "
                "choose another place"
            ) from None
        if error.errno == errno.EFBIG:
            raise StoreFull(
                f"no space left while writing {name!r}: files may not be larger here (ulimit -f)"
            ) from None
        if error.errno in _TOO_MANY:
            raise StoreError(
                f"{name!r}: too many open files: raise the limit (ulimit -n 4096), or take fewer "
                "workers, and run again"
            ) from None
        raise StoreError(f"{name!r}: {error.strerror or error}") from None


@contextlib.contextmanager
def reading(key: str) -> Iterator[None]:
    """``translated``; what cannot be a file, such as a directory, is no object."""
    with translated(key):
        try:
            yield
        except (IsADirectoryError, NotADirectoryError):
            raise FileNotFoundError from None
        except OSError as error:
            if error.errno not in _NOWHERE:
                raise
            raise ObjectNotFound(f"no such file: {key!r} ({error.strerror})") from None
