"""Bodies on their way through the proxy: each function passes blocks on, and disturbs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from iobench.faults.kinds import Direction, Fault, FlipByte, RateLimit, Stall, Truncate
from iobench.faults.pacing import Pacer


class TruncatedError(Exception):
    """A ``Truncate`` ended the body early; what was passed on so far stays passed on."""


def flip(blocks: Iterable[bytes], offset: int, mask: int) -> Iterator[bytes]:
    """XOR one byte with ``mask``; a negative ``offset`` holds back that many bytes until the end.

    >>> b"".join(flip([b"ab", b"cd"], -1, 0x20))
    b'abcD'
    """
    return (
        _flip_from_start(blocks, offset, mask)
        if offset >= 0
        else _flip_from_end(blocks, -offset, mask)
    )


def _flip_from_start(blocks: Iterable[bytes], offset: int, mask: int) -> Iterator[bytes]:
    passed = 0
    for block in blocks:
        at = offset - passed
        passed += len(block)
        yield _xor(block, at, mask) if 0 <= at < len(block) else block


def _flip_from_end(blocks: Iterable[bytes], distance: int, mask: int) -> Iterator[bytes]:
    held = bytearray()
    for block in blocks:
        held += block
        if ready := held[:-distance]:
            yield bytes(ready)
            del held[:-distance]
    if held:
        yield _xor(bytes(held), 0, mask) if len(held) == distance else bytes(held)


def _xor(block: bytes, at: int, mask: int) -> bytes:
    return block[:at] + bytes([block[at] ^ mask]) + block[at + 1 :]


def truncate(blocks: Iterable[bytes], after_bytes: int) -> Iterator[bytes]:
    """Pass ``after_bytes``, and raise ``TruncatedError`` if there is more."""
    left = after_bytes
    for block in blocks:
        if len(block) > left:
            if left:
                yield block[:left]
            raise TruncatedError
        left -= len(block)
        yield block


def stall(blocks: Iterable[bytes], after_bytes: int, pause: Callable[[], None]) -> Iterator[bytes]:
    """Pass ``after_bytes``, and pause once before the byte that follows them."""
    left = after_bytes
    paused = False
    for block in blocks:
        if paused or len(block) <= left:
            left -= len(block)
            yield block
            continue
        if left:
            yield block[:left]
        pause()
        paused = True
        yield block[left:]


def disturb(
    blocks: Iterable[bytes],
    faults: Sequence[Fault],
    direction: Direction,
    *,
    sleep: Callable[[float], None],
    pacer: Callable[[RateLimit, Direction], Pacer],
) -> Iterable[bytes]:
    """Put a body through all faults that concern bodies in this direction.

    It is changed first, then cut, stalled and paced, in whatever order the faults are given.
    """
    for fault in faults:
        if isinstance(fault, FlipByte) and fault.direction == direction:
            blocks = flip(blocks, fault.offset, fault.mask)
    for fault in faults:
        if isinstance(fault, Truncate) and direction == "download":
            blocks = truncate(blocks, fault.after_bytes)
    for fault in faults:
        if isinstance(fault, Stall) and fault.direction == direction:
            blocks = stall(blocks, fault.after_bytes, partial(sleep, fault.s))
    for fault in faults:
        if isinstance(fault, RateLimit):
            blocks = pacer(fault, direction)(blocks)
    return blocks
