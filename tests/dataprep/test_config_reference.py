"""Every key has its line in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

from dataprep.config import ShardConfig
from dataprep.config_reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "shard-config.md"


def test_the_page_is_what_the_config_says() -> None:
    """Otherwise: ``python -m dataprep.config_reference > docs/shard-config.md``."""
    assert PAGE.read_text() == reference()


def test_every_key_is_there_once_in_its_part() -> None:
    """With what it takes and what it means."""
    schema = ShardConfig.model_json_schema()
    models = [schema, *(model for model in schema["$defs"].values() if "properties" in model)]
    keys = [key for model in models for key in model["properties"]]
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| .* \| (.+) \|$", reference(), re.M)
    assert sorted(key for key, _, _ in rows) == sorted(keys)
    assert all(takes.strip() and meaning.strip() for _, takes, meaning in rows)
