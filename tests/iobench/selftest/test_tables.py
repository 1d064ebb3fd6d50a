"""Tables that are aligned, and Markdown as well."""

from __future__ import annotations

from dataclasses import replace

from iobench.selftest.prefetched import Prefetched
from iobench.selftest.recovered import Recovered
from iobench.selftest.tables import ladder_table, prefetch_table, without_line

DECODE = Recovered(
    case="decode and fetch",
    stage="decode",
    rung="decode",
    injected_s=0.064,
    recovered_s=0.0651,
    elsewhere=("warm", -0.00064),
    findings=("slow-store-latency", "slow-decode"),
    code="slow-decode",
    primary="slow-store-latency",
)
FETCH = replace(DECODE, stage="fetch", rung="store", injected_s=0.125, code="slow-store-latency")


def test_a_row_a_delay() -> None:
    """What was injected where, what was found, and whether that is right."""
    lines = list(ladder_table([DECODE, replace(FETCH, recovered_s=0.2)]))
    assert lines[0].split("|")[1].strip() == "slowed"
    assert lines[2].split("|")[1:-1] == [
        *(" decode (and fetch) ", " decode  ", "        64.0 ", "     65.10 ", "  +1.7% "),
        *(" warm -1.0%     ", " slow-decode                 ", " yes   "),
    ]
    assert "WRONG" in lines[3]
    assert "slow-store-latency, primary" in lines[3]
    assert len({len(line) for line in lines}) == 1


def test_what_was_not_named_says_what_was() -> None:
    """So that one sees what the diagnosis took it for."""
    (_, _, line) = ladder_table([replace(DECODE, findings=("input-high", "slow-copy"))])
    assert "not named: input-high, slow-copy" in line
    (_, _, silent) = ladder_table([replace(DECODE, findings=())])
    assert "not named: nothing found" in silent


def test_a_row_a_loop_with_prefetch() -> None:
    """Milliseconds a step, expected and found."""
    lines = list(prefetch_table([Prefetched("device", 2, "copy and device", 0.1, 0.1023)]))
    assert lines[0].startswith("| slowed ")
    assert lines[2] == "| device | copy and device |     100.0 | 102.3 | +2.3% | yes |"


def test_what_the_rungs_cost_without_delays() -> None:
    """In milliseconds a sample."""
    assert without_line({"synthetic": 0.01, "copy": 0.0101}) == (
        "without any delay, ms a sample: synthetic 10.00, copy 10.10"
    )
