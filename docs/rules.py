"""Write the table of rules in docs/diagnosis.md: ``python docs/rules.py``."""

from __future__ import annotations

from pathlib import Path

from iobench.report.appendix import rule_rows

PAGE = Path(__file__).parent / "diagnosis.md"
_MARK = "<!-- rules -->\n"


def page(text: str) -> str:
    """The page with its table made anew."""
    head = text.partition(_MARK)[0]
    rows = ["| code | kind | finding | when | source |", "| --- | --- | --- | --- | --- |"]
    rows += [f"| {' | '.join(row)} |" for row in rule_rows()]
    return f"{head}{_MARK}" + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
