"""The finding that a page begins with, and all others."""

from __future__ import annotations

from dataclasses import replace

from iobench.report.model import build
from iobench.report.model.findings import beginning, section
from iobench.report.model.shapes import Definition, Definitions
from iobench.report.page import render
from iobench.result import Finding, Result

FIRST = Finding(
    "slow-disk",
    "problem",
    "loop: the disk <takes> 40%",
    "more workers",
    primary=True,
    title="The disk is waited for",
    threshold="5% or more",
    share=0.4,
)
NOTE = Finding("few-repeats", "info", "3 of each point", "set repeats: 6", title="Few repeats")
GRAVE = Finding("ranks-differ", "problem", "in 1 of 3 trials", "look", title="Ranks differ")
OLD = Finding("some_code", "warning", "seen", "do")


def made(*findings: Finding) -> Result:
    """A result that holds nothing else."""
    return Result("made", "", {}, {}, findings=findings)


def entries(result: Result) -> list[Definition]:
    """Of the section."""
    found = section(result)
    assert found is not None
    (block,) = found.blocks
    assert isinstance(block, Definitions)
    return list(block.entries)


def test_the_first_screen_has_the_primary_one() -> None:
    """What it says, on what evidence, from where on, what next; what is left is below."""
    first = build(made(NOTE, FIRST), {}).beginning
    assert first is not None
    assert (first.label, first.title) == ("Begin here", "The disk is waited for")
    assert (first.evidence, first.threshold) == (FIRST.evidence, "5% or more")
    assert (first.advice, first.badge.text, first.badge.tone) == (
        *("more workers", "problem", "alert"),
    )
    assert [entry.term for entry in entries(made(NOTE, FIRST))] == ["Few repeats"]


def test_how_sure_it_is_is_what_was_found_of_the_measurement() -> None:
    """All that bears on it; where nothing does, that is said."""
    qualified = beginning(made(NOTE, FIRST, GRAVE))
    assert qualified is not None
    assert qualified.sure == "3 of each point; in 1 of 3 trials"
    sure = beginning(made(FIRST))
    assert sure is not None
    assert sure.sure == "nothing was found that qualifies it"


def test_an_interval_that_reaches_far_down_is_said() -> None:
    """Below half of what it takes at the median, and not from there on."""
    for low, words in ((0.19, "it may take as little as 19.0 %"), (0.2, "nothing was found")):
        first = beginning(made(replace(FIRST, share_low=low)))
        assert first is not None
        assert words in " ".join(first.sure.split())


def test_a_loop_whose_device_limits_needs_no_beginning() -> None:
    """It is said what limits."""
    first = beginning(made(replace(FIRST, severity="info")))
    assert first is not None
    assert (first.label, first.badge.tone) == ("What limits", "plain")


def test_the_others_come_gravest_first() -> None:
    """With their code and threshold, where there are any."""
    found = entries(made(NOTE, OLD, replace(FIRST, primary=False)))
    assert [entry.badges[0].text for entry in found] == ["problem", "warning", "info"]
    assert [entry.note for entry in found] == ["slow-disk: 5% or more", "", ""]
    assert found[1].term == "some code"


def test_results_without_a_primary_one_have_all_in_the_section() -> None:
    """Those of older versions; and where there is none, no section."""
    assert beginning(made(OLD)) is None
    found = section(made(OLD))
    assert found is not None
    assert found.title == "Findings"
    assert section(made()) is None
    only = made(FIRST)
    assert section(only) is None


def test_the_page_shows_it_before_its_figures() -> None:
    """Escaped, and only where there is one."""
    page = render(made(FIRST, NOTE)).decode()
    assert "the disk &lt;takes&gt; 40%" in page
    assert page.index("Begin here") < page.index("<main>") < page.index("Other findings")
    assert 'id="beginning"' not in render(made(NOTE)).decode()
