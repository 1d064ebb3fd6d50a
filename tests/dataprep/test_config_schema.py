"""Editors know every key, what it takes and what it means, and underline what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from dataprep.config import ShardConfig
from dataprep.config_schema import DRAFT, FILE, editor_schema, modeline
from iobench.config import BenchConfig, dump
from tests.commandline import dataprep, iobench
from tests.json_schema import KEYWORDS, keywords, problems

CONFIGS = Path(__file__).parents[2] / "configs"
EXAMPLES = sorted(CONFIGS.glob("*/*.yaml"))
SCHEMAS = {"bench": (BenchConfig, iobench), "shard": (ShardConfig, dataprep)}


def schema_of(path: Path) -> dict[str, Any]:
    """The one beside an example, as committed."""
    found: dict[str, Any] = json.loads((path.parent / FILE).read_text())
    return found


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_committed_schema_is_what_the_command_prints(name: str) -> None:
    """Otherwise: ``iobench schema > configs/bench/schema.json``, and the same of dataprep."""
    done = SCHEMAS[name][1]("schema")
    assert done.code == 0, done.err
    assert (CONFIGS / name / FILE).read_text() == done.out
    assert done.one_object["$schema"] == DRAFT


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_examples_name_their_schema_and_keep_to_it(path: Path) -> None:
    """The first line is for editors; it finds the file wherever both are copied to."""
    text = path.read_text()
    assert text.splitlines()[0] == modeline()
    schema = schema_of(path)
    assert problems(yaml.safe_load(text), schema, schema) == []


@pytest.mark.parametrize("path", sorted((CONFIGS / "bench").glob("*.yaml")), ids=lambda p: p.stem)
def test_a_printed_config_keeps_to_it_too(path: Path) -> None:
    """With all its defaults."""
    schema = schema_of(path)
    config = BenchConfig.model_validate(yaml.safe_load(path.read_text()))
    assert problems(yaml.safe_load(dump(config)), schema, schema) == []


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"repaets": 3}, "unknown key repaets"),
        ({"repeats": 0}, "too small"),
        ({"repeats": "three"}, "is no integer"),
        ({"disk": {"operations": "erase"}}, "is none of"),
        ({"disk": {"operations": ["read", "erase"]}}, "config.disk.operations"),
        ({"disk": {"file_bytes": "much"}}, "does not match"),
        ({"loaders": [{"workers": 2}]}, "loader is missing"),
        ({"limits": {"stores": {"": 100}}}, "is no name of 1 to 64 characters"),
    ],
)
def test_what_is_wrong_is_underlined(values: dict[str, Any], word: str) -> None:
    """Unknown keys, values out of range, words that are none."""
    schema = schema_of(CONFIGS / "bench" / "smoke.yaml")
    assert word in " ".join(problems(values, schema, schema))


@pytest.mark.parametrize(
    "values",
    [
        {"loaders": [{"loader": "raw"}]},
        {"loaders": [{"loader": ["raw", "null"], "workers": [1, 2]}]},
        {"loaders": [{"loader": None}]},
        {"training": [{"consumer": None, "loader": "mine-own"}]},
        {"disk": {"file_bytes": "64MiB", "block_bytes": 4096}},
        {"disk": {"file_bytes": 4096, "block_bytes": ["4KiB", "1MB"]}},
    ],
)
def test_what_is_right_is_not(values: dict[str, Any]) -> None:
    """One value or several, sizes in words or bytes, loaders of other packages."""
    schema = schema_of(CONFIGS / "bench" / "smoke.yaml")
    assert problems(values, schema, schema) == []


@pytest.mark.parametrize("model", [BenchConfig, ShardConfig])
def test_draft_7_and_a_meaning_for_every_key(model: type[BaseModel]) -> None:
    """No keyword that an editor may not know; nothing that only repeats the key."""
    schema = json.loads(editor_schema(model, "title"))
    assert set(keywords(schema)) <= KEYWORDS
    for one in (schema, *schema["$defs"].values()):
        for key, found in one.get("properties", {}).items():
            assert found.get("description"), key
