"""The part of a writer of records that is the same for TFRecord and RecordIO."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from dataprep.formats.protocol import Buffer, Extent, Sink
from dataprep.formats.record_file import RecordFile


class PayloadWriter:
    """Writes payloads as records, one after the other.

    Args:
        sink: the path of a file, which is replaced if it exists, or an object that takes bytes,
            such as a binary file. A writer that has opened a file must be closed. Use it in a
            ``with`` statement.
        offset: the offset of the first record in bytes. Set it if the sink is a file to which
            records are appended.

    Attributes:
        offset: the offset of the next record in bytes.

    Raises:
        OSError: the file cannot be opened or written.
        ValueError: ``offset`` is given for a path.
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
        """Close the file that this writer has opened. Another sink stays open."""
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
        """Write one record whose payload consists of ``parts``. Each format implements it."""
        raise NotImplementedError

    def _advance(self, length: int) -> Extent:
        """Count a record of ``length`` bytes; return its offset and its length."""
        offset = self.offset
        self.offset += length
        return offset, length
