"""A file that records are written to: a sink for ``TFRecordWriter`` and ``RecordIOWriter``."""

from __future__ import annotations

import io
import os

_GATHERED_BYTES = 2**20


class RecordFile(io.BufferedWriter):
    """Gathers what is written and hands it to the system a MiB at a time.

    >>> with RecordFile("records") as file:                             # doctest: +SKIP
    ...     writer = dataprep.TFRecordWriter(file)

    An existing file is replaced. Raises OSError as ``open`` and ``write`` do.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(io.FileIO(path, "wb"), _GATHERED_BYTES)
