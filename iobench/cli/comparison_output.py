"""Compare saved runs, and show the comparison as text, as JSON or as a page."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dataprep.config.shard_config import parse_share
from dataprep.errors import ConfigError, StoreError
from dataprep.message_text import counted
from dataprep.name_encoding import escape
from iobench.analysis.comparison import (
    Comparison,
    LabelledRun,
    LoopChange,
    compare,
    in_order,
    with_verdict,
)
from iobench.analysis.environment_differences import Difference, Sort
from iobench.analysis.regressions import VERDICTS, Change, Verdict
from iobench.report.front_page import gpus_words
from iobench.report.tables import Table
from iobench.results.result import RESULT, Result, read_result
from iobench.results.statistics import SIGNIFICANCE
from iobench.runner.run_folder import read, write_file

SCHEMA = 3
"""The version of the JSON's schema. Version 2 paired loops by their group for the first time.
Version 3 added the figures that decide the exit code."""

DRIFT = "The runs were not interleaved, so a drift of the machine between them is possible."
_VERDICT_TITLES: Mapping[Verdict, str] = {
    "regression": "Worse",
    "improvement": "Better",
    "underpowered": "Underpowered: more repeats are needed",
    "no evidence": "No evidence of a change",
}
_DIFFERENCE_TITLES: Mapping[Sort, str] = {
    "machine": "Machines differ",
    "untold": "Known for only one of the runs",
    "software": "Software differs",
    "config": "Configs differ",
}
_MAX_LINES = 20
"""Maximum number of differences, and of unpaired settings, that are printed."""
_COLUMNS = ("trial", "figure", "verdict", "change, ratio and its interval", "base", "new")


@dataclass(frozen=True, slots=True)
class RunComparisons:
    """The comparisons of newer runs with one base run.

    Attributes:
        comparisons: a comparison for each newer run, in the order of their starts.
    """

    comparisons: Sequence[Comparison]

    @property
    def newest(self) -> Comparison:
        """The comparison of the base with the latest run."""
        return self.comparisons[-1]

    @property
    def exit_code(self) -> int:
        """The exit code of the command: 1 if the newest run is worse, else 0."""
        return self.newest.exit_code

    @property
    def text(self) -> str:
        """The comparison for a terminal."""
        from iobench.report.page import from_template

        newest = self.newest
        differences: dict[str, list[Difference]] = {
            title: [] for title in _DIFFERENCE_TITLES.values()
        }
        for difference in (*newest.environment, *newest.config):
            differences[_DIFFERENCE_TITLES[difference.sort]].append(difference)
        page = from_template(
            "compare.txt.j2",
            comparisons=self.comparisons,
            newest=newest,
            run_words=_run_words,
            plain=escape,
            differences=differences,
            deciding=_by_title(newest.deciding),
            listed=_by_title(newest.listed),
            count=counted,
            trend=list(self._trend()),
            max_lines=_MAX_LINES,
            drift=DRIFT,
        )
        return page.decode().rstrip("\n")

    @property
    def json(self) -> str:
        """The comparison as one JSON object."""
        return json.dumps(self._object(), allow_nan=False)

    def write_page(self, path: Path) -> None:
        """Write the comparison as one HTML file.

        Raises:
            ConfigError: the name does not end in .html, or the file cannot be written.
        """
        from iobench.report.page import from_template, packed

        require_page_name(path)
        tables: list[Table] = []
        for comparison in self.comparisons:
            tables += _tables(comparison)
        page = from_template(
            "compare.html.j2",
            newest=self.newest,
            machines=[_machine(self.newest.base), _machine(self.newest.new)],
            lines=self.text.splitlines(),
            tables=tables,
            raw=packed(self._object()),
        )
        try:
            write_file(path, page)
        except StoreError as error:
            raise ConfigError(str(error)) from None

    def _object(self) -> dict[str, Any]:
        """The newest comparison as JSON; if there are several, all of them as ``comparisons``."""
        content = comparison_object(self.newest)
        if len(self.comparisons) > 1:
            content["comparisons"] = [comparison_object(entry) for entry in self.comparisons]
        return content

    def _trend(self) -> Iterator[str]:
        """A line for each figure with its medians in all runs."""
        changes_of_runs = [_changes_by_figure(comparison) for comparison in self.comparisons]
        for key, newest in changes_of_runs[-1].items():
            medians = [newest.figure.value_words(newest.base.median)]
            for changes in changes_of_runs:
                median = "none"
                if key in changes:
                    change = changes[key]
                    median = change.figure.value_words(change.new.median)
                medians.append(median)
            yield f"{newest.name}, {newest.figure.name}: {' -> '.join(medians)}"


def _changes_by_figure(comparison: Comparison) -> dict[tuple[str, str], Change]:
    """The changes of a comparison by the name of the trial and the metric."""
    return {(change.name, change.figure.metric): change for change in comparison.changes}


def compare_saved(
    runs: Sequence[Path], against: Path | None, threshold: float, *, force: bool = False
) -> RunComparisons:
    """Compare saved runs with a base.

    Args:
        runs: folders of runs or files ``result.json``. Without ``against``, the first is the base.
        against: the base run; None if it is the first of ``runs``.
        threshold: the smallest change that counts as better or worse, as a share of 1.
        force: whether to compare although images, models, machines or rules differ.

    Raises:
        ConfigError: there is only one run.
        ResultError, SchemaTooNew: a run cannot be read.
        NotComparable: a run cannot be compared with the base, as in
            ``iobench.analysis.comparison.compare``.
    """
    paths = [against, *runs] if against else list(runs)
    if len(paths) < 2:
        raise ConfigError("compare takes two runs: BASE_DIR NEW_DIR, or NEW_DIR --against BASELINE")
    base, *newer = [LabelledRun(label(path), read_saved(path)) for path in paths]
    newer = [run for run in in_order(base, newer) if run is not base]
    return RunComparisons([compare(base, run, threshold, force=force) for run in newer])


def comparison_object(comparison: Comparison) -> dict[str, Any]:
    """A comparison as JSON. ``changes`` has an object for each figure."""
    return {
        "schema": SCHEMA,
        "verdict": comparison.sentence,
        "exit_code": comparison.exit_code,
        "threshold": comparison.threshold,
        "base": _run_object(comparison.base),
        "new": _run_object(comparison.new),
        "unlike_machines": bool(comparison.machine_differences),
        "deciding": {
            "figures": len(comparison.deciding),
            "by": comparison.decided_by,
            "significance": SIGNIFICANCE,
            "correction": "Holm",
            "underpowered": comparison.more_repeats > 0,
            "more_repeats": comparison.more_repeats or None,
        },
        "environment": [asdict(difference) for difference in comparison.environment],
        "config": [asdict(difference) for difference in comparison.config],
        "loops": [_loop_object(loop) for loop in comparison.loops],
        "changes": [_change_object(change) for change in comparison.changes],
        "alone": list(comparison.unpaired),
        "notes": [note for note in (comparison.rule_note, DRIFT) if note],
    }


def read_saved(path: Path) -> Result:
    """Read the result in a run's folder, or in a copy of its ``result.json``.

    Raises:
        ResultError: there is no result.
        SchemaTooNew: a newer version wrote it.
    """
    return read_result(path, path) if path.is_file() else read(path)


def threshold_share(text: str) -> float:
    """Parse the option ``--threshold``: ``5%`` is 0.05.

    Raises:
        ConfigError: the text is not a share between 0 and 1.
    """
    try:
        share = float(parse_share(text))
    except ValueError as error:
        raise ConfigError(f"--threshold: {error}") from None
    if not 0 < share < 1:
        raise ConfigError(f"--threshold {text}: give more than 0% and less than 100%")
    return share


def require_page_name(path: Path) -> None:
    """Refuse a name that does not end in .html, because the page would replace another file.

    Raises:
        ConfigError: the name has another ending.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"--html {path}: give a file that ends in .html")


