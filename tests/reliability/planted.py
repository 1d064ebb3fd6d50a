"""Secrets are planted where people keep them, everything is run, and all that was written is read.

``PYTHONPATH=. python -m tests.reliability.planted [--seed S] [--save]``
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import datetime
import io
import os
import re
import secrets
import string
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

import pandas as pd

from dataprep.stores import StoreOptions, open_store
from iobench.s3_server import MotoServer
from tests.commandline import Finished, dataprep, iobench
from tests.reliability.rows import Row, Tried, save

BUCKET = "planted"
_PACKED = re.compile(rb"[A-Za-z0-9+/]{200,}={0,2}")
_RUN = """
name: planted
repeats: 1
data:
  images: 24
  classes: 2
  size: 64
  shard_size: 1MB
  folder: {folder}/data
  bucket: {{uri: "s3://{bucket}/bench"{store}}}
disk:
  targets: [{{label: here, path: {folder}}}]
  file_bytes: 1MiB
  operations: [read]
  patterns: [sequential]
  block_bytes: [128KiB]
  parallelism: [1]
  seconds: 0.05
object_store:
  targets: [{{label: s3, uri: "s3://{bucket}/probe"{store}}}]
  operations: [get, put]
  object_bytes: [10kB]
  connections: [1]
  clients: [boto3, obstore]
  seconds: 0.05
loaders:
  - {{loader: raw, data: [shards@s3, files@disk], workers: 1, seconds: 0.05}}
training:
  - group: paced
    consumer: paced
    images_per_s: 5000
    loader: raw
    workers: 1
    steps: 4
    batch_size: 8
