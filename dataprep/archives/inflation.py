"""PURE. What it costs to read gzip files in place, in words."""

from __future__ import annotations

from collections.abc import Sequence

from dataprep.archives.gzip_points import spacing_for

_INFLATED_PER_S = 250e6
"""Compressed bytes of photographs that one core inflates in a second."""


def cost_in_words(sizes: Sequence[int], *, at_most: bool = False) -> str:
    """That gzip files of ``sizes`` bytes are decompressed, how long that takes, and a way out.

    ``at_most`` is for files of which perhaps not all are compressed.
    """
    total, reach = sum(sizes), spacing_for(max(sizes))
    extent = ("up to " if at_most else "") + _size(total)
    if len(sizes) > 1:
        extent += f" in {len(sizes):,} files"
    return (
        f"compressed: {extent} are decompressed once, about {_time(total / _INFLATED_PER_S)} of "
        f"one processor. After that, each image read costs up to {reach >> 20} MiB of "
        "decompression before it; gunzip --keep would spare both"
    )


def _size(count: int) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6)):
        if count >= factor:
            return f"{count / factor:,.1f} {unit}"
    return f"{count / 1e3:,.1f} kB"


def _time(seconds: float) -> str:
    return f"{seconds / 60:,.0f} min" if seconds >= 90 else f"{max(1, round(seconds))} s"
