"""PURE. The machine, how to do it again, and what every figure means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from iobench.report.model import machine, targets
from iobench.report.model.shapes import (
    Block,
    Code,
    Section,
    Words,
)
from iobench.result import Result


def environment(result: Result) -> Section | None:
    """What the figures depend on, storage first."""
    found = result.environment
    blocks: list[Block] = [
        *targets.target_table(found),
        *targets.store_table(found),
        *machine.machine_table(found),
        *machine.library_table(found),
    ]
    return Section("environment", "Environment", tuple(blocks)) if blocks else None


def reproduce(result: Result) -> Section:
    """The command and the config."""
    words = Words(
        (
            "Save the config below as config.yaml, then run the command. "
            "The raw result is part of this page; iobench report RUN_DIR draws it again "
            "without measuring.",
        )
    )
    if "watch" in result.config:
        return Section("reproduce", "How to reproduce", _watched())
    text = yaml.safe_dump(_plain(result.config), sort_keys=False, allow_unicode=True)
    blocks: list[Block] = [words, Code("Command", "iobench run config.yaml")]
    if result.config:
        blocks.append(Code("config.yaml", text.rstrip()))
    return Section("reproduce", "How to reproduce", tuple(blocks))


def _watched() -> tuple[Block, ...]:
    """A script is its owner's: only how it was watched is known."""
    said = (
        "The script is not known here, only how it was watched. The raw result is part of this "
        "page; iobench report RUN_DIR draws it again without measuring. To find what the device "
        "could take, and which part of the way to it costs what, describe the loop in a config: "
        "iobench run configs/bench/train-resnet50.yaml."
    )
    lines = 'import iobench\nloader = iobench.watch(loader, "reports/mine")'
    return Words((said,)), Code("In the script", lines)


def _plain(value: Any) -> Any:
    """As YAML's safe writer takes it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(below) for key, below in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(below) for below in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
