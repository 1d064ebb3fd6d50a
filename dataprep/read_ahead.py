"""Files of a source, in order, read while earlier ones are converted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dataprep.errors import ImageError, ImageTooLarge, SourceChanged
from dataprep.ordered import in_order
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

    def read(planned: tuple[str, int]) -> bytes | ImageError:
        return _read(source, *planned, max_bytes)

    # One read at a time hides nothing: it needs no thread either.
    threads = source.concurrency if source.concurrency > 1 else 0
    return in_order(read, zip(names, sizes, strict=True), threads)


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
