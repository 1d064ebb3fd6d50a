"""What a run found, as ``result.json`` and ``trials.jsonl`` keep it.

Schema history: 1, the first. Since then parts were added that may be missing: ``forecast``,
``references``, and of a trial's coldness ``amplification`` and ``limits``; of findings ``title``,
``threshold``, ``share`` and ``primary``.
A reader takes what it knows and leaves other keys of the same schema aside, so that a version can
add a part without shutting out the ones before it. What changes the meaning of a key, or takes one
away, raises the number, and an older version refuses it by name.

``trials.jsonl`` is the log of a run: a line for each trial, written when it ends. A line with
``name`` is the run itself, as in ``result.json`` but without its trials; the last one counts. A
line with ``trial`` has the trial, its ``series`` and its ``samples``. If the last line has no end,
the run was killed while it wrote it.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from dataprep.errors import DataprepError
from dataprep.schema import MISSHAPEN, malformed_as, parse, typed
from iobench.errors import ResultError
from iobench.trial import Trial

SCHEMA = 1
RESULT = "result.json"
LOG = "trials.jsonl"

# Parts that a trial's coldness has been given since: absent where they say nothing.
_ADDED_TO_COLD = ("amplification", "limits")

Columns: TypeAlias = Mapping[str, Sequence[float | None]]
"""Equally long columns by name."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something worth saying. ``severity``: ``info``, ``warning`` or ``problem``.

    Attributes:
        evidence: the figures behind it, with their intervals.
        advice: what to do about it, in a sentence.
        primary: whether it is the one to begin with; at most one of a result is.
        title: what its rule says, in a few words; empty in older results.
        of: the training loop that it is about; empty where it is about the run.
        share: the part of a loop's time that it explains, 0 to 1; None where that has no meaning.
        share_low, share_high: its interval; None without repeats.
        recommendation: the change to make, as under ``recommendations`` of the summary.
    """

    code: str
    severity: str
    evidence: str
    advice: str
    primary: bool = False
    title: str = ""
    of: str = ""
    share: float | None = None
    share_low: float | None = None
    share_high: float | None = None
    recommendation: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """One run. ``started`` is ISO 8601 in UTC; ``summary`` is empty until trials are done.

    ``forecast`` is what was predicted before it began (``forecast.content.totals``), empty where
    nothing was. ``references`` are the limits and prices that its figures are held against
    (``iobench.references``).
    """

    name: str
    started: str
    environment: Mapping[str, Any]
    config: Mapping[str, Any]
    trials: Sequence[Trial] = ()
    summary: Mapping[str, Any] = field(default_factory=dict)
    findings: Sequence[Finding] = ()
    forecast: Mapping[str, Any] = field(default_factory=dict)
    references: Mapping[str, Any] = field(default_factory=dict)
    schema: int = SCHEMA

    def with_trial(self, trial: Trial) -> Result:
        """The same run with one trial more."""
        return replace(self, trials=(*self.trials, trial))

    def to_json(self) -> bytes:
        """As stored."""
        content = asdict(replace(self, trials=()))
        content["trials"] = [trial_content(trial) for trial in self.trials]
        ordered = {"schema": content.pop("schema"), **content}
        return json.dumps(ordered, indent=1, allow_nan=False).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes, name: str) -> Result:
        """Read what ``to_json`` wrote.

        Raises:
            ResultError: no result of a run.
            SchemaTooNew: written by a newer version.
        """
        with malformed_as(ResultError, f"{name}: not the result of a run"):
            content = parse(data, name, SCHEMA)
            json.dumps(content, allow_nan=False)  # Python reads NaN, which is no JSON
            found = typed(cls, content)
        return replace(found, trials=tuple(found.trials), findings=tuple(found.findings))


def trial_content(trial: Trial) -> dict[str, Any]:
    """As stored."""
    content = asdict(trial)
    if cold := content["cold"]:
        for added in _ADDED_TO_COLD:
            if cold[added] in (None, ()):
                del cold[added]
    return content


@contextlib.contextmanager
def usable(*runs: Path) -> Iterator[None]:
    """Saved runs are anybody's files: what cannot be made of one is an error that names it.

    Raises:
        ResultError: a part of a run is not what a run of this schema has; its cause is kept.
    """
    try:
        yield
    except DataprepError:
        raise
    except MISSHAPEN as error:
        named = ", ".join(str(run) for run in runs)
        what = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise ResultError(
            f"{named}: its result cannot be read ({what}): the run was changed by hand or is "
            "damaged; --debug shows where"
        ) from error


def read_result(file: Path, asked_for: Path) -> Result:
    """The result in a file, which somebody asked for as ``asked_for``.

    Raises:
        ResultError: there is none.
        SchemaTooNew: written by a newer version.
    """
    try:
        return Result.from_json(file.read_bytes(), str(file))
    except OSError as error:
        raise ResultError(
            f"no run in {str(asked_for)!r} ({file}: {error.strerror}): give the --output folder of "
            "iobench run"
        ) from None


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
