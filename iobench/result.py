"""The result of a run, as stored in ``result.json`` and ``trials.jsonl``.

Schema history: 1, the first. Since then parts were added that may be missing: ``forecast``,
``references``, ``rates``, ``run_id``, ``hosts``; of a trial ``hosts`` and ``time_zero_s``; of its
coldness ``amplification`` and ``limits``; of findings ``title``, ``threshold``, ``share`` and
``primary``.
A reader ignores keys that it does not know, so that a version can add a part which older versions
do not read. A version that removes a key or changes its meaning raises the number, and older
versions refuse its files.

``trials.jsonl`` is the log of a run: a line for each trial, written when it ends. A line with
``name`` is the run itself, as in ``result.json`` but without its trials; the last one counts. A
line with ``trial`` has the trial, its ``series``, its ``samples`` and, from this version on, its
``spans``. If the last line has no end, the run was killed while it wrote it.
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
from iobench.trial import Span, Trial

SCHEMA = 1
RESULT = "result.json"
LOG = "trials.jsonl"
STEADY_STATE = "steady-state"
"""The rule by which this version measures rates of loops and loaders: see ``Result.rates``."""

# Parts that were added to a trial's coldness later; left out if they are empty.
_ADDED_TO_COLD = ("amplification", "limits")

Columns: TypeAlias = Mapping[str, Sequence[float | None]]
"""Equally long columns by name."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding. ``severity``: ``info``, ``warning`` or ``problem``.

    Attributes:
        evidence: the figures behind it, with their intervals.
        advice: what to do about it, in a sentence.
        primary: whether it is the most important one; at most one of a result is.
        title: a few words; empty in older results.
        of: the training loop that it is about; empty if it is about the run.
        share: the part of a loop's time that it explains, 0 to 1; None if it explains no time.
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
class HostFacts:
    """One host of a run of several hosts.

    Attributes:
        host: its number, from 0. ``Result.environment`` is that of host 0.
        differs: the parts of its environment that differ from those of host 0.
        requests: its requests to the rendezvous: ``puts``, ``gets``, ``lists``, ``deletes``.
    """

    host: int
    differs: Mapping[str, Any] = field(default_factory=dict)
    requests: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """One run. ``started`` is ISO 8601 in UTC; ``summary`` is empty until trials are done.

    ``forecast`` is the prediction before it began; empty if there was none. ``references`` are the
    limits and prices that its figures are compared with (``iobench.references``). ``run_id`` is in
    the names of the files and objects that its probes write, also after ``--resume``; empty in
    results of older versions and of ``iobench.watch``.

    ``rates`` is the rule by which the rates of training loops and loaders were measured:
    ``STEADY_STATE``, or empty in results of the former rule, which counted samples that had been
    fetched before the clock started.

    ``hosts`` are the hosts that measured at the same time; empty for a single host. The ``metrics``
    of their trials are those of host 0, and ``hosts`` of a trial has the figures of all.
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
        """The same run with one trial more."""
        return replace(self, trials=(*self.trials, trial))

    def to_json(self) -> bytes:
        """The result as stored."""
        content = asdict(replace(self, trials=()))
        content["trials"] = [trial_content(trial) for trial in self.trials]
        if not self.rates:  # as in files of the former rule
            del content["rates"]
        if not self.hosts:
            del content["hosts"]
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
        return replace(
            found,
            trials=tuple(found.trials),
            findings=tuple(found.findings),
            hosts=tuple(found.hosts),
        )


def trial_content(trial: Trial) -> dict[str, Any]:
    """A trial as stored."""
    content = asdict(trial)
    if trial.hosts is None:
        del content["hosts"]
    if cold := content["cold"]:
        unsaid = [key for key in _ADDED_TO_COLD if cold[key] in (None, ())]
        content["cold"] = {key: value for key, value in cold.items() if key not in unsaid}
    if not trial.time_zero_s:
        del content["time_zero_s"]
    return content


@contextlib.contextmanager
def usable(*runs: Path) -> Iterator[None]:
    """Turn errors caused by the content of saved runs into one that names the runs.

    Raises:
        ResultError: a part of a run has an unexpected form; its cause is kept.
    """
    try:
        yield
    except DataprepError:
        raise
    except MISSHAPEN as error:
        named = ", ".join(str(run) for run in runs)
        what = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise ResultError(
            f"{named}: this version cannot read its result ({what}): the run was changed by "
            "hand, or is damaged; --debug shows where"
        ) from error


def read_result(file: Path, asked_for: Path) -> Result:
    """The result in a file; ``asked_for`` is the path that the user gave.

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
    """The content of a log.

    ``series`` and ``samples`` are columns by the id of their trial, ``spans`` are lists by that id.
    """

    result: Result
    series: Mapping[str, Columns]
    samples: Mapping[str, Columns]
    spans: Mapping[str, Sequence[Span]]


def run_line(result: Result) -> bytes:
    """The line of the run itself."""
    content = json.loads(replace(result, trials=(), summary={}, findings=()).to_json())
    return _line(content)


def trial_line(
    trial: Trial, series: Columns, samples: Columns, spans: Sequence[Span] = ()
) -> bytes:
    """The line of a trial."""
    content = {
        "trial": trial_content(trial),
        "series": _plain(series),
        "samples": _plain(samples),
        "spans": [asdict(span) for span in spans],
    }
    return _line(content)


def read_log(data: bytes, name: str) -> Logged:
    """Read a log; of a trial that ran again only the last outcome counts.

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
        spans = {
            key: typed(list[Span], content["spans"])
            for key, content in trials.items()
            if content.get("spans")
        }
    return Logged(result, series, samples, spans)


def _plain(columns: Columns) -> dict[str, list[float | None]]:
    """Columns with None for NaN, which JSON does not have."""
    return {
        name: [None if value is None or math.isnan(value) else value for value in values]
        for name, values in columns.items()
    }


def _line(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, allow_nan=False).encode() + b"\n"
