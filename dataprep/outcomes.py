"""Files of a source converted, in order: an image each, or why there is none."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Sequence
from functools import partial
from typing import NamedTuple

from dataprep.errors import ImageError, ImageTooLarge
from dataprep.image import Converted, ImagePolicy, convert
from dataprep.in_hand import UNNOTED, InHand
from dataprep.ordered import in_order
from dataprep.plan import MAX_SHARD_BYTES
from dataprep.read_ahead import AHEAD_BYTES, read_ahead
from dataprep.sources import Located, Source

_RECORD_HEADROOM_BYTES = 1_000_000


class Outcome(NamedTuple):
    """A sample converted, or why not, and the SHA-256 of its file, empty where that was not had."""

    converted: Converted | ImageError
    sha256: str


def outcomes(
    source: Source,
    items: Sequence[Located],
    policy: ImagePolicy,
    threads: int = 0,
    in_hand: InHand = UNNOTED,
) -> Generator[Outcome, None, None]:
    """Of every item, in order. ``threads`` convert, with 0 the caller's; they bound what is held.

    ``in_hand`` is told of each while it is read, and while it is converted.

    Raises:
        SourceChanged: a file is gone or has another size than planned.
        StoreError: a file could not be read this time.
    """
    contents = read_ahead(source, items, policy.max_source_bytes, in_hand)
    return in_order(
        partial(_outcome, policy, in_hand),
        zip(contents, (item.name for item in items), strict=True),
        threads,
        ahead=2 * threads,
        weight=lambda read: len(read[0]) if isinstance(read[0], bytes) else 0,
        budget=AHEAD_BYTES,
    )


def convert_sample(data: bytes | ImageError, policy: ImagePolicy, name: str = "") -> Converted:
    """Convert the bytes of one file; its name may promise what they are not.

    Raises:
        ImageError: also where ``data`` already is one, or the record would be too large.
    """
    if isinstance(data, ImageError):
        raise data
    converted = convert(data, policy, name=name)
    if len(converted.data) > MAX_SHARD_BYTES - _RECORD_HEADROOM_BYTES:
        raise ImageTooLarge(f"a record of {len(converted.data):,} bytes is above 128 MB")
    return converted


def converted_or_why(
    data: bytes | ImageError, policy: ImagePolicy, name: str
) -> Converted | ImageError:
    """``convert_sample``, its error in place of an image."""
    try:
        return convert_sample(data, policy, name)
    except ImageError as error:
        return error


def digest_of(data: bytes | ImageError) -> str:
    """SHA-256 of a file that was read."""
    return "" if isinstance(data, ImageError) else hashlib.sha256(data).hexdigest()


def _outcome(policy: ImagePolicy, in_hand: InHand, read: tuple[bytes | ImageError, str]) -> Outcome:
    data, name = read
    in_hand.take(name)
    try:
        return Outcome(converted_or_why(data, policy, name), digest_of(data))
    finally:
        in_hand.lay_down()
