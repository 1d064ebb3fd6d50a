"""Every config key is on a page of the documentation and in the schema for editors."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, Field

from dataprep.config.shard_config import ShardConfig
from iobench.config.benchmark import BenchConfig, dump
from tests.commandline import iobench
from tests.json_schema import problems

ROOT = Path(__file__).parents[1]
CONFIGS = ROOT / "configs"
EXAMPLES = sorted(CONFIGS.glob("*/*.yaml"))


def script(name: str) -> Any:
    """A module of docs/ that writes pages."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES = script("generate")


@pytest.mark.parametrize("path", PAGES.files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_files_are_what_the_models_say(path: Path) -> None:
    """Each generated file is current. Run ``python docs/generate.py`` otherwise."""
    assert path.read_text() == PAGES.files()[path]


@pytest.mark.parametrize(
    ("name", "model"), [("shard-config.md", ShardConfig), ("benchmark-config.md", BenchConfig)]
)
def test_every_key_is_there_once(name: str, model: type[BaseModel]) -> None:
    """Every key is on the page once, with its values and its meaning."""
    schema = model.model_json_schema()
    nested = [
        nested_model for nested_model in schema["$defs"].values() if "properties" in nested_model
    ]
    if name == "benchmark-config.md":  # it refers to the other page for the options of a store
        nested.remove(schema["$defs"]["StoreOptions"])
    models = [schema, *nested]
    keys = [key for nested_model in models for key in nested_model["properties"]]
    page = (ROOT / "docs" / name).read_text()
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| .* \| (.+) \|$", page, re.M)
    assert sorted(key for key, _, _ in rows) == sorted(keys)
    assert all(takes.strip() and meaning.strip() for _, takes, meaning in rows)


class Inner(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)

    deep: int = 3
    """Below the
    surface."""


class Outer(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)

    name: str
    """Its name."""
    share: int | str = "1%"
    """Of failures."""
    kind: Literal["a", "b"] | None = None
    """Which."""
    pair: tuple[int, int] | None = None
    """Two."""
    counts: tuple[Annotated[int, Field(ge=1, le=9)], ...] = (1, 2)
    """Many."""
    one_or_more: int | tuple[int, ...] = 1
    """Some."""
    offsets: dict[str, int] = {}
    """By name."""
    anything: dict[str, Any] = {}
    """At all."""
    block_bytes: int = 2**20
    """Of a block."""
    flag: bool = True
    """Or not."""
    seconds: Annotated[float, Field(gt=0)] = 2.0
    """Long."""
    inner: Inner = Inner()
    """More."""
    again: Inner | None = None
    """The same."""


@pytest.mark.parametrize(
    "row",
    [
        "| `name` | text | required | Its name. |",
        "| `share` | integer or text | `1%` | Of failures. |",
        "| `kind` | `a`, `b` |  | Which. |",
        "| `pair` | 2 of: integer |  | Two. |",
        "| `counts` | several: integer, 1 to 9 | `1`, `2` | Many. |",
        "| `one_or_more` | several: integer | `1` | Some. |",
        "| `offsets` | names, each with integer |  | By name. |",
        "| `anything` | names, each with anything |  | At all. |",
        "| `block_bytes` | size | `1MiB` | Of a block. |",
        "| `flag` | `true`, `false` | `true` | Or not. |",
        "| `seconds` | number above 0 | `2.0` | Long. |",
        "| `inner` | keys below |  | More. |",
        "## inner, again",
        "| `deep` | integer | `3` | Below the surface. |",
    ],
)
def test_rows(row: str) -> None:
    """The row of a key has its values, its default and its meaning, in one line."""
    assert row in PAGES.page("# Keys\n", Outer, "All").splitlines()


@pytest.mark.slow
@pytest.mark.smoke
def test_iobench_prints_its_schema() -> None:
    """``iobench schema`` prints the file beside the examples."""
    assert iobench("schema").out == (CONFIGS / "bench/schema.json").read_text()


def schema_of(path: Path) -> dict[str, Any]:
    """The schema beside an example."""
    content: dict[str, Any] = json.loads((path.parent / "schema.json").read_text())
    return content


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_examples_name_their_schema_and_keep_to_it(path: Path) -> None:
    """The first line of an example names its schema for editors, and the example is valid.

    The name also works where both files are copied to.
    """
    text = path.read_text()
    assert text.splitlines()[0] == "# yaml-language-server: $schema=schema.json"
    schema = schema_of(path)
    assert problems(yaml.safe_load(text), schema, schema) == []


@pytest.mark.parametrize("path", sorted((CONFIGS / "bench").glob("*.yaml")), ids=lambda p: p.stem)
def test_a_printed_config_keeps_to_it_too(path: Path) -> None:
    """A printed config, with all its defaults, is valid too."""
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
def test_editors_underline_what_is_wrong(values: dict[str, Any], word: str) -> None:
    """Unknown keys, values out of range and unknown words are reported."""
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
def test_editors_underline_nothing_else(values: dict[str, Any]) -> None:
    """A single value or several, sizes as texts or bytes, and other packages' loaders are valid."""
    schema = schema_of(CONFIGS / "bench" / "smoke.yaml")
    assert problems(values, schema, schema) == []
