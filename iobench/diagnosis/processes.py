"""PURE. Loader processes that share so much that more of them bring little: by
``summary.processes``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from iobench.diagnosis.rule import Rule
from iobench.diagnosis.sources import OURS
from iobench.result import Finding

WORTH = 0.8

PROCESSES_SHARE = Rule(
    "processes-share",
    "Loader processes share what they live on",
    "setting",
    "info",
    f"n processes together give less than {WORTH:.0%} of n times one, by all of its interval",
    "summary.processes: efficiency, the rate of all / (n times the rate of one)",
    "plan machines by what their processes give together (iobench scale); where cores are idle "
    "meanwhile, it is storage or memory that they share",
    OURS,
)
RULES = (PROCESSES_SHARE,)


def findings(rows: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """The point whose processes share most."""
    short = [row for row in rows if row["efficiency"] and row["efficiency"]["high"] < WORTH]
    if not short:
        return
    row = min(short, key=lambda row: row["efficiency"]["median"])
    found, count = row["efficiency"], int(row["processes"])
    yield PROCESSES_SHARE.found(
        f"{row['loader']} from {row['data']}, {row['workers']} workers each: {count} processes "
        f"give {found['median'] * count:,.2f} times what one gives ({found['low'] * count:,.2f} "
        f"to {found['high'] * count:,.2f})"
    )
