"""PURE. What is said of rates that their link, volume or device cannot give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from iobench.result import Finding

BEYOND, ABOVE = "beyond-limit", "above-guaranteed"


def findings(rows: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """One a place: by its fastest rate."""
    for row in _fastest(rows, "beyond"):
        yield Finding(
            BEYOND,
            "warning",
            f"{row['place']} gave {row['mb_per_s']['median']:,.0f} MB/s ({row['what']}), and "
            f"{row['limit_of']} carries {row['limit_mb_per_s']:,.0f} at most "
            f"({row['limit_source']})",
            f"a cache gave the rest: {_advice(row)}",
        )
    for row in _fastest(rows, "above-guaranteed"):
        yield Finding(
            ABOVE,
            "info",
            f"{row['place']} gave {row['mb_per_s']['median']:,.0f} MB/s ({row['what']}), and "
            f"{row['limit_of']} is {row['limit_mb_per_s']:,.0f} ({row['limit_source']})",
            "more than what is guaranteed lasts as long as the credits do: measure for an hour "
            "before you count on it",
        )


def _fastest(rows: Sequence[Mapping[str, Any]], verdict: str) -> Iterator[Mapping[str, Any]]:
    best: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in rows:
        key = (row["side"], row["place"])
        if row["verdict"] == verdict and (
            key not in best or row["mb_per_s"]["median"] > best[key]["mb_per_s"]["median"]
        ):
            best[key] = row
    yield from best.values()


def _advice(row: Mapping[str, Any]) -> str:
    if row["by"] == "disk":
        return "use a larger file_bytes, or correct the limit under limits"
    if row["side"] == "store":
        return "read more data than any cache on the way holds, or correct the limit under limits"
    return "use data of at least 5 times the memory, or correct the limit under limits"
