"""Tests of dataprep.config_page."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from dataprep.config_page import config_page


class Inner(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)

    deep: int = 3
    """Of the
    sea."""


class Outer(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)

    name: str
    """What it is called."""
    share: int | str = "1%"
    """Of failures."""
    kind: Literal["a", "b"] | None = None
    """Which."""
    pair: tuple[int, int] | None = None
    """Two."""
    counts: tuple[Annotated[int, Field(ge=1, le=9)], ...] = (1, 2)
    """Many."""
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


@pytest.mark.parametrize(
    "row",
    [
        "| `name` | text | needed | What it is called. |",
        "| `share` | a whole number or text | `1%` | Of failures. |",
        "| `kind` | `a`, `b` |  | Which. |",
        "| `pair` | 2 of: a whole number |  | Two. |",
        "| `counts` | several: a whole number, 1 to 9 | `1`, `2` | Many. |",
        "| `offsets` | names, each with a whole number |  | By name. |",
        "| `anything` | names, each with anything |  | At all. |",
        "| `block_bytes` | a size | `1MiB` | Of a block. |",
        "| `flag` | `true`, `false` | `true` | Or not. |",
        "| `seconds` | a number above 0 | `2.0` | Long. |",
        "| `inner` | keys, see below |  | More. |",
        "| `deep` | a whole number | `3` | Of the sea. |",
    ],
)
def test_rows(row: str) -> None:
    """Each key says what it takes, its default and its meaning, in one line."""
    page = config_page(
        "# Keys\n", Outer.model_json_schema(), [("All", "Outer"), ("inner", "Inner")]
    )
    assert row in page.splitlines()


def test_sections_stand_in_order() -> None:
    """The head comes first, then each section under its title."""
    page = config_page("# Keys\n", Outer.model_json_schema(), [("In", "Inner"), ("All", "Outer")])
    titles = [line for line in page.splitlines() if line.startswith("#")]
    assert titles == ["# Keys", "## In", "## All"]
