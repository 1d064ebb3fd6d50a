"""What a run found, as ``result.json`` keeps it.

Schema history: 1, the first. Since then parts were added that may be missing: ``forecast``,
``references``, and of a trial's coldness ``amplification`` and ``limits``; of findings ``title``,
``threshold``, ``share`` and ``primary``.
A reader takes what it knows and leaves other keys of the same schema aside, so that a version can
add a part without shutting out the ones before it. What changes the meaning of a key, or takes one
away, raises the number, and an older version refuses it by name.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar, get_args

from dataprep.errors import DataprepError
from dataprep.schema import MISSHAPEN, malformed_as, parse
from iobench.errors import ResultError
from iobench.trial import Cold, Status, Trial

SCHEMA = 1
RESULT = "result.json"

# Parts that a trial's coldness has been given since: absent where they say nothing.
_ADDED_TO_COLD = ("amplification", "limits")

Part = TypeVar("Part")


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
            json.dumps(content, allow_nan=False)  # Python reads NaN, which nobody else does
            trials = tuple(_trial(trial) for trial in content.pop("trials"))
            findings = tuple(_known(Finding, finding) for finding in content.pop("findings"))
            return _sound(_known(cls, {**content, "trials": trials, "findings": findings}))


def trial_content(trial: Trial) -> dict[str, Any]:
    """As stored."""
    content = asdict(trial)
    if cold := content["cold"]:
        for added in _ADDED_TO_COLD:
            if cold[added] in (None, ()):
                del cold[added]
    return content


def _trial(content: Mapping[str, Any]) -> Trial:
    cold = _known(Cold, content["cold"]) if content["cold"] else None
    return _known(Trial, {**content, "cold": cold})


def _known(kind: type[Part], content: Mapping[str, Any]) -> Part:
    """What a version knows of a part; keys that a later one has added are left aside."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{key: value for key, value in content.items() if key in names})


def _sound(result: Result) -> Result:
    """The same, after a look at what everything that reads a result relies on.

    Raises:
        TypeError: a part of it is something else.
    """
    parts = {"environment": result.environment, "config": result.config}
    texts = {"name": result.name, "started": result.started}
    for trial in result.trials:
        parts |= {f"params of {trial.id}": trial.params, f"metrics of {trial.id}": trial.metrics}
        texts |= {f"kind of {trial.id}": trial.kind, f"reason of {trial.id}": trial.reason}
        if trial.cold is not None:
            texts |= {f"cold of {trial.id}": trial.cold.label, "asked": trial.cold.asked}
        if trial.status not in get_args(Status):
            raise TypeError(f"the status of {trial.id} is {trial.status!r}")
    for kind, found in ((Mapping, parts), (str, texts)):
        for what, value in found.items():
            if not isinstance(value, kind):
                raise TypeError(f"the {what} is {type(value).__name__}")
    if not isinstance(repeats := result.config.get("repeats", 0), int):
        raise TypeError(f"repeats in its config are {repeats!r}")
    return result


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
            f"{named}: its result holds what this version can make nothing of ({what}): the run "
            "was changed by hand, or is damaged; --debug shows where"
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
        raise ResultError(f"no run in {str(asked_for)!r}: {file}: {error.strerror}") from None
