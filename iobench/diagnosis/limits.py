"""PURE. Rates that their link, volume or device cannot give: by ``summary.roofline``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from iobench.diagnosis.rule import Rule
from iobench.diagnosis.sources import OURS
from iobench.result import Finding

BEYOND_LIMIT = Rule(
    "beyond-limit",
    "Faster than what is on the way can carry: a cache",
    "measurement",
    "warning",
    "direct or cold reads, or a store's answers, above what link, volume, network or your own "
    "figure allow",
    "summary.roofline: mb_per_s, limit_mb_per_s, limit_of, limit_source",
    "a cache gave the rest: read more than it holds (file_bytes, 5 times the memory), or correct "
    "the limit under limits",
    OURS,
)
ABOVE_GUARANTEED = Rule(
    "above-guaranteed",
    "Faster than what is guaranteed",
    "measurement",
    "info",
    "rates above an instance's guaranteed network, of which no higher limit is known",
    "summary.roofline: mb_per_s, limit_mb_per_s, guaranteed",
    "more than what is guaranteed lasts as long as the credits do: measure for an hour before you "
    "count on it",
    "AWS, Amazon EC2 instance network bandwidth (docs.aws.amazon.com/AWSEC2/latest/UserGuide)",
)
RULES = (BEYOND_LIMIT, ABOVE_GUARANTEED)


def findings(rows: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """One a place and rule: by its fastest rate."""
    for row in _fastest(rows, "beyond"):
        yield BEYOND_LIMIT.found(
            f"{_gave(row)}, and {row['limit_of']} carries {row['limit_mb_per_s']:,.0f} at most "
            f"({row['limit_source']})"
        )
    for row in _fastest(rows, "above-guaranteed"):
        yield ABOVE_GUARANTEED.found(
            f"{_gave(row)}, and {row['limit_of']} is {row['limit_mb_per_s']:,.0f} "
            f"({row['limit_source']})"
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


def _gave(row: Mapping[str, Any]) -> str:
    return f"{row['place']} gave {row['mb_per_s']['median']:,.0f} MB/s ({row['what']})"
