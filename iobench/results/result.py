"""The result of a run, as stored in ``result.json`` and ``trials.jsonl``.

The number of the schema is 1. Newer versions of iobench added keys, which older files lack:

- of the result: ``forecast``, ``references``, ``rates``, ``run_id`` and ``hosts``;
- of a trial: ``hosts`` and ``time_zero_s``;
- of a trial's ``cold``: ``amplification`` and ``limits``;
- of a finding: ``primary``, ``title``, ``of``, ``share``, ``share_low``, ``share_high`` and
  ``recommendation``.

A reader ignores keys that it does not know. A new version may therefore add keys. A version that
removes a key, or changes the meaning of one, must raise the number of the schema. Older versions
then refuse its files.

``trials.jsonl`` is the log of a run. It has two kinds of lines:

- A line with the key ``name`` describes the run as in ``result.json``, but without its trials. If
  there are several of these lines, the last one counts.
- A line with the key ``trial`` is written when a trial ends. It has the trial, its ``series``, its
  ``samples`` and, in newer files, its ``spans``.

If the last line is incomplete, the run was killed while it wrote the line.
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
from dataprep.schema import STRUCTURE_ERRORS, malformed_as, parse, typed
from iobench.errors import ResultError
from iobench.results.trial import Span, Trial

SCHEMA = 1
"""The number of the schema, which this version writes and reads."""

RESULT = "result.json"
"""The name of the file with the result of a run that has ended."""

LOG = "trials.jsonl"
"""The name of the log of a run."""

STEADY_STATE = "steady-state"
"""The name of the rule by which this version measures rates of loops and loaders. Results of this
version have it in ``Result.rates``."""

_ADDED_KEYS_OF_COLD = ("amplification", "limits")
"""Keys of ``cold`` that newer versions added. An empty one is not written, as in older files."""

Columns: TypeAlias = Mapping[str, Sequence[float | None]]
"""Columns of equal length by their name."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence about the run, with its evidence.

    Attributes:
        code: the code of its rule in ``iobench.analysis.finding_rules``.
        severity: ``info``, ``warning`` or ``problem``.
        evidence: the figures on which it is based, with their intervals.
        advice: what to do: the remark beside the finding, or its recommendation in words.
        primary: whether it is the most important finding; at most one finding of a result is.
        title: a short heading; empty in older results.
        of: the group of the training loop that it is about; empty if it is about the whole run.
        share: the share of a loop's time that it explains, 0 to 1; None if it explains no time.
        share_low, share_high: the interval of the share; None without repeats.
        recommendation: the change to make, as in ``recommendations`` of the summary.
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
class HostFacts:
    """One of the hosts of a run on several hosts.

    Attributes:
        host: its number, from 0. ``Result.environment`` is that of host 0.
        differs: the properties of its environment that differ from host 0.
        requests: its requests to the rendezvous: ``puts``, ``gets``, ``lists``, ``deletes``.
    """

    host: int
    differs: Mapping[str, Any] = field(default_factory=dict)
    requests: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """A run: its machine, its config, its trials, and their analysis.

    Attributes:
        name: the name of the config.
        started: the time of the start, in ISO 8601 and UTC.
        environment: the machine, its storage and the versions of libraries.
        config: the config with all defaults.
        trials: all trials that have ended.
        summary: the analysed figures; empty until trials are done.
        findings: the findings, in any order.
        run_id: a part of the names of files and objects that the probes write. It stays the same
            after ``--resume``. Empty in results of older versions and of ``iobench.watch``.
        forecast: the estimated time and cost before the run; empty if there was no estimate.
        references: limits and prices that the figures are compared with
            (``iobench.config.references``).
        rates: the rule by which the rates of loops and loaders were measured. ``STEADY_STATE``, or
            empty for the rule of earlier versions, which also counted samples that had been
            fetched before the clock started.
        hosts: the hosts that measured at the same time; empty for a single host. The ``metrics`` of
            a trial are then from host 0, and its ``hosts`` has the figures of all hosts.
        schema: the number of the schema.
    """

    name: str
    started: str
    environment: Mapping[str, Any]
    config: Mapping[str, Any]
    trials: Sequence[Trial] = ()
    summary: Mapping[str, Any] = field(default_factory=dict)
    findings: Sequence[Finding] = ()
    run_id: str = ""
    forecast: Mapping[str, Any] = field(default_factory=dict)
    references: Mapping[str, Any] = field(default_factory=dict)
    rates: str = ""
    hosts: Sequence[HostFacts] = ()
    schema: int = SCHEMA

    def with_trial(self, trial: Trial) -> Result:
        """Return the same run with another trial added."""
        return replace(self, trials=(*self.trials, trial))

    def to_json(self) -> bytes:
        """Return the content of ``result.json``."""
        content = asdict(replace(self, trials=()))
        content["trials"] = [trial_content(trial) for trial in self.trials]
        if not self.rates:  # files of earlier versions do not have the key
            del content["rates"]
        if not self.hosts:
            del content["hosts"]
        ordered = {"schema": content.pop("schema"), **content}
        return json.dumps(ordered, indent=1, allow_nan=False).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes, name: str) -> Result:
        """Read what ``to_json`` wrote.

        Raises:
            ResultError: the data is not the result of a run.
            SchemaTooNew: a newer version wrote it.
        """
        with malformed_as(ResultError, f"{name}: not the result of a run"):
            content = parse(data, name, SCHEMA)
            json.dumps(content, allow_nan=False)  # Python also parses NaN, which is not JSON
            result = typed(cls, content)
        return replace(
            result,
            trials=tuple(result.trials),
            findings=tuple(result.findings),
            hosts=tuple(result.hosts),
        )


