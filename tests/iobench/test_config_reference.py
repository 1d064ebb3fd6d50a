"""Every key has its line in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

from iobench.config import BenchConfig
from iobench.config_reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "benchmark-config.md"


def test_the_page_is_what_the_config_says() -> None:
    """Otherwise: ``python -m iobench.config_reference > docs/benchmark-config.md``."""
    assert PAGE.read_text() == reference()


def test_every_key_is_there_once_in_its_part() -> None:
    """With what it takes and what it means."""
    schema = BenchConfig.model_json_schema()
    keys = [key for model in (schema, *schema["$defs"].values()) for key in model["properties"]]
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| .* \| (.+) \|$", reference(), re.M)
    assert sorted(key for key, _, _ in rows) == sorted(keys)
    assert all(takes.strip() and meaning.strip() for _, takes, meaning in rows)
