"""The policies of docs/iam.md allow exactly the S3 calls that the commands make."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

import dataprep
from dataprep.cli.main import app
from dataprep.stores import StoreOptions
from dataprep.stores.s3 import S3Store
from iobench.servers.moto_server import MotoServer
from tests.commandline import in_process

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "iam.md"
# "Actions, resources, and condition keys for Amazon S3" in AWS' Service Authorization Reference.
RIGHTS = {
    "HeadBucket": "s3:ListBucket",
    "ListObjectsV2": "s3:ListBucket",
    "GetObject": "s3:GetObject",
    "HeadObject": "s3:GetObject",
    "PutObject": "s3:PutObject",
    "DeleteObject": "s3:DeleteObject",
}
ON_BUCKETS = {"s3:ListBucket"}

Rights = set[tuple[str, str]]
LOCKS: Rights = {("s3:DeleteObject", "OUTPUT/leases/*")}
"""This right is part of the right to remove any object, if a command has it."""
CLIENT: Any = BaseClient


def allowed() -> Mapping[str, Rights]:
    """The pairs of action and resource that the page allows to each command."""
    text = PAGE.read_text()
    rights_of_command: dict[str, Rights] = {}
    for title, policy in re.findall(r"^## (.+?)$.*?^```json\n(.*?)^```", text, re.M | re.S):
        rights = {
            (action, resource.removeprefix("arn:aws:s3:::"))
            for statement in json.loads(policy)["Statement"]
            for action in statement["Action"]
            for resource in statement["Resource"]
        }
        for command in title.split(", "):
            rights_of_command[command] = rights
    return rights_of_command


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch, bucket: str, s3_server: MotoServer) -> Rights:
    """The pairs of action and resource that are used from now on. The source has its own bucket."""
    used_rights: Rights = set()
    call = CLIENT._make_api_call

    def recording(client: BaseClient, operation: str, arguments: dict[str, Any]) -> object:
        side = "SOURCE" if arguments["Bucket"].endswith("-source") else "OUTPUT"
        right = RIGHTS[operation]
        # A right to remove any object includes the right to remove locks.
        leases = "leases/" if right == "s3:DeleteObject" and "/leases/" in arguments["Key"] else ""
        used_rights.add((right, side if right in ON_BUCKETS else f"{side}/{leases}*"))
        return call(client, operation, arguments)

    s3_server.create_bucket(f"{bucket}-source")
    monkeypatch.setattr(BaseClient, "_make_api_call", recording)
    return used_rights


Run = Callable[..., None]


@pytest.fixture
def run(s3_server: MotoServer) -> Run:
    """A function that runs a command in this process and checks that it succeeds."""

    def command(*arguments: str) -> None:
        in_process(*arguments, "--endpoint-url", s3_server.url, code=0)

    return command


@pytest.fixture
def job(bucket: str, s3_server: MotoServer, tree: Path) -> list[str]:
    """The options of a job whose source is on S3."""
    store = S3Store(f"s3://{bucket}-source", StoreOptions(endpoint_url=s3_server.url))
    for path in sorted(tree.rglob("*.JPEG"))[::6]:
        store.put(str(path.relative_to(tree)), path.read_bytes())
    arguments = ["--source", f"s3://{bucket}-source", "--output", f"s3://{bucket}/out"]
    return [*arguments, "--format", "tfrecord", "--format", "recordio", "--workers", "2"]


def test_every_command_that_knows_s3_is_there() -> None:
    """The page has a policy for each command that has an --endpoint-url option."""
    pages = " ".join(allowed())
    for command in app.registered_commands:
        assert command.callback is not None
        name = command.callback.__name__
        if "endpoint_url" in command.callback.__annotations__:
            assert name in pages, name


@pytest.mark.parametrize("command", ["plan", "shard", "part"])
def test_with_a_source(used: Rights, run: Run, job: list[str], command: str) -> None:
    """The calls of plan and shard are those of their policies, without any unused right.

    If the output has another split, plan reads its labels, which uses all rights of its policy.
    """
    used.clear()
    part = ("--part", "0/1") if command == "part" else ()
    run("plan" if command == "plan" else "shard", *job, *part)
    page = allowed()["plan" if command == "plan" else "shard"]
    if command == "plan":
        # An empty output has nothing for plan to read.
        assert used == page - {("s3:GetObject", "OUTPUT/*")}
        run("shard", *job)
        used.clear()
        run("plan", *job, "--split", "validation")
    assert used == page


def test_what_removes(
    used: Rights, run: Run, job: list[str], tree: Path, bucket: str, endpoint: StoreOptions
) -> None:
    """--overwrite and --retry-failed remove objects, and need only that additional right."""
    page = allowed()["shard --overwrite"]
    assert page == allowed()["shard --retry-failed"]
    run("shard", *job)
    used.clear()
    run("shard", *job, "--overwrite")
    assert used - LOCKS == page
    source = S3Store(f"s3://{bucket}-source", endpoint)
    victim = next(iter(source.list())).key
    content = source.get(victim)
    source.put(victim, bytes(len(content)))
    run("shard", *job, "--overwrite", "--max-failures", "1")
    source.put(victim, content)
    used.clear()
    run("shard", *job, "--retry-failed", "--max-failures", "1")
    assert used - LOCKS == page


def test_without_a_source(
    used: Rights, run: Run, job: list[str], bucket: str, endpoint: StoreOptions, tmp_path: Path
) -> None:
    """Commands on an output use only this output, as in their policies. Most of them only read."""
    output = f"s3://{bucket}/out"
    run("shard", *job, "--part", "0/1")
    for command in (
        ("finalize", output),
        ("verify", output, "--quick"),
        ("verify", output, "--deep"),
        ("inspect", output),
        ("stage", output, str(tmp_path / "host")),
    ):
        used.clear()
        run(*command)
        assert used == allowed()[command[0]]
    used.clear()
    dataset = dataprep.open(output, options=endpoint)
    assert dataset[3].image
    assert len(list(dataset)) == len(dataset)
    assert used <= allowed()["dataprep.open"]
    assert allowed()["dataprep.open"] == allowed()["inspect"]


def test_a_lock_that_may_not_be_removed_is_in_nobodys_way(
    used: Rights,
    run: Run,
    job: list[str],
    bucket: str,
    s3_server: MotoServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without the right to remove a lock, the lock object stays and the next run continues."""
    call = CLIENT._make_api_call

    def refusing(client: BaseClient, operation: str, arguments: dict[str, Any]) -> object:
        if operation == "DeleteObject":
            answer = {"Error": {"Code": "AccessDenied", "Message": "no"}}
            raise ClientError(answer, operation)  # type: ignore[arg-type]
        return call(client, operation, arguments)

    monkeypatch.setattr(BaseClient, "_make_api_call", refusing)
    used.clear()
    run("shard", *job, "--part", "0/1")
    run("shard", *job)
    assert not used & LOCKS
    store = S3Store(f"s3://{bucket}/out", StoreOptions(endpoint_url=s3_server.url))
    left = {info.key for info in store.list("leases/")}
    assert left == {"leases/train", "leases/train.0-of-1"}
    assert all(json.loads(store.get(key))["released"] for key in left)
    run("verify", f"s3://{bucket}/out", "--deep")
