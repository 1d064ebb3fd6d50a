"""Hostile images: each converted by itself, and all of them in whole jobs.

``PYTHONPATH=. python -m tests.reliability.hostile_images [--each N] [--seed S] [--save]``
"""

from __future__ import annotations

import argparse
import datetime
import sys
import tempfile
from pathlib import Path

from tests.reliability.images.bases import missing_programs
from tests.reliability.images.corpus import corpus
from tests.reliability.images.rows import alone, whole
from tests.reliability.images.tree import write
from tests.reliability.rows import Tried, save, table

SEED = 20
EACH = 250


def main(arguments: list[str] | None = None) -> int:
    """Print the rows and what is wrong; 1 where anything is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--each", type=int, default=EACH, help="files of each mutator; 0: all")
    parser.add_argument("--small", action="store_true", help="without the largest images")
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args(arguments)
    if missing := missing_programs():
        said = ", ".join(missing)
        sys.stderr.write(f"not installed, so that their files are missing: {said}\n")
    cases = corpus(given.seed, given.each or None, large=not given.small)
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        root = Path(folder) / "tree"
        named = write(cases, root)
        size = sum(len(case.data) for case in cases)
        sys.stderr.write(f"{len(cases):,} files, {size / 1e6:.1f} MB\n")
        rows, faults = alone(named, root)
        more, further = whole(named, root, Path(folder))
    command = "PYTHONPATH=. python -m tests.reliability.hostile_images"
    if given.each != EACH:
        command += f" --each {given.each}"
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    title = f"Hostile images: {len(cases):,} files, {size / 1e6:.0f} MB"
    tried = Tried(title, command, day, given.seed, [*rows, *more])
    sys.stdout.write(f"{table([tried])}\n")
    for fault in (*faults, *further):
        sys.stderr.write(f"WRONG {fault}\n")
    if given.save:
        save("hostile-images", tried)
    return 1 if any(row.lost for row in tried.rows) else 0


if __name__ == "__main__":
    sys.exit(main())
