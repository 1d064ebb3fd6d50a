"""What a long form tried and what was seen: the rows that docs/reliability.md shows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "reports" / "examples" / "reliability"
PAGE = ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- the table begins -->", "<!-- the table ends -->"
HEAD = "| Fault | Where | Times | What happened | Lost or wrong |\n|---|---|---:|---|---:|"


@dataclass(frozen=True)
class Row:
    """One kind of fault at one kind of place: ``times`` tried, ``lost`` with data lost or wrong."""

    fault: str
    where: str
    times: int
    seen: str
    lost: int = 0


@dataclass(frozen=True)
class Tried:
    """One long form's rows, the command that repeats them, its seed and the day (ISO 8601)."""

    title: str
    command: str
    day: str
    seed: int | None
    rows: Sequence[Row]


def save(name: str, tried: Tried, folder: Path = RESULTS) -> Path:
    """Write the rows as ``name.json``; the page is made of every such file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(asdict(tried), indent=1) + "\n")
    return path


def load(path: Path) -> Tried:
    """Rows as ``save`` wrote them."""
    fields = json.loads(path.read_text())
    return Tried(**{**fields, "rows": tuple(Row(**row) for row in fields["rows"])})


def load_all(folder: Path = RESULTS) -> list[Tried]:
    """Every saved form, by name."""
    return [load(path) for path in sorted(folder.glob("*.json"))]


def table(tried: Iterable[Tried]) -> str:
    """Markdown: a heading, the command and a table for each."""
    return "\n\n".join(_section(form) for form in tried)


def page_with(text: str, tried: Iterable[Tried]) -> str:
    """The page ``text`` with what stands between its two marks made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table(tried)}\n\n{END}{after}"


def _section(form: Tried) -> str:
    seed = "" if form.seed is None else f", seed {form.seed}"
    rows = "\n".join(
        f"| {_cell(row.fault)} | {_cell(row.where)} | {row.times:,} | {_cell(row.seen)} "
        f"| {row.lost:,} |"
        for row in form.rows
    )
    return f"### {form.title}\n\n`{form.command}` ({form.day}{seed})\n\n{HEAD}\n{rows}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")
