"""PURE. The machine, how to do it again, and what every figure means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from iobench.report.model.numbers import size
from iobench.report.model.shapes import (
    Block,
    Code,
    Definition,
    Definitions,
    Entry,
    Section,
    Table,
    Words,
)
from iobench.report.model.trials import cold_table
from iobench.result import Result


def environment(result: Result) -> Section | None:
    """What the figures depend on, and the evidence that cold was cold."""
    rows = tuple((Entry(name), Entry(text)) for name, text in _flat(result.environment))
    blocks: list[Block] = []
    if rows:
        blocks.append(Table("This machine", ("what", "is"), rows))
    cold = cold_table(result)
    if cold is not None:
        blocks.append(cold)
    return Section("environment", "Environment", tuple(blocks)) if blocks else None


def findings(result: Result) -> Section | None:
    """What is worth saying, gravest first."""
    order = {"problem": 0, "warning": 1, "info": 2}
    ranked = sorted(result.findings, key=lambda finding: order.get(finding.severity, 3))
    entries = tuple(
        Definition(
            f"{finding.severity}: {finding.code.replace('_', ' ')}",
            finding.evidence,
            finding.advice,
        )
        for finding in ranked
    )
    return Section("findings", "Findings", (Definitions(entries),)) if entries else None


def reproduce(result: Result) -> Section:
    """The command and the config."""
    words = Words(
        (
            "Save the config below as config.yaml, then run the command. "
            "The raw result is part of this page; iobench report RUN_DIR draws it again "
            "without measuring.",
        )
    )
    text = yaml.safe_dump(_plain(result.config), sort_keys=False, allow_unicode=True)
    blocks: list[Block] = [words, Code("Command", "iobench run config.yaml")]
    if result.config:
        blocks.append(Code("config.yaml", text.rstrip()))
    return Section("reproduce", "How to reproduce", tuple(blocks))


def _flat(value: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, below in value.items():
        name = f"{above} / {key}" if above else str(key).replace("_", " ")
        if isinstance(below, Mapping):
            yield from _flat(below, name)
        elif isinstance(below, (list, tuple)):
            yield from _flat({str(i): item for i, item in enumerate(below, start=1)}, name)
        elif str(key).endswith("_bytes") and isinstance(below, int) and below > 0:
            yield name.removesuffix(" bytes").removesuffix("_bytes"), size(below)
        elif below not in (None, ""):
            yield name, str(below)


def _plain(value: Any) -> Any:
    """As YAML's safe writer takes it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(below) for key, below in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(below) for below in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