def trial_content(trial: Trial) -> dict[str, Any]:
    """Return a trial as a JSON object. Keys that older versions do not know are left out if empty.

    These keys are ``hosts``, ``time_zero_s`` and the keys that were added to ``cold``.
    """
    content = asdict(trial)
    if trial.hosts is None:
        del content["hosts"]
    cold = content["cold"]
    if cold:
        for key in _ADDED_KEYS_OF_COLD:
            if cold[key] in (None, ()):
                del cold[key]
    if not trial.time_zero_s:
        del content["time_zero_s"]
    return content


@contextlib.contextmanager
def errors_naming(*runs: Path) -> Iterator[None]:
    """Name the saved runs in the error message if their content has an unexpected form.

    Raises:
        ResultError: replaces a ``KeyError``, ``TypeError`` or the like that the content caused.
    """
    try:
        yield
    except DataprepError:
        raise
    except STRUCTURE_ERRORS as error:
        paths = ", ".join(str(run) for run in runs)
        cause = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise ResultError(
            f"{paths}: the result cannot be read by this version ({cause}): the run was changed by "
            "hand, or it is damaged; --debug shows where"
        ) from error


def read_result(file: Path, run: Path) -> Result:
    """Read the result of a run.

    Args:
        file: the file that holds the result.
        run: the path that the user gave, for the message.

    Raises:
        ResultError: the file cannot be read, or it holds no result.
        SchemaTooNew: a newer version wrote it.
    """
    try:
        return Result.from_json(file.read_bytes(), str(file))
    except OSError as error:
        raise ResultError(
            f"no run in {str(run)!r} ({file}: {error.strerror}): give the --output folder of "
            "iobench run"
        ) from None


@dataclass(frozen=True, slots=True)
class RunLog:
    """The content of ``trials.jsonl``.

    Attributes:
        result: the run with its trials.
        series: the columns of the steps, by the id of the trial.
        samples: the columns of the readings, by the id of the trial.
        spans: the spans, by the id of the trial.
    """

    result: Result
    series: Mapping[str, Columns]
    samples: Mapping[str, Columns]
    spans: Mapping[str, Sequence[Span]]


def run_line(result: Result) -> bytes:
    """Return the line of a log that describes the run."""
    content = json.loads(replace(result, trials=(), summary={}, findings=()).to_json())
    return _line(content)


def trial_line(
    trial: Trial, series: Columns, samples: Columns, spans: Sequence[Span] = ()
) -> bytes:
    """Return the line of a log for a trial.

    Args:
        trial: the trial.
        series: the columns of its steps; NaN is written as null.
        samples: the columns of the readings of the machine; NaN is written as null.
        spans: its spans.
    """
    content = {
        "trial": trial_content(trial),
        "series": _without_nan(series),
        "samples": _without_nan(samples),
        "spans": [asdict(span) for span in spans],
    }
    return _line(content)


def read_log(data: bytes, name: str) -> RunLog:
    """Read a log. If a trial ran again, only its last outcome counts.

    Args:
        data: the content of the file.
        name: the name of the file, for messages.

    Raises:
        ResultError: the data is not the log of a run, or it is damaged.
        SchemaTooNew: a newer version wrote it.
    """
    with malformed_as(ResultError, f"{name}: not the log of a run"):
        run, lines_by_id = _parse_log(data)
        run["trials"] = [content["trial"] for content in lines_by_id.values()]
        result = Result.from_json(json.dumps(run).encode(), name)
        series, samples, spans = {}, {}, {}
        for trial_id, content in lines_by_id.items():
            if content["series"]:
                series[trial_id] = content["series"]
            if content["samples"]:
                samples[trial_id] = content["samples"]
            if content.get("spans"):
                spans[trial_id] = typed(list[Span], content["spans"])
    return RunLog(result, series, samples, spans)


def _parse_log(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the last line that describes the run, and the last line of each trial by its id."""
    run: dict[str, Any] = {}
    lines_by_id: dict[str, Any] = {}
    for line in data.splitlines(keepends=True):
        if not line.endswith(b"\n"):
            continue  # the run was killed while it wrote this line
        content = json.loads(line)
        if "trial" in content:
            trial_id = content["trial"]["id"]
            lines_by_id.pop(trial_id, None)  # the last outcome also comes last in order
            lines_by_id[trial_id] = content
        else:
            run = content
    return run, lines_by_id


def _without_nan(columns: Columns) -> dict[str, list[float | None]]:
    """Replace NaN by None, because JSON has no NaN."""
    without_nan: dict[str, list[float | None]] = {}
    for name, values in columns.items():
        without_nan[name] = [
            None if value is None or math.isnan(value) else value for value in values
        ]
    return without_nan


def _line(content: Mapping[str, Any]) -> bytes:
    """Return a line of a log."""
    return json.dumps(content, allow_nan=False).encode() + b"\n"
