"""Compare saved runs: as text, as JSON, or as a page."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dataprep.config import parse_share
from dataprep.counted import counted
from dataprep.errors import ConfigError, StoreError
from dataprep.names import escape
from iobench.analysis.comparison import (
    Comparison,
    Saved,
    compare,
    in_order,
    with_verdict,
)
from iobench.analysis.regressions import VERDICTS, Change, Verdict
from iobench.result import RESULT, Result, read_result
from iobench.rundir import read, write_file
from iobench.stats import SIGNIFICANCE

SCHEMA = 3
"""The schema of the JSON: 2 pairs loops by their group, 3 has figures that decide the exit code."""

DRIFT = "The runs were not interleaved: drift between them is not excluded."
_TITLES: Mapping[Verdict, str] = {
    "regression": "Worse",
    "improvement": "Better",
    "underpowered": "Underpowered: more repeats would tell",
    "no evidence": "No evidence of a change",
}
_SORTS = {
    "machine": "Machines differ",
    "untold": "Known for one run only",
    "software": "Software differs",
    "config": "Configs differ",
}
_MOST = 20


@dataclass(frozen=True, slots=True)
class Compared:
    """Runs compared with a base, the newest last. ``exit_code``: 1 if the newest is worse."""

    found: Sequence[Comparison]

    @property
    def newest(self) -> Comparison:
        """The comparison of the latest run."""
        return self.found[-1]

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return self.newest.exit_code

    @property
    def text(self) -> str:
        """The comparison for a terminal."""
        from iobench.report.page import from_template

        newest = self.newest
        every = (*newest.environment, *newest.config)
        page = from_template(
            "compare.txt.j2",
            found=self.found,
            newest=newest,
            run=_run,
            plain=escape,
            differences={t: [one for one in every if one.sort == s] for s, t in _SORTS.items()},
            deciding=_by_title(newest.deciding),
            listed=_by_title(newest.listed),
            count=counted,
            trend=list(self._trend()),
            most=_MOST,
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
            ConfigError: its name does not end in .html, or it cannot be written.
        """
        from iobench.report.page import from_template, packed

        page_name(path)
        page = from_template(
            "compare.html.j2",
            found=self.newest,
            machines=[_machine(self.newest.base), _machine(self.newest.new)],
            lines=self.text.splitlines(),
            tables=[table for comparison in self.found for table in _tables(comparison)],
            raw=packed(self._object()),
        )
        try:
            write_file(path, page)
        except StoreError as error:
            raise ConfigError(str(error)) from None

    def _object(self) -> dict[str, Any]:
        newest = comparison_object(self.newest)
        if len(self.found) == 1:
            return newest
        return {**newest, "comparisons": [comparison_object(each) for each in self.found]}

    def _trend(self) -> Iterator[str]:
        """The medians of every figure in all runs."""
        steps = [{(c.name, c.figure.metric): c for c in one.changes} for one in self.found]
        for key, last in steps[-1].items():
            medians = [last.figure.say(last.base.median)]
            for step in steps:
                change = step.get(key)
                medians.append("none" if change is None else change.figure.say(change.new.median))
            yield f"{last.name}, {last.figure.name}: {' -> '.join(medians)}"


def compare_saved(
    runs: Sequence[Path], against: Path | None, threshold: float, *, force: bool = False
) -> Compared:
    """Compare saved runs with the first one, or with ``against`` if it is given.

    Raises:
        ConfigError: nothing to compare with.
        ResultError, SchemaTooNew: a run cannot be read.
        NotComparable: they have nothing in common, or differ in images, model or sizes.
    """
    paths = [against, *runs] if against else list(runs)
    if len(paths) < 2:
        raise ConfigError("compare takes two runs: BASE_DIR NEW_DIR, or NEW_DIR --against BASELINE")
    base, *others = (Saved(label(path), read_saved(path)) for path in paths)
    ordered = [saved for saved in in_order(base, others) if saved is not base]
    return Compared([compare(base, other, threshold, force=force) for other in ordered])


