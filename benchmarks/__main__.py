"""``python -m benchmarks``: run the contests and write down the result."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from benchmarks.contest import Contest, Rounds, page
from benchmarks.rounds import run_contest
from benchmarks.workplace import Workplace
from iobench.machine.environment import describe

POINTS = ("codec", "command", "records", "packing", "object_store", "loading", "probes", "loaders")
"""Modules of this package with a ``contests(place)``, in the order of the page."""

IF_NAMED = ("loaders",)
"""Points that run only if ``--only`` names them: their peers have an environment of their own."""

_REPEATS = 6


def main() -> None:
    """Measure, print the tables, and write them with the raw figures and the machine."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--source", type=Path, help="class folders; drawn images without it")
    parser.add_argument("--images", type=int, default=12_000, help="of whole jobs")
    parser.add_argument("--repeats", type=int, help=f"rounds; {_REPEATS}, or the contest's own")
    parser.add_argument("--only", default="", help="points or contests, with commas between")
    parser.add_argument("--to", type=Path, help="a folder for table.md and result.json")
    options = parser.parse_args()
    only = set(filter(None, options.only.split(",")))
    with tempfile.TemporaryDirectory(dir=".", prefix="bench-") as folder:
        photos = options.source or _drawn(Path(folder))
        workplace = Workplace(Path(folder).resolve(), photos.resolve(), options.images)
        done = []
        for contest in _chosen(workplace, only):
            repeats = options.repeats or contest.repeats or _REPEATS
            done.append((contest, run_contest(contest, repeats, _note)))
            if options.to:  # after each contest: the whole run takes an hour
                options.to.mkdir(parents=True, exist_ok=True)
                (options.to / "table.md").write_text(page(done))
                (options.to / "result.json").write_text(raw(done, workplace) + "\n")
    print(page(done))


def _chosen(workplace: Workplace, only: set[str]) -> Iterator[Contest]:
    for point in POINTS:
        if point in IF_NAMED and not any(name.startswith(point) for name in only):
            continue
        for contest in import_module(f"benchmarks.{point}").contests(workplace):
            if not only or {point, contest.name} & only:
                yield contest


def _drawn(folder: Path) -> Path:
    from dataprep.drawn import draw_tree

    return draw_tree(folder / "drawn", images=600, classes=20).root


def raw(done: list[tuple[Contest, Rounds]], workplace: Workplace) -> str:
    """JSON of the machine and of each contest with every round, without paths of this machine."""
    content = {
        "machine": describe({}),
        "contests": [
            {
                **asdict(contest),
                "rounds": {n: [asdict(m) for m in ms] for n, ms in rounds.measured.items()},
                "reasons": dict(rounds.reasons),
            }
            for contest, rounds in done
        ],
    }
    text = json.dumps(content, indent=1)
    for path, name in ((workplace.root, "WORK"), (workplace.photos, "SOURCE")):
        text = text.replace(json.dumps(str(path))[1:-1], name)
    return text


def _note(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
