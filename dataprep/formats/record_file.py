"""A file with a large buffer, to which records are written."""

from __future__ import annotations

import io
import os

_BUFFER_BYTES = 2**20


class RecordFile(io.BufferedWriter):
    """A file that collects small writes and passes them to the operating system 1 MiB at a time.

    >>> with RecordFile("photos.tfrecord") as file:                     # doctest: +SKIP
    ...     writer = dataprep.TFRecordWriter(file)

    If the path exists, the file is replaced. A writer that gets a path opens such a file itself.
    Therefore ``dataprep.TFRecordWriter("photos.tfrecord")`` is usually enough.

    Args:
        path: the path of the file.

    Raises:
        OSError: the file cannot be opened or written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(io.FileIO(path, "wb"), _BUFFER_BYTES)
