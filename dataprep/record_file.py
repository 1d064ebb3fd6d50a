"""A file that records are written to: a sink for ``TFRecordWriter`` and ``RecordIOWriter``."""

from __future__ import annotations

import os

from dataprep.formats import Buffer

_GATHERED_BYTES = 2**20
_MOST_PARTS = 1000  # IOV_MAX is 1024


class RecordFile:
    """Gathers what is written and hands it to the system a MiB at a time, not copied.

    >>> with RecordFile("records") as file:                             # doctest: +SKIP
    ...     writer = dataprep.TFRecordWriter(file)

    ``bytes`` are kept until then, other buffers copied, since their owners may change them. An
    existing file is replaced. Raises OSError as ``open`` and ``write`` do; what was not yet
    handed over when the body of ``with`` raises is lost.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = open(path, "wb", buffering=0)  # noqa: SIM115, PTH123  closed by close
        self._parts: list[bytes] = []
        self._bytes = 0

    def write(self, data: Buffer) -> None:
        """Take ``data``, to be in the file after ``flush`` or ``close``."""
        part = data if isinstance(data, bytes) else bytes(data)
        self._parts.append(part)
        self._bytes += len(part)
        if self._bytes >= _GATHERED_BYTES or len(self._parts) >= _MOST_PARTS:
            self.flush()

    def flush(self) -> None:
        """Hand over what was gathered."""
        parts, left = self._parts, self._bytes
        self._parts, self._bytes = [], 0
        if not parts:
            return
        written = os.writev(self._file.fileno(), parts)
        if written < left:  # as where the disk is nearly full, or beyond 2 GiB
            rest = memoryview(b"".join(parts))[written:]
            while rest:
                rest = rest[self._file.write(rest) :]

    def close(self) -> None:
        """Flush, and let go of the file."""
        try:
            self.flush()
        finally:
            self._file.close()

    def __enter__(self) -> RecordFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._parts, self._bytes = [], 0
        self.close()
