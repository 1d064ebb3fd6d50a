"""Compare figures that others have published about feeding a training job with this machine.

    python -m benchmarks.published PHOTOS [--only NAME] [--repeats 6]

PHOTOS are class folders. ``benchmarks.published_claims`` has the claims. Each claim is measured by
its command, and its rules decide whether it holds. Then ``docs/published-figures.md`` is written.

Runs and figures stay in ``--folder``. A later call measures only the claims that are missing, or
the claim that ``--only`` names. If MXNet is not installed, its claim is left out. To add it, call
the program again with a Python that has MXNet, and with ``--only mxnet``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from benchmarks.published_claims import CLAIMS, CPUS, ROOT, Claim, Figures, digits
from benchmarks.workplace import Workplace, files_below
from iobench.results.statistics import Estimate, estimate


@dataclass(frozen=True, slots=True)
class Judgement:
    """The figures of a claim, and whether it holds.

    Attributes:
        rows: a row for each point and ratio: its name, its estimate, its unit.
        failed: the points and ratios whose rule does not hold.
    """

    rows: Sequence[tuple[str, Estimate, str]]
    failed: Sequence[str]

    @property
    def verdict(self) -> str:
        """``holds``, ``does not hold``, or ``holds in part``."""
        if not self.failed:
            return "holds"
        all_names = {name for name, _, _ in self.rows}
        ratio_names = {name for name, _, unit in self.rows if unit == "ratio"}
        judged_names = ratio_names or all_names
        return "does not hold" if judged_names <= set(self.failed) else "holds in part"


def judged(claim: Claim, figures: Figures) -> Judgement:
    """Compare the figures of a claim with its rules."""
    first, *further = claim.metrics
    points = dict(figures[first])
    ratios = {}
    for rule in claim.rules:
        numerator, _, denominator = rule.of.partition("/")
        if denominator:
            pairs = zip(points[numerator], points[denominator], strict=True)
            ratios[rule.of] = [above / below for above, below in pairs]
    measured = points | ratios
    rows = [(name, estimate(repeats), claim.metrics[first]) for name, repeats in points.items()]
    rows += [(name, estimate(repeats), "ratio") for name, repeats in ratios.items()]
    for metric in further:
        for name, repeats in figures[metric].items():
            rows.append((name, estimate(repeats), claim.metrics[metric]))
    failed = [rule.of for rule in claim.rules if not rule.holds(estimate(measured[rule.of]))]
    return Judgement(rows, failed)


def page(figures: Mapping[str, Figures], images: int, repeats: int) -> str:
    """Return the page: a short table, then a section for each claim."""
    rows = [("", "claim", "published", "measured here", "verdict"), ("---",) * 5]
    sections = []
    for number, claim in enumerate(CLAIMS, 1):
        judgement = judged(claim, figures[claim.name]) if claim.name in figures else None
        rows.append((str(number), claim.claim, claim.published, *_summary(claim, judgement)))
        sections.append(_section(number, claim, judgement))
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return _PAGE.format(
        cpus=CPUS, images=images, repeats=repeats, table=table, sections="\n".join(sections)
    )


def _summary(claim: Claim, judgement: Judgement | None) -> tuple[str, str]:
    """Return the last two cells of a claim's row: the figures, and the verdict."""
    if judgement is None:
        return claim.result, "not run yet" if claim.measure else "not measured here"
    medians: dict[str, str] = {}
    for name, interval, _ in judgement.rows:
        medians.setdefault(name, _figure(interval.median))
    return claim.result.format_map(medians), judgement.verdict


def _figure(value: float) -> str:
    """Return a figure as a whole number from 100 on, else with 3 digits: ``1,895``, ``5.67``."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _section(number: int, claim: Claim, judgement: Judgement | None) -> str:
    """Return the section of a claim: its figures, its rule, the verdict and its command."""
    lines = [f"### {number}. {claim.claim[0].upper()}{claim.claim[1:]}", ""]
    if judgement is not None:
        lines += ["| | median | interval | unit |", "| --- | --- | --- | --- |"]
        for name, interval, unit in judgement.rows:
            between = f"{_figure(interval.low)} to {_figure(interval.high)}"
            lines.append(
                f"| {claim.label(name)} | {_figure(interval.median)} | {between} | {unit} |"
            )
        lines.append("")
        lines += [f"**Rule:** the claim holds if {claim.holds_if}.", ""]
        lines += [f"**Verdict:** the claim {judgement.verdict}.{_failures(claim, judgement)}", ""]
    else:
        lines += [f"The claim was not measured here. {claim.why}", ""]
    command = claim.command.replace(" --set", " \\\n    --set")
    lines += ["<!-- not run: minutes to half an hour -->", "```sh", command, "```", ""]
    return "\n".join(lines)


def _failures(claim: Claim, judgement: Judgement) -> str:
    """Return which figures do not meet the rule, and why; empty if all of them do."""
    if not judgement.failed:
        return ""
    failed = "; ".join(claim.label(name) for name in judgement.failed)
    return f" This does not meet the rule: {failed}. {claim.why}"


_PAGE = """\
# Published figures, measured here

For people who have read that a change makes training faster, and who want to know whether it does.

{table}

A verdict comes from a rule, which the section of the claim below gives. The rule applies to the
interval, not to the median. "Faster" and "more than" need the whole interval above the limit. For
other conditions, one end of the interval is enough. "Holds in part" means that some of the figures
meet the rule.

## Conditions

- The machine has {cpus} CPUs and no GPU. The data are {images:,} photographs of ImageNet. Both
  sides of a ratio have the same images. A figure is the median of {repeats} repeats.
- `loaders.yaml` emulates a V100: the loop sleeps as long as that device would compute.
- The S3 server is moto, a program on the same CPUs without latency. With Amazon's S3, the
  differences are larger.
- Small files are photographs at 256 pixels, of about 40 kB each. One process reads them.
- The store from which hosts load their shares answers after 20 ms, and gives each host 5 MB/s.

`python -m benchmarks.published PHOTOS` repeats the measurement and writes this page.

## Each claim

Each section has the figures of a claim, its rule, and the command that measures it. Add
`--set data.source=PHOTOS` to the commands of iobench.

{sections}"""


def main() -> None:
    """Measure the claims that are missing, and write the page after each claim."""
    measurable = {claim.name: claim for claim in CLAIMS if claim.measure}
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published")
    parser.add_argument("photos", type=Path, help="class folders")
    parser.add_argument("--only", choices=measurable)
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--folder", type=Path, default=Path("reports/published"))
    parser.add_argument("--page", type=Path, default=ROOT / "docs/published-figures.md")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    images = len(files_below(options.photos))
    workplace = Workplace(options.folder.resolve(), options.photos.resolve(), images)
    figures_file = workplace.root / "figures.json"
    figures = json.loads(figures_file.read_text()) if figures_file.exists() else {}
    for name, claim in measurable.items():
        is_due = name == options.only if options.only else name not in figures
        can_be_measured = claim.measure is not digits or find_spec("mxnet") is not None
        if is_due and claim.measure and can_be_measured:
            figures[name] = claim.measure(claim, workplace, options.repeats)
            figures_file.write_text(json.dumps(figures))
        options.page.write_text(page(figures, images, options.repeats))


if __name__ == "__main__":
    main()
