"""Run a job in parts on AWS Batch.

An array job makes the shards: each of its children makes one part. A second job finalizes the
splits. Each child runs ``dataprep shard ... --part auto``, which reads the number of the child from
the environment. A child that fails or is interrupted, for instance on a spot instance, is run again
and makes the missing shards.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from dataprep.config.shard_config import ShardConfig, load
from dataprep.errors import ConfigError, JobError
from dataprep.stores import StoreOptions

_STATES = ("SUBMITTED", "PENDING", "RUNNABLE", "STARTING", "RUNNING", "SUCCEEDED", "FAILED")
_END_STATES = ("SUCCEEDED", "FAILED")
_MIN_CHILDREN = 2
_MAX_CHILDREN = 10_000
_MAX_COMMAND_BYTES = 7_000  # Batch accepts 8,192 characters of container overrides
_MAX_ATTEMPTS = 3  # of a child that fails or is interrupted
_MAX_SHOWN_FAILURES = 20
_MAX_DESCRIBED_JOBS = 100  # the limit of DescribeJobs
_POLL_INTERVAL_S = 15.0
_RETRY_STRATEGY = {
    "attempts": _MAX_ATTEMPTS,
    "evaluateOnExit": [
        # Exit code 2 means that the request is wrong. It would fail again.
        {"onExitCode": "2", "action": "EXIT"},
        {"onReason": "*", "action": "RETRY"},
    ],
}


@dataclass(frozen=True, slots=True)
class Failed:
    """A child that has failed in all its attempts. The field names are keys of ``--json``.

    Attributes:
        child: the number of the child, which is the number of its part.
        reason: why it failed.
        exit_code: the exit code of the last attempt.
        log_stream: the name of its log stream in CloudWatch.
    """

    child: int
    reason: str
    exit_code: int
    log_stream: str


@dataclass(frozen=True, slots=True)
class Status:
    """The status of a job on AWS Batch. The field names are keys of ``--json``.

    Attributes:
        job: the id of the job.
        state: the state of the job, such as ``RUNNING``.
        children: the number of children of the array job in each state.
        failed: the children that have failed; empty until the whole job has failed. If the job is
            not an array job, it is itself the only element.
    """

    job: str
    state: str
    children: Mapping[str, int]
    failed: tuple[Failed, ...]

    @property
    def ended(self) -> bool:
        """Whether the job has ended, with or without success."""
        return self.state in _END_STATES

    @property
    def exit_code(self) -> int:
        """The highest exit code of the failed children, at least 1; 0 unless the job has failed."""
        if self.state != "FAILED":
            return 0
        return max([1, *(child.exit_code for child in self.failed)])

    def __str__(self) -> str:
        counts = [f"{count:,} {state.lower()}" for state, count in self.children.items() if count]
        children = f"; children: {', '.join(counts)}" if counts else ""
        lines = [f"{self.job}: {self.state.lower()}{children}"]
        lines.extend(
            f"  child {child.child}: {child.reason}; log stream {child.log_stream}"
            for child in self.failed[:_MAX_SHOWN_FAILURES]
        )
        if len(self.failed) > _MAX_SHOWN_FAILURES:
            lines.append(f"  and {len(self.failed) - _MAX_SHOWN_FAILURES:,} more")
        return "\n".join(lines)


def submit(config: str, *, queue: str, definition: str, children: int) -> tuple[str, str]:
    """Submit the array job, and the job that finalizes the splits after it.

    Args:
        config: a YAML file. The settings of a local file are passed to the children in their
            command. The children read a file on S3 themselves.
        queue: the name or ARN of the job queue.
        definition: the name, ``name:revision`` or ARN of the job definition.
        children: the number of children, 2 to 10,000. Each child makes one part.

    Returns:
        The ids of the array job and of the job that finalizes.

    Raises:
        ConfigError: the request is wrong; nothing was submitted.
        JobError: AWS refuses a request. If it refuses the second one, the array job was submitted,
            and the message has its id.
    """
    if not _MIN_CHILDREN <= children <= _MAX_CHILDREN:
        raise ConfigError(
            f"--children {children}: an array job has {_MIN_CHILDREN} to {_MAX_CHILDREN:,}"
        )
    job = load(config, {})
    if "://" not in job.output:
        raise ConfigError(
            f"output {job.output}: the children run on other machines: write to s3://"
        )
    config_arguments = [config] if "://" in config else _as_options(job)
    shard_command = ["dataprep", "shard", *config_arguments, "--part", "auto"]
    if len(json.dumps(shard_command)) > _MAX_COMMAND_BYTES:
        raise ConfigError(
            f"{config} is too long for a command of Batch: copy it to S3 and give its address"
        )
    finalize_command = [
        "dataprep",
        "finalize",
        job.output,
        "--parts",
        str(children),
        "--max-failures",
        str(job.max_failures),
        *_as_options(job, "store"),
    ]
    client = _client(job.store)
    job_options = {"jobQueue": queue, "jobDefinition": definition, "retryStrategy": _RETRY_STRATEGY}
    array_job = _call(
        client.submit_job,
        **job_options,
        jobName=f"dataprep-{job.split}",
        arrayProperties={"size": children},
        containerOverrides={"command": shard_command},
    )
    array_id = str(array_job["jobId"])
    try:
        finalize_job = _call(
            client.submit_job,
            **job_options,
            jobName=f"dataprep-{job.split}-finalize",
            dependsOn=[{"jobId": array_id}],
            containerOverrides={"command": finalize_command},
        )
    except JobError as error:
        raise JobError(
            f"the children were submitted ({array_id}), the finalize job was not: {error}"
        ) from None
    return array_id, str(finalize_job["jobId"])


def _as_options(config: ShardConfig, section: str | None = None) -> list[str]:
    """The settings of a config as ``--set`` options. ``section`` selects one top-level key.

    Settings that the config file does not have are left out. They have their defaults.
    """
    options = []
    for key, value in config.model_dump(mode="json", exclude_unset=True).items():
        if section is None or key == section:
            options += ["--set", f"{key}={json.dumps(value)}"]
    return options


def status(job: str) -> Status:
    """Return the status of an array job, or of the job that finalizes after it.

    Until the array job has succeeded, the status of the array job is returned for both.

    Args:
        job: the id of either job.

    Raises:
        ConfigError: there is no such job.
        JobError: AWS refuses the request.
    """
    client = _client()
    description = _describe(client, [job])[0]
    counts = description.get("arrayProperties", {}).get("statusSummary", {})
    for dependency in description.get("dependsOn", []):
        array_status = status(dependency["jobId"])
        if not array_status.ended or array_status.exit_code:
            return array_status
        counts = array_status.children
    children = {state: int(counts.get(state, 0)) for state in _STATES}
    failed: tuple[Failed, ...] = ()
    if description["status"] == "FAILED":
        failed = tuple(_failed_children(client, job, description))
    return Status(job, description["status"], children, failed)


def wait(job: str, report: Callable[[Status], None]) -> Status:
    """Wait until a job has ended.

    Args:
        job: the id of the job.
        report: called with the first status, and with each status that differs from the last.

    Returns:
        The last status.

    Raises:
        ConfigError, JobError: as ``status``.
    """
    current = status(job)
    report(current)
    while not current.ended:
        time.sleep(_POLL_INTERVAL_S)
        previous = current
        current = status(job)
        if current != previous:
            report(current)
    return current


def _failed_children(client: Any, job: str, description: Mapping[str, Any]) -> Iterator[Failed]:
    """Yield the failed children of an array job, or the job itself if it is not an array job."""
    if "size" not in description.get("arrayProperties", {}):
        yield _failure(description)
        return
    pages = client.get_paginator("list_jobs").paginate(
        arrayJobId=job, jobStatus="FAILED", PaginationConfig={"PageSize": _MAX_DESCRIBED_JOBS}
    )
    for page in _call(list, pages):
        summaries = page["jobSummaryList"]
        failed_ids = [item["jobId"] for item in summaries if item["status"] == "FAILED"]
        if failed_ids:
            for child_description in _describe(client, failed_ids):
                yield _failure(child_description)


def _failure(description: Mapping[str, Any]) -> Failed:
    """The failure of a child, from its description. The id of a child is ``ARRAY_ID:NUMBER``."""
    _, _, number = description["jobId"].partition(":")
    container = description.get("container", {})
    reason = container.get("reason") or description.get("statusReason") or "no reason given"
    return Failed(
        child=int(number or 0),
        reason=reason,
        exit_code=int(container.get("exitCode", 1)),
        log_stream=container.get("logStreamName", "none"),
    )


def _describe(client: Any, jobs: Sequence[str]) -> list[Mapping[str, Any]]:
    """Describe up to 100 jobs. Jobs that do not exist are left out.

    Raises:
        ConfigError: none of the jobs exists.
        JobError: AWS refuses the request.
    """
    descriptions: list[Mapping[str, Any]] = _call(client.describe_jobs, jobs=jobs)["jobs"]
    if not descriptions:
        raise ConfigError(f"{jobs[0]}: AWS Batch has no such job in this region")
    return descriptions


def _client(store: StoreOptions | None = None) -> Any:
    """Return a client of AWS Batch, with the profile and region of the store or the environment.

    Raises:
        ConfigError: there is no such profile, or no region.
    """
    if store is None:
        store = StoreOptions()
    try:
        session = boto3.session.Session(profile_name=store.profile, region_name=store.region)
        return session.client("batch")
    except BotoCoreError as error:
        raise ConfigError(f"AWS Batch: {error}") from None


def _call(method: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a method of AWS Batch, and raise its errors as JobError."""
    try:
        return method(*arguments, **options)
    except (BotoCoreError, ClientError) as error:
        raise JobError(f"AWS Batch: {error}") from None
