"""``python -m iobench.sidebyside``: run the contests and write them down."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from iobench.environment import describe
from iobench.sidebyside.contest import Contest, Rounds
from iobench.sidebyside.rounds import run_contest
from iobench.sidebyside.table import page
from iobench.sidebyside.workplace import Workplace

POINTS = (
    *("codec", "quality", "whole_job", "records", "packing", "object_store"),
    *("loading", "footprint", "startup", "probes"),
)
"""Modules of this package that have a ``contests(place)``, in the order of the table."""


def main() -> None:
    """Measure, print the tables, and write them with the raw figures and the machine."""
    parser = argparse.ArgumentParser(prog="python -m iobench.sidebyside", description=__doc__)
    parser.add_argument("--source", type=Path, help="class folders; drawn images without it")
    parser.add_argument("--images", type=int, default=12_000, help="of the whole jobs")
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--only", default="", help="points or contests, with commas between")
    parser.add_argument("--to", type=Path, help="a folder for table.md and result.json")
    options = parser.parse_args()
    only = set(filter(None, options.only.split(",")))
    with tempfile.TemporaryDirectory(dir=".", prefix="bench-") as folder:
        photos = options.source or _drawn(Path(folder))
        place = Workplace(Path(folder).resolve(), photos.resolve(), options.images)
        done = []
        for contest in _chosen(place, only):
            done.append((contest, run_contest(contest, options.repeats, _note)))
            if options.to:
                # Of an hour's work, what is done is kept.
                _write(options.to, done, place)
    print(page(done))  # noqa: T201


def _write(folder: Path, done: list[tuple[Contest, Rounds]], place: Workplace) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "table.md").write_text(page(done))
    (folder / "result.json").write_text(raw(done, place) + "\n")


def _chosen(place: Workplace, only: set[str]) -> Iterator[Contest]:
    for point in POINTS:
        for contest in import_module(f"iobench.sidebyside.{point}").contests(place):
            if not only or {point, contest.name} & only:
                yield contest


def _drawn(folder: Path) -> Path:
    from dataprep.sample import draw_tree

    return draw_tree(folder / "drawn", images=600, classes=20).root


def raw(done: list[tuple[Contest, Rounds]], place: Workplace) -> str:
    """JSON of the machine and of each contest with every round; no path of this machine."""
    content = {
        "machine": describe({}),
        "contests": [
            {**asdict(one), "rounds": {n: [asdict(m) for m in ms] for n, ms in rounds.items()}}
            for one, rounds in done
        ],
    }
    text = json.dumps(content, indent=1)
    for path, name in ((place.root, "WORK"), (place.photos, "SOURCE")):
        text = text.replace(json.dumps(str(path))[1:-1], name)
    return text


def _note(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
