"""What a run found, as ``result.json`` keeps it.

Schema history: 1, the first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from dataprep.schema import malformed_as, parse
from iobench.errors import ResultError
from iobench.trial import Cold, Trial

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Finding:
    """Something worth saying. ``severity``: ``info``, ``warning`` or ``problem``."""

    code: str
    severity: str
    evidence: str
    advice: str


@dataclass(frozen=True, slots=True)
class Result:
    """One run. ``started`` is ISO 8601 in UTC; ``summary`` is empty until trials are done."""

    name: str
    started: str
    environment: Mapping[str, Any]
    config: Mapping[str, Any]
    trials: Sequence[Trial] = ()
    summary: Mapping[str, Any] = field(default_factory=dict)
    findings: Sequence[Finding] = ()
    schema: int = SCHEMA

    def with_trial(self, trial: Trial) -> Result:
        """The same run with one trial more."""
        return replace(self, trials=(*self.trials, trial))

    def to_json(self) -> bytes:
        """As stored."""
        content = asdict(self)
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
            trials = tuple(
                Trial(**{**trial, "cold": Cold(**trial["cold"]) if trial["cold"] else None})
                for trial in content.pop("trials")
            )
            findings = tuple(Finding(**finding) for finding in content.pop("findings"))
            return cls(trials=trials, findings=findings, **content)
