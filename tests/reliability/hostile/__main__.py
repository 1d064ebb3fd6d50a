"""One family of targets in this process, as JSON lines."""

from __future__ import annotations

import argparse
import dataclasses
import faulthandler
import importlib
import json
import sys
from pathlib import Path

from tests.reliability.hostile import FAMILIES
from tests.reliability.hostile.bounds import bound_memory
from tests.reliability.hostile.fuzz import fuzz, judged


def main() -> None:
    """Fuzz each target of a family, or read one file with one of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("--target", default="")
    parser.add_argument("--inputs", type=int, default=10**12)
    parser.add_argument("--seconds", type=float, default=10**9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--file", type=Path)
    asked = parser.parse_args()
    faulthandler.enable()
    targets = importlib.import_module(f"tests.reliability.hostile.{asked.family}").targets()
    for target in targets:
        for data in target.seeds()[
            : 2 if target.cost > 10 else None
        ]:  # what is imported while reading is not the input's memory
            judged(target, data)
    bound_memory()
    for target in targets:
        if asked.target and asked.target != target.name:
            continue
        if asked.file is not None:
            target.read(asked.file.read_bytes())
            continue
        found = fuzz(
            target,
            asked.seed,
            inputs=max(8, asked.inputs // target.cost),
            seconds=asked.seconds,
            keep=asked.keep,
        )
        sys.stdout.write(json.dumps(dataclasses.asdict(found)) + "\n")
        sys.stdout.flush()


main()
