"""PURE. Every rule as Markdown: ``python -m iobench.diagnosis.reference``.

That writes the tables of ``docs/diagnosis.md``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from iobench.diagnosis.catalogue import RULES
from iobench.diagnosis.rule import Kind, Rule

_HEADINGS: dict[Kind, str] = {
    "cause": "Causes: what takes a loop's time",
    "grade": "Grades: how much of it input takes",
    "start": "Before the first batch",
    "setting": "Settings of loader and loop",
    "measurement": "How the figures came about",
}
_COLUMNS = ("code", "says", "fires when", "evidence", "what to do", "source")


def tables() -> str:
    """A table for each kind, its rules in their order."""
    parts = []
    for kind, heading in _HEADINGS.items():
        rules = [rule for rule in RULES if rule.kind == kind]
        parts += [f"## {heading}", "", _row(_COLUMNS), _row("---" for _ in _COLUMNS)]
        parts += [*map(_rule, rules), ""]
    return "\n".join(parts)


def _rule(rule: Rule) -> str:
    severity = "" if rule.kind == "cause" else f" ({rule.severity})"
    told = (rule.title + severity, rule.fires, rule.evidence, rule.advice, rule.source)
    return _row((f"`{rule.code}`", *told))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.stdout.write(tables())