def label(path: Path) -> str:
    """The name of a run: the name of its folder or its file, without the path."""
    absolute = Path(os.path.abspath(path))  # noqa: PTH100  resolving would replace the name of a link
    return absolute.parent.name if absolute.name == RESULT else absolute.name


def _run_words(run: LabelledRun) -> str:
    """A run in a line: its folder and name, its time, its machine and its trials."""
    result = run.result
    done = sum(trial.status == "done" for trial in result.trials)
    not_done = len(result.trials) - done
    parts = [run.label]
    if result.name != run.label:
        parts.append(result.name)
    parts += [result.started.replace("+00:00", "Z"), _machine(run), f"{done} trials done"]
    if not_done:
        parts.append(f"{not_done} not done")
    return ", ".join(escape(part) for part in parts if part)


def _machine(run: LabelledRun) -> str:
    """The machine of a run: ``AMD EPYC, 2 CPUs, 8 × NVIDIA H100``."""
    environment = run.result.environment
    parts = []
    if environment.get("processor"):
        parts.append(str(environment["processor"]))
    parts.append(f"{environment.get('processors', '?')} CPUs")
    gpus = gpus_words(environment)
    if gpus:
        parts.append(gpus)
    return ", ".join(parts)


def _by_title(changes: Sequence[Change]) -> dict[str, list[Change]]:
    """The changes for each verdict, by the title of the verdict."""
    return {title: with_verdict(changes, verdict) for verdict, title in _VERDICT_TITLES.items()}


