"""``trials.jsonl``: what a run measures, a line for each trial when it ends.

A line with ``name`` is the run itself, as in ``result.json`` but without its trials; of several the
last one counts. A line with ``trial`` has the trial and its ``series`` and ``samples``. A last line
without an end is of a run that was killed while it wrote.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from dataprep.schema import malformed_as
from iobench.errors import ResultError
from iobench.result import Result, trial_content
from iobench.trial import Trial

LOG = "trials.jsonl"

Columns: TypeAlias = Mapping[str, Sequence[float | None]]
"""Equally long columns by name."""


@dataclass(frozen=True, slots=True)
class Logged:
    """What a log holds; ``series`` and ``samples`` are columns by the id of their trial."""

    result: Result
    series: Mapping[str, Columns]
    samples: Mapping[str, Columns]

    def lines(self) -> Iterator[bytes]:
        """A log of the trials of ``result``."""
        yield run_line(self.result)
        for trial in self.result.trials:
            columns = self.series.get(trial.id, {}), self.samples.get(trial.id, {})
            yield trial_line(trial, *columns)


def run_line(result: Result) -> bytes:
    """The line of the run itself."""
    content = json.loads(replace(result, trials=(), summary={}, findings=()).to_json())
    return _line(content)


def trial_line(trial: Trial, series: Columns, samples: Columns) -> bytes:
    """The line of a trial."""
    named = {"series": _plain(series), "samples": _plain(samples)}
    return _line({"trial": trial_content(trial), **named})


def read_log(data: bytes, name: str) -> Logged:
    """What was logged; a trial that ran again is there once, as it came out last.

    Raises:
        ResultError: no such log, or a damaged one.
        SchemaTooNew: written by a newer version.
    """
    run: dict[str, Any] = {}
    trials: dict[str, Any] = {}
    with malformed_as(ResultError, f"{name}: not the log of a run"):
        for line in data.splitlines(keepends=True):
            if line.endswith(b"\n"):
                content = json.loads(line)
                if "trial" in content:
                    trials.pop(content["trial"]["id"], None)
                    trials[content["trial"]["id"]] = content
                else:
                    run = content
        run["trials"] = [content["trial"] for content in trials.values()]
        result = Result.from_json(json.dumps(run).encode(), name)
        series, samples = (
            {key: content[kind] for key, content in trials.items() if content[kind]}
            for kind in ("series", "samples")
        )
    return Logged(result, series, samples)


def _plain(columns: Columns) -> dict[str, list[float | None]]:
    """JSON has no NaN."""
    return {
        name: [None if value is None or math.isnan(value) else value for value in values]
        for name, values in columns.items()
    }


def _line(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, allow_nan=False).encode() + b"\n"
