"""The list of all rules, and the page that shows it."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from iobench.diagnosis.catalogue import RULES
from iobench.diagnosis.reference import tables
from iobench.diagnosis.rule import Rule

ROOT = Path(__file__).parents[3]


def test_codes_are_unique_and_of_one_form() -> None:
    """Results and comparisons call rules by them."""
    codes = [rule.code for rule in RULES]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", code) for code in codes)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_every_rule_says_everything(rule: Rule) -> None:
    """What it says, when, on what evidence, what to do, who says so; fit for a table."""
    for field in fields(Rule):
        value = getattr(rule, field.name)
        assert value
        assert "|" not in value
        assert "\n" not in value


def test_every_rule_of_a_module_is_listed() -> None:
    """And no finding is made but by a rule."""
    listed = {rule.code for rule in RULES}
    for path in (ROOT / "iobench" / "diagnosis").glob("*.py"):
        text = path.read_text()
        if path.stem != "rule":
            assert not re.search(r"(?<!\w)Finding\(", text), f"{path.name} makes a finding itself"
        for name in re.findall(r"^([A-Z_]+) = Rule\(\n\s+\"([a-z-]+)\"", text, re.M):
            assert name[1] in listed, f"{name[1]} of {path.name} is not in the catalogue"


def test_the_page_shows_every_rule_as_it_is() -> None:
    """``python -m iobench.diagnosis.reference`` writes its tables."""
    page = (ROOT / "docs" / "diagnosis.md").read_text()
    assert tables() in page
    for rule in RULES:
        assert f"| `{rule.code}` |" in page
        assert rule.fires in page
