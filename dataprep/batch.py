"""Jobs in parts on AWS Batch: an array job of children, and a job that finalizes what they made.

Each child runs ``dataprep shard ... --part auto``, which finds its number in the environment that
Batch gives it. A child that is interrupted (spot) or fails is run again, and makes what lacks.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from dataprep.config import ShardConfig, load
from dataprep.errors import ConfigError, JobError
from dataprep.stores import StoreOptions

_STATES = ("SUBMITTED", "PENDING", "RUNNABLE", "STARTING", "RUNNING", "SUCCEEDED", "FAILED")
_ENDED = ("SUCCEEDED", "FAILED")
_MOST_CHILDREN = 10_000
_MOST_BYTES = 7_000  # Batch accepts 8,192 characters of overrides
_ATTEMPTS = 3
_FAILURES_TOLD = 20
_EVERY_S = 15.0
# 2 is a wrong request, which fails again.
_RETRIES = {
    "attempts": _ATTEMPTS,
    "evaluateOnExit": [
        {"onExitCode": "2", "action": "EXIT"},
        {"onReason": "*", "action": "RETRY"},
    ],
}


@dataclass(frozen=True, slots=True)
class Failed:
    """A child that failed, with all its attempts."""

    child: int
    reason: str
    exit_code: int
    log_stream: str


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a job, its children by state, and those that failed."""

    job: str
    state: str
    children: Mapping[str, int]
    failed: tuple[Failed, ...]

    @property
    def ended(self) -> bool:
        """Whether nothing of it will run any more."""
        return self.state in _ENDED

    @property
    def exit_code(self) -> int:
        """That of the failed child with the highest one; 1 where none ran; 0 until it fails."""
        if self.state != "FAILED":
            return 0
        return max([1, *(one.exit_code for one in self.failed)])

    def __str__(self) -> str:
        counts = [f"{count:,} {state.lower()}" for state, count in self.children.items() if count]
        lines = [f"{self.job}: {self.state.lower()}; children: {', '.join(counts)}"]
        told = self.failed[:_FAILURES_TOLD]
        lines += [f"  child {one.child}: {one.reason}; log stream {one.log_stream}" for one in told]
        if len(self.failed) > _FAILURES_TOLD:
            lines.append(f"  and {len(self.failed) - _FAILURES_TOLD:,} more")
        return "\n".join(lines)


def submit(config: str, *, queue: str, definition: str, children: int) -> tuple[str, str]:
    """Submit the array job and the one that finalizes; return their ids.

    Args:
        config: a YAML file. What one on this machine says travels in the children's command; from
            S3 they read it themselves.
        queue: name or ARN of the job queue.
        definition: name, ``name:revision`` or ARN of the job definition.
        children: how many, 2 to 10,000.

    Raises:
        ConfigError: the request is wrong; nothing was submitted.
        JobError: AWS refuses it.
    """
    if not 2 <= children <= _MOST_CHILDREN:
        raise ConfigError(f"--children {children}: an array job has 2 to {_MOST_CHILDREN:,}")
    job = load(config, {})
    if "://" not in job.output:
        raise ConfigError(
            f"output {job.output}: the children run on other machines: write to s3://"
        )
    told = [config] if "://" in config else _settings(job)
    shard = ["dataprep", "shard", *told, "--part", "auto"]
    if len(json.dumps(shard)) > _MOST_BYTES:
        raise ConfigError(
            f"{config} is too long for a command of Batch: copy it to S3 and give its address"
        )
    limit = ["--parts", str(children), "--max-failures", str(job.max_failures)]
    finalize = ["dataprep", "finalize", job.output, *limit, *_settings(job, "store")]
    common = {"jobQueue": queue, "jobDefinition": definition, "retryStrategy": _RETRIES}
    client = _client(job.store)
    with_children = _call(
        client.submit_job,
        **common,
        jobName=f"dataprep-{job.split}",
        arrayProperties={"size": children},
        containerOverrides={"command": shard},
    )
    array = str(with_children["jobId"])
    try:
        finalizing = _call(
            client.submit_job,
            **common,
            jobName=f"dataprep-{job.split}-finalize",
            dependsOn=[{"jobId": array}],
            containerOverrides={"command": finalize},
        )
    except JobError as error:
        raise JobError(
            f"the children were submitted ({array}), the finalize job was not: {error}"
        ) from None
    return array, str(finalizing["jobId"])


def _settings(config: ShardConfig, section: str | None = None) -> list[str]:
    """The keys that a config sets, as ``--set`` options; of one section or of all."""
    options = []
    for key, value in config.model_dump(mode="json", exclude_unset=True).items():
        if section in (None, key):
            options += ["--set", f"{key}={json.dumps(value)}"]
    return options


def status(job: str) -> Status:
    """The status of an array job, or of the job that waits for it.

    Raises:
        ConfigError: there is no such job.
        JobError: AWS refuses the request.
    """
    client = _client()
    (described,) = _described(client, [job])
    counts = described.get("arrayProperties", {}).get("statusSummary", {})
    for before in described.get("dependsOn", []):
        earlier = status(before["jobId"])
        if not earlier.ended or earlier.exit_code:
            return earlier
        counts = earlier.children
    children = {state: int(counts.get(state, 0)) for state in _STATES}
    failed: tuple[Failed, ...] = ()
    if described["status"] == "FAILED":
        failed = tuple(_failed(client, job, described))
    return Status(job, described["status"], children, failed)


def wait(job: str, report: Callable[[Status], None]) -> Status:
    """Report each change until the job has ended."""
    found = status(job)
    report(found)
    while not found.ended:
        time.sleep(_EVERY_S)
        before, found = found, status(job)
        if found != before:
            report(found)
    return found


def _failed(client: Any, job: str, described: Mapping[str, Any]) -> Iterator[Failed]:
    """The job itself if it has no children, else those that failed."""
    if "size" not in described.get("arrayProperties", {}):
        yield _failure(described)
        return
    pages = client.get_paginator("list_jobs").paginate(
        arrayJobId=job, jobStatus="FAILED", PaginationConfig={"PageSize": 100}
    )
    for page in _call(list, pages):  # at most 100 children each, as many as are described at once
        failed = [one["jobId"] for one in page["jobSummaryList"] if one["status"] == "FAILED"]
        if failed:
            yield from map(_failure, _described(client, failed))


def _failure(described: Mapping[str, Any]) -> Failed:
    _, _, number = described["jobId"].partition(":")
    container = described.get("container", {})
    reason = container.get("reason") or described.get("statusReason") or "no reason given"
    stream = container.get("logStreamName", "none")
    return Failed(int(number or 0), reason, int(container.get("exitCode", 1)), stream)


def _described(client: Any, jobs: Sequence[str]) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = _call(client.describe_jobs, jobs=jobs)["jobs"]
    if not found:
        raise ConfigError(f"{jobs[0]}: AWS Batch has no such job in this region")
    return found


def _client(store: StoreOptions | None = None) -> Any:
    """In the region of the config's store, or of the environment."""
    store = store or StoreOptions()
    try:
        session = boto3.session.Session(profile_name=store.profile, region_name=store.region)
        return session.client("batch")
    except BotoCoreError as error:
        raise ConfigError(f"AWS Batch: {error}") from None


def _call(method: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    try:
        return method(*arguments, **options)
    except (BotoCoreError, ClientError) as error:
        raise JobError(f"AWS Batch: {error}") from None
