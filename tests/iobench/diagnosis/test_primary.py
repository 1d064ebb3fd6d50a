"""Which finding to begin with."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iobench.diagnosis.catalogue import CAUSES, KINDS, RULES
from iobench.diagnosis.primary import TIE, with_primary
from iobench.result import Finding


def finding(code: str, share: float | None = None, severity: str = "problem") -> Finding:
    """Of a rule."""
    return Finding(code, severity, "", "", share=share)


def chosen(*findings: Finding) -> str | None:
    """The code of the primary one."""
    found = [one.code for one in with_primary(findings) if one.primary]
    return found[0] if found else None


def test_the_cause_that_explains_the_most() -> None:
    """However the findings are ordered."""
    small, large = finding("slow-decode", 0.3), finding("slow-disk", 0.4)
    assert chosen(small, large) == chosen(large, small) == "slow-disk"


def test_a_tie_goes_to_what_says_more() -> None:
    """Within one hundredth of the time."""
    throttled, slow = finding("store-throttles", 0.40), finding("slow-disk", 0.409)
    assert chosen(slow, throttled) == "store-throttles"
    assert chosen(finding("slow-disk", 0.42), throttled) == "slow-disk"


def test_problems_come_before_warnings_and_causes_before_grades() -> None:
    """A grade is the sum of its causes, and says what to do of none."""
    decode = finding("slow-decode", 0.15, "warning")
    high = finding("input-high", 0.4)
    assert chosen(high, decode) == "slow-decode"
    assert chosen(high, decode, finding("slow-disk", 0.25)) == "slow-disk"
    assert chosen(high, finding("few-repeats", None, "info")) == "input-high"


def test_where_nothing_waits_the_device_is_the_one() -> None:
    """Before a first batch that comes late, and before settings."""
    fine = finding("slow-device", 0.01, "info")
    assert chosen(fine, finding("late-first-batch", None, "warning")) == "slow-device"
    assert chosen(finding("late-first-batch", None, "warning")) == "late-first-batch"
    assert chosen(finding("store-throttles", None, "warning")) == "store-throttles"


def test_what_is_said_of_the_measurement_is_never_the_one() -> None:
    """Nor a setting, nor what no rule of this version says."""
    for code in [
        *(code for code, kind in KINDS.items() if kind in ("measurement", "setting")),
        "?",
    ]:
        assert chosen(finding(code)) is None


shares = st.none() | st.floats(0, 1)
severities = st.sampled_from(["problem", "warning", "info"])
codes = st.sampled_from([rule.code for rule in RULES])


@given(st.lists(st.builds(finding, codes, shares, severities), max_size=8))
def test_at_most_one_and_the_rest_is_as_it_was(findings: list[Finding]) -> None:
    """Among causes of the gravest severity none explains more than a tie beyond it."""
    marked = with_primary(findings)
    assert [(one.code, one.share) for one in marked] == [(one.code, one.share) for one in findings]
    first = [one for one in marked if one.primary]
    assert len(first) <= 1
    causes = {rule.code for rule in CAUSES}
    problems = [
        one.share
        for one in marked
        if one.code in causes and one.severity == "problem" and one.share is not None
    ]
    if problems:
        assert first[0].severity == "problem"
        assert first[0].share is not None
        assert first[0].share >= max(problems) - TIE