def _tables(comparison: Comparison) -> Iterator[Table]:
    """A table of the figures that decide the exit code, and one of the other figures."""
    runs = f"{comparison.new.label} compared with {comparison.base.label}"
    yield Table(
        title=f"{runs}: figures that decide the exit code ({comparison.decided_by})",
        columns=_COLUMNS,
        rows=_rows(comparison.deciding),
        note="A change is significant if its adjusted p-value is at most 0.05. The p-values are "
        "adjusted for the number of these figures by Holm's method.",
    )
    yield Table(
        title=f"{runs}: other figures",
        columns=_COLUMNS,
        rows=_rows(comparison.listed),
        note="These verdicts are not adjusted for the number of figures. Among many figures, some "
        "change by chance.",
    )


def _rows(changes: Sequence[Change]) -> list[list[str]]:
    """A row for each figure, ordered by the verdict."""
    rows: list[list[str]] = []
    for verdict in VERDICTS:
        rows += [_row(change) for change in with_verdict(changes, verdict)]
    return rows


def _row(change: Change) -> list[str]:
    """The cells of a figure, in the order of ``_COLUMNS``."""
    return [
        change.name,
        change.figure.name,
        change.verdict_words,
        change.ratio_words,
        change.figure.value_words(change.base.median),
        change.figure.value_words(change.new.median),
    ]


def _loop_object(loop: LoopChange) -> dict[str, Any]:
    """A pair of loops as JSON: what was changed, and the predicted and the measured gain."""
    return {
        "group": loop.group,
        "device": loop.device,
        "changed": list(loop.changed),
        "applied": list(loop.applied),
        "predicted": asdict(loop.predicted) if loop.predicted else None,
        "found": asdict(loop.rate_change.ratio) if loop.rate_change else None,
    }


def _run_object(run: LabelledRun) -> dict[str, Any]:
    """A run as JSON: its name, its time, its machine and the number of its trials."""
    result = run.result
    done = sum(trial.status == "done" for trial in result.trials)
    return {
        "where": run.label,
        "name": result.name,
        "started": result.started,
        "machine": _machine(run),
        "rates": result.rates,
        "trials": f"{done} of {len(result.trials)} done",
    }


def _change_object(change: Change) -> dict[str, Any]:
    """The change of a figure as JSON: its values in both runs, its ratio and its verdict."""
    more, correction = change.more, change.correction
    return {
        "kind": change.kind,
        "name": change.name,
        "figure": change.figure.metric,
        "higher_is_better": change.figure.higher_is_better,
        "base": asdict(change.base),
        "new": asdict(change.new),
        **asdict(change.ratio),
        "p_value": change.p_value,
        "decides": change.decides,
        "adjusted_p_value": correction.adjusted_p_value if correction else None,
        "verdict": change.verdict,
        "why": change.why,
        "more_repeats": more.repeats if more else None,
        "more_repeats_at_least": more.at_least if more else None,
    }
