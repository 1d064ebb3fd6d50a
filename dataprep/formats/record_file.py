"""A buffered file for records."""

from __future__ import annotations

import io
import os

_BUFFER_BYTES = 2**20


class RecordFile(io.BufferedWriter):
    """A file that gathers small writes and passes them to the operating system 1 MiB at a time.

    >>> with RecordFile("photos.tfrecord") as file:                     # doctest: +SKIP
    ...     writer = dataprep.TFRecordWriter(file)

    The writers open such a file themselves if they get a path, so that
    ``dataprep.TFRecordWriter("photos.tfrecord")`` is enough. An existing file is replaced.

    Args:
        path: the file.

    Raises:
        OSError: the file cannot be opened or written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(io.FileIO(path, "wb"), _BUFFER_BYTES)
