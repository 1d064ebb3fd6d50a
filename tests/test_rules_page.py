"""docs/diagnosis.md has every rule."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_table_of_rules_is_up_to_date() -> None:
    """``python docs/rules.py`` would change nothing."""
    spec = importlib.util.spec_from_file_location("rules", ROOT / "docs" / "rules.py")
    assert spec is not None
    assert spec.loader is not None
    rules = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(rules)
    text = rules.PAGE.read_text()
    assert rules.page(text) == text