def comparison_object(found: Comparison) -> dict[str, Any]:
    """A comparison as JSON; ``changes`` has an object for each figure."""
    return {
        "schema": SCHEMA,
        "verdict": found.sentence,
        "exit_code": found.exit_code,
        "threshold": found.threshold,
        "base": _run_object(found.base),
        "new": _run_object(found.new),
        "unlike_machines": bool(found.machine_differences),
        "deciding": {
            "figures": len(found.deciding),
            "by": found.decided_by,
            "significance": SIGNIFICANCE,
            "correction": "Holm",
            "underpowered": found.more_repeats > 0,
            "more_repeats": found.more_repeats or None,
        },
        "environment": [asdict(each) for each in found.environment],
        "config": [asdict(each) for each in found.config],
        "loops": [
            {
                "group": one.group,
                "device": one.device,
                "changed": list(one.changed),
                "applied": list(one.applied),
                "predicted": asdict(one.predicted) if one.predicted else None,
                "found": asdict(one.rate_change.ratio) if one.rate_change else None,
            }
            for one in found.loops
        ],
        "changes": [_change_object(change) for change in found.changes],
        "alone": list(found.unpaired),
        "notes": [*filter(None, [found.rule_note]), DRIFT],
    }


def read_saved(path: Path) -> Result:
    """The result of a run's folder, or of a file that was ``result.json`` in one.

    Raises:
        ResultError: there is none.
        SchemaTooNew: written by a newer version.
    """
    return read_result(path, path) if path.is_file() else read(path)


def threshold_share(text: str) -> float:
    """``5%`` as 0.05.

    Raises:
        ConfigError: no share above 0 and below 1.
    """
    try:
        share = float(parse_share(text))
    except ValueError as error:
        raise ConfigError(f"--threshold: {error}") from None
    if not 0 < share < 1:
        raise ConfigError(f"--threshold {text}: give more than 0% and less than 100%")
    return share


def page_name(path: Path) -> None:
    """Refuse a name without .html, since the page overwrites the file.

    Raises:
        ConfigError: it does not end in .html.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"--html {path}: give a file that ends in .html")


def label(path: Path) -> str:
    """The name of a run: that of its folder or its file, without the path."""
    named = Path(os.path.abspath(path))  # noqa: PTH100  a link keeps the name that it was given
    return named.parent.name if named.name == RESULT else named.name


def _run(run: Saved) -> str:
    result = run.result
    done = sum(trial.status == "done" for trial in result.trials)
    others = len(result.trials) - done
    parts = [
        *dict.fromkeys((run.where, result.name)),
        result.started.replace("+00:00", "Z"),
        _machine(run),
        f"{done} trials done",
        f"{others} not" if others else "",
    ]
    return ", ".join(map(escape, filter(None, parts)))


def _machine(run: Saved) -> str:
    """``AMD EPYC, 2 CPUs, 8 × NVIDIA H100``."""
    environment = run.result.environment
    processor = str(environment.get("processor") or "")
    parts = [processor, f"{environment.get('processors', '?')} CPUs"]
    if gpus := environment.get("gpus") or ():
        names = dict.fromkeys(str(gpu.get("name", "GPU")) for gpu in gpus)
        parts.append(f"{len(gpus)} × {', '.join(names)}")
    return ", ".join(filter(None, parts))


def _by_title(changes: Sequence[Change]) -> dict[str, list[Change]]:
    return {title: with_verdict(changes, verdict) for verdict, title in _TITLES.items()}


def _tables(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """The figures that decide and the listed ones, each as a table."""
    runs = f"{comparison.new.where} / {comparison.base.where}"
    yield {
        **_table(comparison.deciding),
        "title": f"{runs}: figures that decide the exit code ({comparison.decided_by})",
        "note": "An adjusted p-value of at most 0.05 is significant. The adjustment is for the "
        "number of these figures, by Holm's method.",
    }
    yield {
        **_table(comparison.listed),
        "title": f"{runs}: other figures",
        "note": "These verdicts are not corrected for the number of figures: some of many figures "
        "change by chance.",
    }


def _table(changes: Sequence[Change]) -> dict[str, Any]:
    columns = ("point", "figure", "verdict", "change: ratio and interval", "base", "new")
    rows = [
        [change.name, change.figure.name, change.verdict_words, change.ratio_words]
        + [change.figure.say(side.median) for side in (change.base, change.new)]
        for verdict in VERDICTS
        for change in with_verdict(changes, verdict)
    ]
    return {"columns": columns, "rows": rows}


def _run_object(run: Saved) -> dict[str, Any]:
    result = run.result
    done = sum(trial.status == "done" for trial in result.trials)
    return {
        "where": run.where,
        "name": result.name,
        "started": result.started,
        "machine": _machine(run),
        "rates": result.rates,
        "trials": f"{done} of {len(result.trials)} done",
    }


def _change_object(change: Change) -> dict[str, Any]:
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
