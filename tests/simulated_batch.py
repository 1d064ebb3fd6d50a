"""AWS Batch as moto simulates it: jobs end at once and run no command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

QUEUE, DEFINITION = "machines", "dataprep"


def batch_queue(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of a simulated AWS Batch with a queue and a job definition."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws(config={"batch": {"use_docker": False}}):
        role = boto3.client("iam").create_role(RoleName="batch", AssumeRolePolicyDocument="{}")
        client = boto3.client("batch")
        environment = client.create_compute_environment(
            computeEnvironmentName="spot",
            type="UNMANAGED",
            serviceRole=role["Role"]["Arn"],
        )
        order = [{"order": 0, "computeEnvironment": environment["computeEnvironmentArn"]}]
        client.create_job_queue(
            jobQueueName=QUEUE, priority=1, computeEnvironmentOrder=order, state="ENABLED"
        )
        client.register_job_definition(
            jobDefinitionName=DEFINITION,
            type="container",
            containerProperties={"image": "dataprep", "vcpus": 1, "memory": 512},
        )
        yield client
