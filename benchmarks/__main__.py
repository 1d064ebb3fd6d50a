"""``python -m benchmarks``: run the contests, and print and save their results."""

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
"""Modules of this package with a function ``contests``, in the order of the page."""

IF_NAMED = ("loaders",)
"""Points that run only if ``--only`` names them, since they need an environment of their own."""

_REPEATS = 6


def main() -> None:
    """Run the contests, and print their tables.

    With ``--to``, the tables and the figures of all rounds are also written to files.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--source", type=Path, help="class folders (default: images are drawn)")
    parser.add_argument("--images", type=int, default=12_000, help="images in a whole job")
    parser.add_argument(
        "--repeats", type=int, help=f"rounds (default: those of the contest, or {_REPEATS})"
    )
    parser.add_argument("--only", default="", help="points or contests, separated by commas")
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
            # The whole run takes an hour, so the results are saved after each contest.
            if options.to:
                options.to.mkdir(parents=True, exist_ok=True)
                (options.to / "table.md").write_text(page(done))
                (options.to / "result.json").write_text(raw(done, workplace) + "\n")
    print(page(done))


def _chosen(workplace: Workplace, only: set[str]) -> Iterator[Contest]:
    """Yield the contests to run.

    Args:
        workplace: the input of the contests.
        only: names of points or contests; empty for all except ``IF_NAMED``.
    """
    for point in POINTS:
        if point in IF_NAMED and not any(name.startswith(point) for name in only):
            continue
        for contest in import_module(f"benchmarks.{point}").contests(workplace):
            if not only or {point, contest.name} & only:
                yield contest


def _drawn(folder: Path) -> Path:
    """Draw photographs below a folder, and return the folder with their classes."""
    from dataprep.drawn import draw_tree

    return draw_tree(folder / "drawn", images=600, classes=20).root


def raw(done: list[tuple[Contest, Rounds]], workplace: Workplace) -> str:
    """Return the machine and each contest with every round, as JSON.

    ``WORK`` and ``SOURCE`` replace the paths of this machine.
    """
    contests = []
    for contest, rounds in done:
        rounds_by_name = {}
        for name, runs in rounds.measured.items():
            rounds_by_name[name] = [asdict(run) for run in runs]
        reasons = dict(rounds.reasons)
        contests.append({**asdict(contest), "rounds": rounds_by_name, "reasons": reasons})
    text = json.dumps({"machine": describe({}), "contests": contests}, indent=1)
    for path, name in ((workplace.root, "WORK"), (workplace.photos, "SOURCE")):
        path_in_json = json.dumps(str(path))[1:-1]  # without its quotation marks
        text = text.replace(path_in_json, name)
    return text


def _note(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
