"""How a JPEG's components are sampled: one byte each, across and down (T.81, B.2.2)."""

from __future__ import annotations

_NAMES = {
    b"\x11\x11\x11": "444",
    b"\x21\x11\x11": "422",
    b"\x22\x11\x11": "420",
    b"\x12\x11\x11": "440",
    b"\x41\x11\x11": "411",
}
# The same in other words, which TurboJPEG knows too.
_ALSO_USUAL = frozenset(
    {b"\x22\x12\x12", b"\x22\x21\x21"} | {bytes([same] * 3) for same in (0x12, 0x13, 0x21, 0x31)}
)
_OF_FOUR = frozenset(
    {bytes([ink, 0x11, 0x11, ink]) for ink in (0x11, 0x12, 0x21, 0x22, 0x41)}
    | {bytes([same] * 4) for same in (0x12, 0x21)}
)


def name(sampling: bytes) -> str:
    """Such as ``420``; empty where it has no such name."""
    return _NAMES.get(sampling, "")


def is_usual(sampling: bytes) -> bool:
    """Whether TurboJPEG takes it; libjpeg itself, which most decoders use, takes almost any."""
    return (
        len(sampling) == 1 or sampling in _NAMES or sampling in _ALSO_USUAL or sampling in _OF_FOUR
    )
