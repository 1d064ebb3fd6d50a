"""The result of ``dataprep plan``: the predicted shards, duration and cost of a job.

The field names of these classes are the keys of ``dataprep plan --json``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta

from dataprep.job.report import Understood
from dataprep.message_text import counted
from dataprep.output.manifest import quirk_name

_MIN_SHOWN_S = 0.05  # a shorter step would be shown as 0.0 s


@dataclass(frozen=True)
class Requests:
    """Numbers of requests to an object store, by price class.

    Attributes:
        puts: PUT requests.
        gets: GET and HEAD requests.
        lists: LIST requests.
    """

    puts: int
    gets: int
    lists: int


@dataclass(frozen=True)
class Cost:
    """The cost of a job on AWS.

    Attributes:
        requests: the cost of all requests of the job.
        month: the cost of keeping the shards for a month; 0 if the output is not on S3.
        machine: the cost of ``instance`` while the job runs; None if its price is unknown.
        instance: the type of machine, such as ``c7i.16xlarge``.
        currency: the currency of the three costs.
        prices: where the prices come from.
    """

    requests: float
    month: float
    machine: float | None
    instance: str
    currency: str
    prices: str


@dataclass(frozen=True)
class TrialEstimate:
    """The predicted result of converting all samples of a job, from a trial with a few of them.

    Attributes:
        samples: the number of samples of the job.
        trial: the number of samples that were converted in the trial.
        bytes_by_format: the bytes of all records, by format.
        passthrough: the share of samples whose image is stored unchanged.
        reencoded: the share of samples whose image is encoded again.
        failed: the number of samples that will fail.
        skipped: the number of samples that will be skipped.
        met: the number of samples with each quirk, such as a colour profile. The manifest counts
            the same quirks.
    """

    samples: int
    trial: int
    bytes_by_format: Mapping[str, int]
    passthrough: float
    reencoded: float
    failed: int
    skipped: int
    met: Mapping[str, int]


@dataclass(frozen=True)
class SplitEstimate:
    """The predicted content of one split.

    Attributes:
        split: the name of the split.
        samples: the number of samples.
        shards: the number of shards in each format.
        bytes_by_format: the bytes of all shards, by format.
        entries: the number of source entries, including those that are not samples.
        failures: the number of entries that will fail.
        allowed: the number of entries that may fail (``max_failures``).
    """

    split: str
    samples: int
    shards: int
    bytes_by_format: Mapping[str, int]
    entries: int
    failures: int
    allowed: int


@dataclass(frozen=True)
class Estimate:
    """The result of ``dataprep plan``.

    Attributes:
        source: the address of the source.
        output: the address of the output.
        entries: the number of entries of the source.
        refused: the number of entries that are not samples, by the reason.
        classes: the number of classes in the labels of the output.
        splits: the estimate of each split.
        label_offsets: the number that records add to a label, by format.
        outcome: the predicted result of converting all samples.
        workers: the number of workers.
        duration: the seconds of each step of a run, by the name of the step.
        memory_bytes: the memory of all workers together.
        machine_bytes: the memory of this machine.
        requests: the requests to ``source`` and ``output``, for each of them that is on S3.
        cost: the cost of the job; None if nothing is on AWS or prices are unknown.
        warnings: problems that the job would have, one sentence for each.
        understood: how the source was interpreted.
        unlabelled: whether samples have no labels.
    """

    source: str
    output: str
    entries: int
    refused: Mapping[str, int]
    classes: int
    splits: tuple[SplitEstimate, ...]
    label_offsets: Mapping[str, int]
    outcome: TrialEstimate
    workers: int
    duration: Mapping[str, float]
    memory_bytes: int
    machine_bytes: int
    requests: Mapping[str, Requests]
    cost: Cost | None
    warnings: tuple[str, ...]
    understood: Understood
    unlabelled: bool = False

    def to_json(self) -> str:
        """Return the estimate as one JSON object."""
        content = asdict(self)
        content["duration"]["total"] = sum(self.duration.values())
        return json.dumps(content)

    def to_text(self) -> str:
        """Return the estimate as text for the terminal."""
        lines = [*self.understood.lines]
        for split in self.splits:
            lines += self._split_lines(split)
        lines += self._resource_lines()
        lines += self._image_lines()
        for reason, count in self.refused.items():
            lines.append(f"  refused    {reason}: {count:,}")
        lines += self._cost_lines()
        for warning in self.warnings:
            if warning not in self.understood.notes:
                lines.append(f"warning: {warning}")
        lines.append("Nothing was written.")
        return "\n".join(lines)

    def _split_lines(self, split: SplitEstimate) -> list[str]:
        """The samples, shards and failures of a split, and its size in each format."""
        about = "" if self.outcome.trial == self.outcome.samples else "about "
        failures = ""
        if split.failures:
            failures = f" ({about}{split.failures:,} of {split.entries:,} fail)"
        lines = [
            f"{split.split}: {counted(split.samples, 'photo')} would become "
            f"{counted(split.shards, 'shard')} per format in {self.output}{failures}"
        ]
        for name, size_bytes in split.bytes_by_format.items():
            labels = f"labels from {self.label_offsets[name]}"
            if self.unlabelled:
                labels = "no labels"
            shard_megabytes = size_bytes / split.shards / 1e6
            lines.append(
                f"  {name:<10} {size_bytes / 1e6:,.1f} MB, {shard_megabytes:,.1f} MB each; {labels}"
            )
        return lines

    def _resource_lines(self) -> list[str]:
        """The duration and the memory of the job."""
        steps = [
            f"{step} {seconds:,.1f} s"
            for step, seconds in self.duration.items()
            if seconds >= _MIN_SHOWN_S
        ]
        total = timedelta(seconds=math.ceil(sum(self.duration.values())))
        workers = counted(self.workers, "worker")
        memory = f"{self.memory_bytes / 1e9:,.1f} GB of {self.machine_bytes / 1e9:,.0f} GB"
        return [
            f"  time       about {total} with {workers} ({', '.join(steps)})",
            f"  memory     about {memory}",
        ]

    def _image_lines(self) -> list[str]:
        """What happens to the images, and the quirks that they have."""
        outcome = self.outcome
        shares = f"{outcome.reencoded:.0%} re-encoded, {outcome.passthrough:.0%} stored unchanged"
        quirks = [f"{quirk_name(quirk)} {count:,}" for quirk, count in outcome.met.items()]
        return [
            f"  images     {shares} (from {outcome.trial:,} conversions)",
            f"  quirks     {', '.join(quirks) or 'none'}",
        ]

    def _cost_lines(self) -> list[str]:
        """The requests to S3, and the cost of the job if it is known."""
        lines = []
        for location, requests in self.requests.items():
            lines.append(
                f"  requests   {location}: {requests.puts:,} PUT, {requests.gets:,} GET and HEAD, "
                f"{requests.lists:,} LIST"
            )
        cost = self.cost
        if cost is not None:
            lines.append(
                f"  cost       {cost.requests:,.4g} {cost.currency} for requests, "
                f"{cost.month:,.4g} {cost.currency} a month for storage ({cost.prices})"
            )
            if cost.machine is not None:
                machine = f"{cost.machine:,.4g} {cost.currency}"
                lines.append(f"  machine    {machine} for this time on {cost.instance}")
        return lines
