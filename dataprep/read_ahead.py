"""Files of a source, in order, read while earlier ones are converted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dataprep.errors import ImageError, ImageTooLarge, JobError, SourceChanged
from dataprep.in_hand import UNNOTED, InHand
from dataprep.ordered import in_order
from dataprep.sources import Located, Source

AHEAD_BYTES = 256 * 2**20
"""Of files that are read or wait to be converted: large ones come fewer at a time."""


def read_ahead(
    source: Source, items: Iterable[Located], max_bytes: int, in_hand: InHand = UNNOTED
) -> Iterator[bytes | ImageError]:
    """Contents in order; as many reads in flight as the source asks for, of 256 MiB at most.

    Where the content of a file cannot be had, its error stands in its place. ``in_hand`` is told
    of each file while it is read.

    Raises:
        SourceChanged: a file is gone or has another size than planned.
        StoreError: a file could not be read this time.
    """

    def read(item: Located) -> bytes | ImageError:
        in_hand.reach(item.name)
        try:
            return read_one(source, item, max_bytes)
        finally:
            in_hand.reached()

    # One read at a time hides nothing: it needs no thread either.
    threads = source.concurrency if source.concurrency > 1 else 0
    return in_order(
        read,
        items,
        threads,
        weight=lambda item: item.bytes if item.bytes <= max_bytes else 0,
        budget=AHEAD_BYTES,
    )


def read_one(source: Source, item: Located, max_bytes: int) -> bytes | ImageError:
    """A file's bytes, or why its content cannot be had.

    Raises:
        SourceChanged, StoreError: as ``read_ahead``.
        JobError: the source asks for an end, which would pass for one in order, or gives no bytes.
    """
    if item.bytes > max_bytes:
        return ImageTooLarge(
            f"{item.bytes:,} bytes are more than max_source_bytes allows ({max_bytes:,})"
        )
    try:
        data = source.read(item)
    except ImageError as error:
        return error
    except (SystemExit, GeneratorExit, StopIteration) as error:
        raise JobError(
            f"{source.uri}: reading {item.name!r} ended in {type(error).__name__}: {error}"
        ) from error
    if not isinstance(data, bytes):
        kind = type(data).__name__
        raise JobError(
            f"{source.uri}: reading {item.name!r} gave {kind}, where bytes are asked for"
        )
    if len(data) != item.bytes:
        raise SourceChanged(
            f"{item.name!r} had {item.bytes:,} bytes when the job was planned and has "
            f"{len(data):,} now: restore it, or start anew with --overwrite"
        )
    return data
