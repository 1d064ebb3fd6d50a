"""The test as a person reads it, and as a program does."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from iobench.selftest import told
from iobench.selftest.known import Check
from iobench.selftest.prefetched import Prefetched
from iobench.selftest.recovered import Recovered
from iobench.selftest.whole import Injected, Note

GOOD = Check("good", 1.0, 1.0, 0.1, "s")
BAD = Check("bad", 1.0, 2.0, 0.1, "s")
COPY = Recovered(
    case="copy",
    stage="copy",
    rung="copy",
    injected_s=0.04,
    recovered_s=0.041,
    elsewhere=("warm", 0.0),
    findings=("slow-copy",),
    code="slow-copy",
    primary="slow-copy",
)
STEP = Prefetched("fetch", 2, "workers", 0.1, 0.101)
FOUND = Injected({"synthetic": 0.01}, [COPY], [STEP])
SKIPPED = Injected(not_run=[("delays", "PyTorch is not installed")])


def said(check: Check, delays: Injected) -> tuple[bool, list[str]]:
    """What is told, and whether all is well."""
    lines: list[str] = []
    ok = told.tell([check], lambda note: delays, lines.append)
    return ok, lines


def test_checks_come_first_then_tables() -> None:
    """Each under a line that says what it holds."""
    ok, lines = said(GOOD, FOUND)
    assert ok
    assert lines[0] == str(GOOD)
    assert lines[2] == "delays without prefetch, and where the ladder finds them:"
    assert lines[5].startswith("| copy ")
    assert lines[6] == "without any delay, ms a sample: synthetic 10.00"
    assert lines[8] == (
        "delays with prefetch, 2 workers: a step takes what its slowest stage takes:"
    )
    assert lines[-1].startswith("| fetch ")


@pytest.mark.parametrize(
    ("check", "delays"),
    [
        (BAD, FOUND),
        (GOOD, replace(FOUND, ladder=[replace(COPY, recovered_s=0.05)])),
        (GOOD, replace(FOUND, prefetch=[replace(STEP, found_s=0.12)])),
    ],
)
def test_one_wrong_figure_is_enough(check: Check, delays: Injected) -> None:
    """Wherever it stands, in words and as JSON."""
    assert not said(check, delays)[0]
    text, ok = told.as_json([check], lambda note: delays)
    assert (ok, json.loads(text)["ok"]) == (False, False)


def test_what_was_not_run_is_said_and_is_not_wrong() -> None:
    """The rest decides."""
    ok, lines = said(GOOD, SKIPPED)
    assert ok
    assert lines[1:] == ["not run: delays: PyTorch is not installed"]
    assert not said(BAD, SKIPPED)[0]


@pytest.mark.parametrize(
    ("found_s", "share", "hinted"), [(0.101, 0.9, False), (0.12, 0.1, False), (0.12, 0.5, True)]
)
def test_a_busy_machine_is_said_and_may_be_why(found_s: float, share: float, hinted: bool) -> None:
    """A hint only where something is wrong and others took much."""
    delays = replace(FOUND, prefetch=[replace(STEP, found_s=found_s)], others_share=share)
    _, lines = said(GOOD, delays)
    assert f"other programs took {share:.0%} of the processors meanwhile" in lines
    assert any("more --rounds" in line for line in lines) is hinted


def test_json_holds_every_table() -> None:
    """Rows with their verdicts, and what was not run."""
    content = json.loads(told.as_json([GOOD], lambda note: FOUND)[0])
    assert content["checks"] == [GOOD.as_dict()]
    assert content["ladder"] == [json.loads(json.dumps(COPY.as_dict()))]
    assert content["prefetch"] == [STEP.as_dict()]
    assert (content["rungs_s"], content["not_run"], content["ok"]) == (
        {"synthetic": 0.01},
        [],
        True,
    )


def test_progress_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """A line each where nobody looks on; stdout is for the result."""

    def measured(note: Note) -> Injected:
        note("round 1")
        note("round 2")
        return FOUND

    said_lines: list[str] = []
    told.tell([], measured, said_lines.append)
    seen = capsys.readouterr()
    assert (seen.out, seen.err) == ("", "round 1\nround 2\n")


def test_progress_is_one_line_where_somebody_looks_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is gone at the end."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)

    def measured(note: Note) -> Injected:
        note("round 1")
        return FOUND

    told.tell([], measured, lambda line: None)
    assert capsys.readouterr().err == "\r\x1b[Kround 1\r\x1b[K"
