"""PURE. One training loop, as far as a diagnosis asks: shares of its time, and what went beside it.

Shares come from differences of wall times where the inputs for them were measured: a ladder of
inputs, or synthetic, warm and the farthest. Where they were not, a whole share is given to reading
or to preparing by how busy the processors were, as the cloud's guide has it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iobench.data.settings import AS_FILES
from iobench.diagnosis.rule import Share
from iobench.result import Result
from iobench.stats import median
from iobench.summary.points import figure
from iobench.trial import Trial

BUSY, IDLE = 0.80, 0.50
"""Of all processors: from the first on they are busy, below the second idle."""

_ABOVE = {
    "copy": ("synthetic",),
    "collate": ("copy",),
    "augment": ("collate",),
    "decode": ("augment",),
    "warm": ("decode",),
    "cold": ("warm",),
    "store": ("decode", "warm"),
}
"""The rungs above one of the ladder to which its difference is what it is called for."""

_ON_PROCESSOR = re.compile(r"\bthreads?\b")


@dataclass(frozen=True, slots=True)
class Loop:
    """What was measured of one group.

    Attributes:
        group: its entry in the summary.
        trials: under the farthest input, those that are done.
        resident: on data in the device's memory.
        rungs: share of each rung of the ladder that is one part alone, and lies on the way to the
            farthest; None for one that cannot be told from none. Empty without a ladder.
        processors: that the machine, or our control group, lets us use.
        resized: short side of its images in pixels, where they were resized for this run.
    """

    group: Mapping[str, Any]
    trials: Sequence[Trial]
    resident: Sequence[Trial]
    rungs: Mapping[str, Share | None]
    processors: float | None
    resized: int | None = None

    @property
    def name(self) -> str:
        """What the report calls it."""
        return str(self.group.get("group") or "the loop")

    def metric(self, name: str) -> float | None:
        """Its median over repeats; None where it was not measured."""
        return _median(self.trials, name)

    def rate(self, name: str) -> float | None:
        """``consumes``, ``warm`` or ``achieved``, samples/s."""
        found = Share.of(self.group.get(name))
        return found.median if found else None

    @property
    def param(self) -> Mapping[str, Any]:
        """Params of the farthest input's trials."""
        return self.trials[0].params if self.trials else {}

    @property
    def workers(self) -> int:
        """Of all its ranks together; 0 where the loop itself loads."""
        each = self.param.get("workers")
        ranks = self.group.get("devices")
        return (each if isinstance(each, int) else 0) * (ranks if isinstance(ranks, int) else 1)

    @property
    def on_gpu(self) -> bool:
        """Whether a real GPU computes."""
        told = self.param.get("device")
        if self.group.get("emulated") or told == "cpu" or not self.group.get("device"):
            return False
        return told == "gpu" or not _ON_PROCESSOR.search(str(self.group["device"]))

    @property
    def remote(self) -> bool:
        """Whether its farthest input is an object store."""
        return self.group.get("input") == "store"

    @property
    def ceiling_known(self) -> bool:
        """Whether the device was seen fed from its own memory."""
        return self.group.get("stall_fraction") is not None

    @property
    def stall(self) -> Share | None:
        """What input takes of its time: by the ceiling, else by how long the loop waited."""
        if self.ceiling_known:
            return Share.of(self.group["stall_fraction"])
        return Share.of(figure([_waiting(trial, self.on_gpu) for trial in self.trials], "share"))

    @property
    def is_split(self) -> bool:
        """Whether preparing and reading were told apart."""
        return self.group.get("preparation_stall") is not None

    @property
    def preparation(self) -> Share | None:
        """Decoding, augmenting, collating and copying; None where that cannot be told."""
        if self.is_split:
            return Share.of(self.group["preparation_stall"])
        if self.group.get("input") == "warm":
            return self.stall
        busy = self.metric("cpu_busy_share")
        return self.stall if busy is not None and busy >= BUSY else None

    @property
    def reading(self) -> Share | None:
        """Waiting for disk or store; None where that cannot be told."""
        if self.is_split:
            return Share.of(self.group.get("fetch_stall"))
        if self.group.get("input") == "warm":
            return None
        busy = self.metric("cpu_busy_share")
        return self.stall if busy is not None and busy < IDLE else None

    @property
    def cores_needed(self) -> float | None:
        """Processors that preparing takes at the rate that the device consumes.

        By the processor time that its workers took, or its own process where a device computes
        that is none of our processors; None where that was not seen.
        """
        consumes = self.rate("consumes")
        cpu_s = self.metric("worker_cpu_s_per_1000_samples") or None
        if cpu_s is None and (self.on_gpu or self.group.get("emulated")):
            cpu_s = self.metric("cpu_s_per_1000_samples")
        return consumes * cpu_s / 1000 if consumes and cpu_s is not None else None

    @property
    def cores_wanted(self) -> float | None:
        """The same of all that runs on processors: the device's own work too, where it is one."""
        consumes, cpu_s = self.rate("consumes"), self.metric("cpu_s_per_1000_samples")
        if self.on_gpu or self.group.get("emulated") or cpu_s is None:
            return self.cores_needed
        return consumes * cpu_s / 1000 if consumes else None

    @property
    def reads_files(self) -> bool:
        """Whether each sample is a file or an object."""
        return str(self.param.get("data", "")).partition("@")[0] in AS_FILES