"""


@dataclass(frozen=True)
class Secret:
    """One value, and where a person had put it."""

    place: str
    value: str

    def forms(self) -> Iterator[bytes]:
        """As it may be written: plain, and in base64 behind a user and a colon or not."""
        plain = self.value.encode()
        yield plain
        # Base64 takes three bytes at a time: what comes before shifts it by none, one or two.
        for shift in range(3):
            coded = base64.b64encode(b"x" * shift + plain)
            yield coded[4 if shift else 0 : len(coded) - len(coded) % 4 - 4]


@dataclass(frozen=True)
class Found:
    """A secret that was written down."""

    secret: str
    command: str
    where: str


class Planted:
    """A home, a shell's environment and a server, with secrets in each place that may hold some.

    Args:
        folder: an empty folder, in which everything that commands write must land.
        server: where the commands find S3.
        random: makes the secrets.
    """

    def __init__(self, folder: Path, server: MotoServer, random: Random) -> None:
        self.folder = folder
        self.secrets: list[Secret] = []
        self._server = server
        self._random = random
        self._home = folder / "home"
        (self._home / ".aws").mkdir(parents=True)
        (folder / "tmp").mkdir()
        (self._home / ".aws" / "credentials").write_text(
            f"[planted]\naws_access_key_id = {self._new('access key of a profile', 'AKIA')}\n"
            f"aws_secret_access_key = {self._new('secret key of a profile')}\n"
            f"aws_session_token = {self._new('session token of a profile')}\n"
        )
        self.environment = {
            **os.environ,
            **MotoServer.ENVIRONMENT,
            "HOME": str(self._home),
            "TMPDIR": str(folder / "tmp"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "AWS_ACCESS_KEY_ID": self._new("AWS_ACCESS_KEY_ID", "AKIA"),
            "AWS_SECRET_ACCESS_KEY": self._new("AWS_SECRET_ACCESS_KEY"),
            "AWS_SESSION_TOKEN": self._new("AWS_SESSION_TOKEN"),
            "AWS_ROLE_ARN": f"arn:aws:iam::{self._digits('account')}:role/x",
            "HTTPS_PROXY": f"http://jo:{self._new('password of a proxy')}@127.0.0.1:9",
            "HF_TOKEN": self._new("HF_TOKEN"),
            "WANDB_API_KEY": self._new("WANDB_API_KEY"),
            "DATABASE_PASSWORD": self._new("DATABASE_PASSWORD"),
        }

    def by_profile(self) -> dict[str, str]:
        """The environment of a person whose keys lie in a profile."""
        left = {key: value for key, value in self.environment.items() if "AWS_" not in key}
        return {**left, "AWS_PROFILE": "planted", "AWS_DEFAULT_REGION": "us-east-1"}

    def endpoint_in_environment(self) -> dict[str, str]:
        """An endpoint with a user and a password, which nobody checks before boto3 reads it."""
        password = self._new("password of an endpoint in the environment")
        host = urlsplit(self._server.url).netloc
        return {**self.environment, "AWS_ENDPOINT_URL_S3": f"http://jo:{password}@{host}"}

    def signed(self, what: str) -> str:
        """A part of an address that gives access: refused, and not repeated by the refusal."""
        signature = self._new(f"signature in {what}")
        token = self._new(f"token in {what}")
        return f"X-Amz-Signature={signature}&X-Amz-Security-Token={token}"

    def password(self, what: str) -> str:
        """``user:password``."""
        return f"jo:{self._new(f'password in {what}')}"

    def _new(self, place: str, prefix: str = "") -> str:
        letters = string.ascii_letters + string.digits
        value = prefix + "".join(self._random.choices(letters, k=32))
        self.secrets.append(Secret(place, value))
        return value

    def _digits(self, place: str) -> str:
        value = "".join(self._random.choices("123456789", k=12))
        self.secrets.append(Secret(place, value))
        return value


@dataclass(frozen=True)
class Command:
    """One command, and the exit code without which it would not have been tried at all."""

    name: str
    program: Callable[..., Finished]
    arguments: Sequence[str]
    code: int = 0
    env: Mapping[str, str] | None = None


def commands(planted: Planted, server: MotoServer, *, short: bool = False) -> Iterator[Command]:
    """Everything that reads a credential, in health and in trouble; ``short``: one of a kind."""
    folder, at = planted.folder, ("--endpoint-url", server.url)
    photos, out = str(folder / "photos"), f"s3://{BUCKET}/out"
    job = ("--source", photos, "--format", "tfrecord", "--size", "64", "--workers", "1")
    shard = ("shard", *job, "--output")
    drawn = ("sample", photos, "--images", "24", "--classes", "2", "--seed", "7")
    yield Command("sample", dataprep, drawn)
    yield Command("shard", dataprep, (*shard, out, *at))
    if short:
        yield from _in_trouble(planted, job, ("--debug",))
        yield from islice(_benchmarks(planted, server), 2)
        return
    yield Command("plan", dataprep, ("plan", *job, "--output", out, *at, "--json"))
    yield Command("shard, config printed", dataprep, (*shard, out, *at, "--print-config"))
    yield Command("shard again", dataprep, (*shard, out, *at, "--overwrite", "--json"))
    yield Command("shard of a part", dataprep, (*shard, f"{out}-0", *at, "--part", "0/1"))
    yield Command("finalize", dataprep, ("finalize", f"{out}-0", "--split", "train", *at))
    yield Command("verify", dataprep, ("verify", out, *at, "--deep", "--json"))
    sheet = ("--contact-sheet", str(folder / "sheet.png"))
    yield Command("inspect", dataprep, ("inspect", out, *at, *sheet))
    profile = (*shard, f"{out}-p", *at)
    yield Command("shard by a profile", dataprep, profile, env=planted.by_profile())
    for debug in ((), ("--debug",)):
        yield from _in_trouble(planted, job, debug)
    yield from _benchmarks(planted, server)


def _in_trouble(planted: Planted, job: Sequence[str], debug: Sequence[str]) -> Iterator[Command]:
    """Addresses that carry a secret, servers that are none, keys that nobody knows."""
    out = f"s3://{BUCKET}/trouble"
    shard = (*debug, "shard", *job, "--output")
    once = ("--set", "store.max_attempts=1", "--set", "dask.retries=0")

    def refused(name: str, *arguments: str, **options: Any) -> Command:
        named = " ".join((name, *debug))
        return Command(named, dataprep, arguments, **{"code": 2, **options})

    yield refused("no server", *shard, out, "--endpoint-url", "http://127.0.0.1:9", *once)
    with_user = f"http://{planted.password('--endpoint-url')}@127.0.0.1:9"
    yield refused("user in --endpoint-url", *shard, out, "--endpoint-url", with_user)
    yield refused("signature in --output", *shard, f"{out}?{planted.signed('--output')}")
    source = f"s3://{planted.password('--source')}@{BUCKET}/photos"
    yield refused("user in --source", *debug, "shard", "--source", source, "--output", out)
    signed = f"{out}?{planted.signed('verify')}"
    yield refused("verify of a signed address", *debug, "verify", signed)
    env = planted.endpoint_in_environment()
    over = (*shard, out, "--overwrite")
    yield refused("user in an endpoint of the environment", *over, code=0, env=env)
    env = {**env, "AWS_ENDPOINT_URL_S3": f"http://{planted.password('an endpoint')}@127.0.0.1:9"}
    yield refused("no server at an endpoint of the environment", *over, *once, env=env)
    config = planted.folder / "wrong.yaml"
    config.write_text(
        f"source: photos\noutput: s3://{BUCKET}/x?{planted.signed('a config')}\n"
        f"store:\n  endpoint_url: http://{planted.password('a config')}@h:1\n  sekret: 1\n"
    )
    yield refused("a wrong config", *debug, "shard", str(config))
    config.unlink()


def _benchmarks(planted: Planted, server: MotoServer) -> Iterator[Command]:
    """``iobench`` over the same bucket, each page and table that it makes."""
    config, run = planted.folder / "run.yaml", str(planted.folder / "run")

    def measured(store: str) -> tuple[str, ...]:
        config.write_text(_RUN.format(folder=planted.folder, bucket=BUCKET, store=store))
        return ("run", str(config), "--yes", "--output")

    here = f', store: {{endpoint_url: "{server.url}"}}'
    yield Command("iobench run", iobench, (*measured(here), run))
    yield Command("iobench report", iobench, ("report", run))
    yield Command("iobench run, dry", iobench, ("run", str(config), "--dry-run"))
    yield Command("iobench export", iobench, ("export", run))
    yield Command("iobench advise", iobench, ("advise", run))
    yield Command("iobench compare", iobench, ("compare", run, run))
    yield Command(
        "iobench run, endpoint of the environment",
        iobench,
        (*measured(""), f"{run}-environment"),
        env=planted.endpoint_in_environment(),
    )
    nowhere = ', store: {endpoint_url: "http://127.0.0.1:9", max_attempts: 1}'
    yield Command("iobench run, no server", iobench, (*measured(nowhere), f"{run}-nowhere"), 1)
    config.unlink()


def leaks(
    planted: Planted, server: MotoServer, seen: dict[str, Finished], *, short: bool = False
) -> Iterator[Found]:
    """Run every command into ``seen``, and find each secret in what was said and written.

    Raises:
        AssertionError: a command ended otherwise than it must, and tried nothing.
    """
    for command in commands(planted, server, short=short):
        done = command.program(*command.arguments, env=command.env or planted.environment)
        assert done.code == command.code, (command.name, done)
        seen[command.name] = done
        said = (("stdout", done.out.encode()), ("stderr", done.err.encode()))
        yield from _searched(planted.secrets, command.name, said)
    yield from _searched(planted.secrets, "all of them", _files(planted.folder))
    clean = open_store(f"s3://{BUCKET}", StoreOptions(endpoint_url=server.url))
    objects = ((info.key, _readable(info.key, clean.get(info.key))) for info in clean.list())
    yield from _searched(planted.secrets, "all of them", objects)


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "credentials":
            yield str(path.relative_to(folder)), _readable(path.name, path.read_bytes())


def _readable(name: str, data: bytes) -> bytes:
    """The bytes, and what is packed in them: tables by column, and charts of a page."""
    if name.endswith(".parquet"):
        table = pd.read_parquet(io.BytesIO(data))
        return data + table.to_csv().encode("utf-8", "surrogateescape")
    if name.endswith(".html"):
        return data + b"".join(_unpacked(data))
    return data


def _unpacked(page: bytes) -> Iterator[bytes]:
    """What is compressed and in base64, in whichever way of the two."""
    for packed in _PACKED.findall(page):
        for kind in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):
            with contextlib.suppress(ValueError, zlib.error):
                yield zlib.decompress(base64.b64decode(packed), kind)


def _searched(
    planted: Sequence[Secret],
    command: str,
    written: Iterator[tuple[str, bytes]] | Sequence[tuple[str, bytes]],
) -> Iterator[Found]:
    for where, data in written:
        for secret in planted:
            if any(form in data for form in secret.forms()):
                yield Found(secret.place, command, where)


def main() -> int:
    """The long form; exit code 1 where a secret was found."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seed", type=int, default=secrets.randbits(32))
    options.add_argument("--save", action="store_true")
    given = options.parse_args()
    seen: dict[str, Finished] = {}
    with tempfile.TemporaryDirectory() as folder, MotoServer() as server:
        os.environ.update(MotoServer.ENVIRONMENT)
        server.create_bucket(BUCKET)
        planted = Planted(Path(folder), server, Random(given.seed))
        found = list(leaks(planted, server, seen))
    for leak in found:
        print(f"{leak.secret}: told by {leak.command}, in {leak.where}")  # noqa: T201
    print(f"{len(planted.secrets)} secrets, {len(seen)} commands, {len(found)} leaks")  # noqa: T201
    if given.save:
        row = Row(
            f"{len(planted.secrets)} secrets in the environment, a profile, addresses and configs",
            "S3 (moto)",
            len(seen),
            "each command's words, files and objects were searched: none holds a secret",
            len(found),
        )
        command = f"PYTHONPATH=. python -m tests.reliability.planted --seed {given.seed}"
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        save("planted", Tried("Secrets", command, today, given.seed, (row,)))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
