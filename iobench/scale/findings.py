"""PURE. Loader processes that share so much that more of them bring little."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from iobench.result import Finding

_WORTH = 0.8


def findings(rows: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """The point whose processes share most, where its whole interval is below 80 %."""
    short = [row for row in rows if row["efficiency"] and row["efficiency"]["high"] < _WORTH]
    if not short:
        return
    row = min(short, key=lambda row: row["efficiency"]["median"])
    found, count = row["efficiency"], int(row["processes"])
    named = f"{row['loader']} from {row['data']}, {row['workers']} workers each"
    yield Finding(
        "processes-share",
        "info",
        f"{named}: {count} processes give {found['median'] * count:,.2f} "
        f"times what one gives ({found['low'] * count:,.2f} to {found['high'] * count:,.2f})",
        "plan machines by what their processes give together (iobench scale); where cores are "
        "idle meanwhile, it is storage or memory that they share",
    )