def loops(result: Result, summary: Mapping[str, Any]) -> list[Loop]:
    """Each group of the summary, in its order."""
    found = []
    ladders = [one for one in summary.get("ladder") or () if isinstance(one, Mapping)]
    for group in summary.get("training") or ():
        done = [
            trial
            for trial in result.trials
            if trial.kind == "train" and trial.status == "done"
            if trial.params.get("group") == group.get("group")
        ]
        ladder = next((one for one in ladders if one.get("group") == group.get("group")), {})
        found.append(
            Loop(
                group,
                [trial for trial in done if trial.params.get("input") == group.get("input")],
                [trial for trial in done if trial.params.get("input") == "synthetic"],
                _rungs(ladder),
                _processors(result.environment),
                _resized(group, result.config),
            )
        )
    return found


def _rungs(ladder: Mapping[str, Any]) -> dict[str, Share | None]:
    """Rungs whose part is their own: measured, with the one above them measured as well."""
    found: dict[str, Share | None] = {}
    path = ladder.get("path")
    for rung in ladder.get("rungs") or ():
        name = rung.get("rung") if isinstance(rung, Mapping) else None
        if name not in _ABOVE or (path is not None and name not in path):
            continue
        if rung.get("above", _ABOVE[name][0]) in _ABOVE[name]:
            share = Share.of(rung.get("share"))
            tells = share is not None and (rung.get("tells", True) or share.repeats == 1)
            found[name] = share if tells else None
    return found


def _resized(group: Mapping[str, Any], config: Mapping[str, Any]) -> int | None:
    """Shards that were given, and the source's own images, are of whatever size they are."""
    data = config.get("data")
    form = str(group.get("data", "")).partition("@")[0].partition("-")[0]
    if not isinstance(data, Mapping) or form not in ("shards", "files") or data.get("shards"):
        return None
    size = data.get("size")
    return size if isinstance(size, int) else None


def _processors(environment: Mapping[str, Any]) -> float | None:
    told = [environment.get(key) for key in ("processors", "processor_quota")]
    return min((float(n) for n in told if isinstance(n, (int, float)) and n > 0), default=None)


def _waiting(trial: Trial, on_gpu: bool) -> Trial:
    """The trial with its ``share``: a host may wait while its GPU still computes."""
    waited = trial.metrics.get("wait_share")
    idle = 1 - float(trial.metrics.get("au_mlperf") or 0.0)
    share = min(waited, idle) if waited is not None and on_gpu else waited
    return Trial(trial.id, trial.kind, trial.params, trial.repeat, trial.status, {"share": share})


def _median(trials: Sequence[Trial], name: str) -> float | None:
    values = [trial.metrics.get(name) for trial in trials]
    known = [float(value) for value in values if isinstance(value, (int, float))]
    return median(known) if known else None
