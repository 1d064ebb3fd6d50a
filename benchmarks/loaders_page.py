"""Write the tables of the contest of loaders into the documentation.

    python -m benchmarks.loaders_page [--result DIR] [--note SENTENCE]

DIR has the ``result.json`` of ``make bench ONLY=loaders TO=DIR``. The tables go between the marks
``<!-- loaders -->`` and ``<!-- end of loaders -->`` of README.md and docs/loaders-compared.md.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.contest import Contender, Contest, Measured, Rounds, page, worded
from iobench.results.statistics import estimate, median, ratio

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "reports" / "examples" / "loaders"
README = ROOT / "README.md"
PAGE = ROOT / "docs" / "loaders-compared.md"
_NOT_RUN = "not run"
"""The reason of a library that could do the work begins with this, if it was not measured."""
BEGIN, END = "<!-- loaders -->", "<!-- end of loaders -->"


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a run.

    Attributes:
        machine: the description of the machine, as ``iobench.machine.environment`` returns it.
        disk: the contest that reads from the disk, with its rounds.
        s3: the contest that reads from an S3 server; None if it was not run.
    """

    machine: Mapping[str, Any]
    disk: tuple[Contest, Rounds]
    s3: tuple[Contest, Rounds] | None

    @property
    def circumstances(self) -> str:
        """The machine, and the numbers of rounds and of images, in a sentence."""
        contest, rounds = self.disk
        measured = [way for way in contest.contenders if way.name in rounds.measured]
        runs = rounds.measured[measured[0].name]
        images = runs[0].amount / int(measured[0].arguments["epochs"])
        memory_gb = self.machine["memory_bytes"] / 1e9
        return (
            f"{self.machine['processors']} cores ({self.machine['processor']}), {memory_gb:.0f} GB "
            f"of memory; {images:,.0f} JPEGs, short side 256, quality 95; medians of "
            f"{len(runs)} interleaved rounds, each run in a process of its own."
        )


def read(folder: Path) -> Run:
    """Read the result of a run.

    Raises:
        KeyError: it does not have the contest that reads from the disk.
    """
    content = json.loads((folder / "result.json").read_text())
    contests = {saved["name"]: _contest(saved) for saved in content["contests"]}
    return Run(content["machine"], contests["loaders-disk"], contests.get("loaders-s3"))


def _contest(saved: Mapping[str, Any]) -> tuple[Contest, Rounds]:
    """Read a contest and its rounds from ``result.json``."""
    measured = {}
    for name, runs in saved["rounds"].items():
        measured[name] = [Measured(**run) for run in runs]
    contenders = tuple(Contender(**fields) for fields in saved["contenders"])
    contest = Contest(
        saved["name"], saved["title"], saved["unit"], contenders, notes=tuple(saved["notes"])
    )
    return contest, Rounds(measured, saved["reasons"])


def full(run: Run, note: str) -> str:
    """Return the tables of all contenders, under headings of the second level."""
    tables = page(filter(None, [run.disk, run.s3])).strip().replace("### ", "## ")
    return f"{_sentences(run, note)}\n\n{tables}"


def summary(run: Run, note: str) -> str:
    """Return a table with the fastest way of each library, from the disk and from S3."""
    ratio_head = "`to_torch` ÷ this loader"
    head = ["loader, in its fastest setting", "from the page cache, img/s", ratio_head]
    if run.s3:
        head += ["from S3 behind 50 ms, img/s", ratio_head]
    rows = [head, ["---"] * len(head)]
    for title in _titles(run.disk[0]):
        row = [title, *_cells(run.disk, title)]
        if run.s3:
            row += _cells(run.s3, title)
        rows.append(row)
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return f"{_sentences(run, note)}\n\n" + "\n".join(lines)


def _sentences(run: Run, note: str) -> str:
    """Return the sentences above the tables."""
    return f"{run.circumstances} {note}".strip()


def _titles(contest: Contest) -> list[str]:
    """Return the names of the libraries, and of both ways of this package."""
    return list(dict.fromkeys(_title(contender.name) for contender in contest.contenders))


def _title(name: str) -> str:
    """Return the library in the name of a contender; the whole name for ways of this package."""
    return name if name.startswith("dataprep") else name.partition(",")[0]


def _cells(contest_rounds: tuple[Contest, Rounds], title: str) -> Iterator[str]:
    """Yield the rate of a library's fastest way, and the rate of this package divided by it."""
    contest, rounds = contest_rounds
    ours = contest.contenders[0].name
    ways = [name for name in rounds.measured if _title(name) == title]
    if not ways:
        unable = [way.unable for way in contest.contenders if _title(way.name) == title]
        was_possible = any(reason.startswith(_NOT_RUN) for reason in unable)
        yield from (_NOT_RUN if was_possible else "not supported", "")
        return
    fastest = max(ways, key=lambda name: median(_rates(rounds, name)))
    yield worded(estimate(_rates(rounds, fastest)))
    has_ratio = fastest != ours and ours in rounds.measured
    yield "" if not has_ratio else worded(ratio(_rates(rounds, ours), _rates(rounds, fastest)))


def _rates(rounds: Rounds, name: str) -> Sequence[float]:
    """Return the rate of a contender in each round."""
    return [run.rate for run in rounds.measured[name]]


def replaced(text: str, block: str) -> str:
    """Replace the text between the marks by a block.

    Raises:
        ValueError: the text does not have both marks.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"a page of the documentation needs the lines {BEGIN} and {END}")
    return f"{before}{begin}\n\n{block}\n\n{end}{after}"


def main() -> None:
    """Replace the tables in both files."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loaders_page", description=__doc__)
    parser.add_argument("--result", type=Path, default=RESULT, help="a folder with result.json")
    parser.add_argument("--note", default="", help="a sentence about the run, for both pages")
    parser.add_argument("--readme", type=Path, default=README)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    run = read(options.result)
    for path, block in ((options.readme, summary), (options.page, full)):
        path.write_text(replaced(path.read_text(), block(run, options.note)))


if __name__ == "__main__":
    main()
