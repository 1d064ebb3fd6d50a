"""``python -m iobench.sidebyside.child``: one contender, once.

Reads ``{"run": "module:function", "arguments": {...}}`` from stdin and writes what the function
measured, one or several by name, as JSON to the file descriptor that is the only argument.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from importlib import import_module
from typing import Any

from iobench.sidebyside.contest import Measured


def main() -> None:
    """Run what stdin names."""
    request = json.load(sys.stdin)
    module, _, name = request["run"].partition(":")
    measured = getattr(import_module(module), name)(**request["arguments"])
    with os.fdopen(int(sys.argv[1]), "w") as answer:
        json.dump(_told(measured), answer)


def _told(measured: Measured | Mapping[str, Measured]) -> dict[str, Any]:
    if isinstance(measured, Measured):
        return asdict(measured)
    return {name: asdict(one) for name, one in measured.items()}


if __name__ == "__main__":
    main()
