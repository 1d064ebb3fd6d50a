"""PURE. The base class of the writers of TFRecord and RecordIO records.

Only a writer that gets a path opens a file, by ``RecordFile``. Jobs give an open sink instead.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from dataprep.formats.protocol import Buffer, Extent, Sink
from dataprep.formats.record_file import RecordFile


class PayloadWriter:
    """Writes payloads as records into a file or another sink.

    Args:
        sink: the path of a file, or an object to which bytes are written, such as a binary file. If
            the path exists, the file is replaced. A writer that gets a path must be closed; use it
            in a ``with`` statement.
        offset: the offset of the first record in bytes. Set it if records are appended to a file.

    Attributes:
        offset: the offset of the next record in bytes.

    Raises:
        OSError: the file cannot be opened or written.
        ValueError: ``sink`` is a path and ``offset`` is not 0.
    """

    def __init__(self, sink: Sink | str | os.PathLike[str], offset: int = 0) -> None:
        self._file: RecordFile | None = None
        if isinstance(sink, (str, os.PathLike)):
            if offset:
                raise ValueError(
                    f"an offset of {offset} for the new file {os.fspath(sink)!r}: to append "
                    "records to a file, open it in mode 'ab' and pass the file instead of its path"
                )
            self._file = RecordFile(sink)
            self._sink: Sink = self._file
        else:
            self._sink = sink
        self.offset = offset

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file if this writer has opened it. Other sinks stay open."""
        if self._file is not None:
            self._file.close()

    def write(self, payload: Buffer) -> Extent:
        """Write one record.

        Returns:
            The offset and the length of the encoded record in bytes.

        Raises:
            RecordError: the payload is too large for the format.
        """
        return self.write_parts((payload,))

    def write_parts(self, parts: Sequence[Buffer]) -> Extent:
        """Write one record whose payload consists of ``parts``. Subclasses implement this."""
        raise NotImplementedError

    def _advance(self, length: int) -> Extent:
        """Move ``offset`` behind a record of ``length`` bytes. Return its offset and its length."""
        offset = self.offset
        self.offset += length
        return offset, length
