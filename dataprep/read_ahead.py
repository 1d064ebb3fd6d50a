"""Files of a source, in order, read while earlier ones are converted."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from dataprep.errors import ImageError, ImageTooLarge, SourceChanged
from dataprep.sources import Source


def read_ahead(
    source: Source, names: Sequence[str], sizes: Sequence[int], max_bytes: int
) -> Iterator[bytes | ImageError]:
    """Contents in order; as many reads in flight as the source asks for.

    Where the content of a file cannot be had, its error stands in its place.

    Raises:
        SourceChanged: a file is gone or has another size than planned.
        StoreError: a file could not be read this time.
    """
    if source.concurrency <= 1:
        for name, size in zip(names, sizes, strict=True):
            yield _read(source, name, size, max_bytes)
        return
    with ThreadPoolExecutor(source.concurrency, "read") as pool:
        pending: deque[Future[bytes | ImageError]] = deque()
        try:
            for name, size in zip(names, sizes, strict=True):
                pending.append(pool.submit(_read, source, name, size, max_bytes))
                if len(pending) > source.concurrency:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def _read(source: Source, name: str, size: int, max_bytes: int) -> bytes | ImageError:
    """A file's bytes, or why its content cannot be had; store errors are raised."""
    if size > max_bytes:
        return ImageTooLarge(
            f"{size:,} bytes are more than max_source_bytes allows ({max_bytes:,})"
        )
    try:
        data = source.read(name)
    except ImageError as error:
        return error
    if len(data) != size:
        raise SourceChanged(
            f"{name!r} had {size:,} bytes when the job was planned and has {len(data):,} now: "
            "restore it, or start anew with --overwrite"
        )
    return data
