"""Long form: an object store that fails in every way, at every request of a job.

``PYTHONPATH=. python -m tests.reliability.bad_store [--save]``: a fault-injecting proxy stands
before a real S3 endpoint. Each kind of fault meets each kind of request, once, each fifth time and
always. A command ends right, or stops with one line and an exit code; then, with the fault gone,
the same command goes on, and what it leaves is held against the reference byte by byte.
"""

from __future__ import annotations

import argparse
import datetime
import os
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import dataprep
from dataprep.errors import StoreError
from dataprep.stores import StoreOptions
from dataprep.stores.s3 import S3Store
from iobench.faults import (
    Delay,
    Fault,
    FaultProxy,
    FlipByte,
    Lag,
    Match,
    Reset,
    Rule,
    SetHeader,
    Shorten,
    Stall,
    Status,
    Truncate,
)
from iobench.s3_server import MotoServer
from tests.changing import draw
from tests.commandline import Finished
from tests.reliability.rows import Row, Tried, save
from tests.reliability.store_jobs import (
    LARGE,
    content,
    digests,
    put_in_parts,
    read,
    run,
    untrue_receipts,
)

BUCKET = "bad-store"
Rate = Literal["once", "each 5th", "always"]
RATES: tuple[Rate, ...] = ("once", "each 5th", "always")
_MATCHES = {"once": {"times": 1}, "each 5th": {"every": 5}, "always": {}}
_LONG_S = 600.0


class Kind(NamedTuple):
    """A kind of fault, and the methods of the requests that can meet it."""

    name: str
    fault: Fault
    methods: str = "GET PUT HEAD"


KINDS = (
    Kind("500 InternalError", Status(500, "InternalError", "We encountered an internal error.")),
    Kind("503 SlowDown", Status(503, "SlowDown", "Please reduce your request rate.")),
    Kind("connection reset", Reset()),
    Kind("answer lost: reset after the server has done it", Reset("response")),
    Kind("slow first byte (0.3 s)", Delay(0.3, "response")),
    Kind("no first byte", Delay(_LONG_S, "response")),
    Kind("stall within a download", Stall(_LONG_S, 20), "GET"),
    Kind("stall within an upload", Stall(_LONG_S, 20, "upload"), "PUT"),
    Kind("truncated download", Truncate(50), "GET"),
    Kind("upload that arrives short", Shorten(50), "PUT"),
    Kind("flipped byte, downwards", FlipByte(40), "GET"),
    Kind("flipped byte, upwards", FlipByte(40, "upload"), "PUT"),
    Kind("wrong ETag", SetHeader("ETag", f'"{"0" * 32}"')),
    Kind("expired token", Status(400, "ExpiredToken", "The provided token has expired.")),
    Kind(
        "clock skew",
        Status(
            403,
            "RequestTimeTooSkewed",
            "The difference between the request time and the current time is too large.",
        ),
    ),
)


class Operation(NamedTuple):
    """A kind of request of a command: its method and what its path?query matches."""

    verb: str
    name: str
    method: str
    path: str


OPERATIONS = (
    Operation("shard", "listing the source", "GET", r"list-type=2.*prefix=source"),
    Operation("shard", "reading the source", "GET", r"/source/.*jpg"),
    Operation("shard", "labels, plan and job", "PUT", r"/(labels\.json|train\.(plan|job)\.\w+)$"),
    Operation("shard", "put of shards", "PUT", r"/(tfrecord|index)/"),
    Operation("shard", "HEAD that confirms", "HEAD", r"/(tfrecord|index)/"),
    Operation("shard", "put of receipts", "PUT", r"/receipts/"),
    Operation("shard", "put of table and manifest", "PUT", r"/train\.(samples|manifest)\."),
    Operation("shard", "lease, conditional puts", "PUT", r"/leases/"),
    Operation("shard", "lease, reads", "GET", r"/leases/"),
    Operation("resume", "listing the output", "GET", r"list-type=2.*prefix=out"),
    Operation("resume", "reading labels, plan and job", "GET", r"/(labels|train\.\w+)\.\w+$"),
    Operation("resume", "reading receipts", "GET", r"/receipts/"),
    Operation("resume", "put of shards", "PUT", r"/(tfrecord|index)/"),
    Operation("verify", "listing the output", "GET", r"list-type=2"),
    Operation("verify", "reading shards", "GET", r"/(tfrecord|index)/"),
    Operation("verify", "reading receipts and tables", "GET", r"/(receipts/.*|train\.\w+\.\w+)$"),
    Operation("multipart", "beginning", "POST", r"\?uploads"),
    Operation("multipart", "parts", "PUT", r"partNumber=\d"),
    Operation("multipart", "completing", "POST", r"uploadId="),
    Operation("read", "manifest and table", "GET", r"/train\.\w+\.\w+$"),
    Operation("read", "HEAD of the manifest", "HEAD", r"/train\.manifest"),
    Operation("read", "shards", "GET", r"/tfrecord/"),
)


MANY = ("reading the source", "put of shards")
"""Requests of which a job has more than five."""


@dataclass
class Seen:
    """What happened at one kind of fault and one command."""

    where: list[str] = field(default_factory=list)
    right: int = 0
    stopped: Counter[int] = field(default_factory=Counter)
    anew: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def times(self) -> int:
        """How many were tried."""
        return self.right + self.stopped.total() + len(self.wrong)

    def row(self, fault: str, verb: str) -> Row:
        """In words."""
        codes = ", ".join(f"exit code {code}: {n}" for code, n in sorted(self.stopped.items()))
        parts = [f"{self.right} ended right"] if self.right else []
        if self.stopped:
            then = ", then went on to the same bytes" if verb in ("shard", "resume") else ""
            parts.append(f"{self.stopped.total()} stopped with one clear line ({codes}){then}")
        if self.anew:
            parts.append(f"{self.anew} of those by --overwrite, as the line said")
        if self.wrong:
            parts.append(f"{len(self.wrong)} wrong")
        places = ", ".join(dict.fromkeys(self.where))
        return Row(fault, f"{verb}: {places}", self.times, "; ".join(parts), len(self.wrong))


class Bench:
    """A server, a proxy before it, a source, and what a job must make of it."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        os.environ.update(MotoServer.ENVIRONMENT)
        os.environ.pop("AWS_PROFILE", None)
        self.folder = folder
        self.server = stack.enter_context(MotoServer())
        self.server.create_bucket(BUCKET)
        self.proxy = stack.enter_context(FaultProxy(self.server.url))
        source = draw(folder / "photos", 1, images=10, image_bytes=260_000)
        store = self.direct("source")
        for path in sorted(source.rglob("*.jpg")):
            store.put(path.relative_to(source).as_posix(), path.read_bytes())
        done = run(self._job("done"), folder)
        assert done.code == 0, done.err
        self.reference = stored(self.direct("done"))
        dataset = dataprep.open(f"s3://{BUCKET}/done", options=self._options)
        self.images = digests([bytes(sample.image) for sample in dataset])
        self._outputs = 0

    def direct(self, prefix: str) -> S3Store:
        """What is truly stored."""
        return S3Store(f"s3://{BUCKET}/{prefix}", self._options)

    def attempt(self, operation: Operation, kind: Kind, rate: Rate, seen: Seen) -> list[str]:
        """One command under one fault; the lines it complained with."""
        method = operation.method
        rules = [Rule(Match(method, operation.path, **_MATCHES[rate]), kind.fault)]
        what = f"{operation.verb}, {operation.name}, {kind.name}, {rate}"
        seen.where.append(operation.name)
        if operation.verb == "multipart":
            return self._put_in_parts(rules, what, seen)
        if operation.verb in ("verify", "read"):
            return self._looked(operation.verb, rules, what, seen)
        return self._made(operation.verb, rules, what, seen)

    def _looked(self, verb: str, rules: Sequence[Rule], what: str, seen: Seen) -> list[str]:
        complaints = []
        for how in ("all", "one by one") if verb == "read" else ("",):
            self.proxy.replace_rules(rules)
            if verb == "verify":
                found = run(["verify", f"s3://{BUCKET}/done", *self._endpoint], self.folder)
                right = found.code == 0 and ": ok: " in found.out
            else:
                found = read(f"s3://{BUCKET}/done", self.proxy.url, how, self.folder)
                right = found.code == 0 and found.out.strip() == self.images
            self.proxy.clear()
            complaints += self._judged(found, right, f"{what} {how}", seen)
        return complaints

    def _put_in_parts(self, rules: Sequence[Rule], what: str, seen: Seen) -> list[str]:
        self._outputs += 1
        key, store = f"large-{self._outputs}", self.direct("parts")
        self.proxy.replace_rules(rules)
        found = put_in_parts(f"s3://{BUCKET}/parts", self.proxy.url, key, self.folder)
        self.proxy.clear()
        there = stored(store).get(key)
        if there not in ((LARGE,) if found.code == 0 else (None, LARGE)) and found.code != 1:
            seen.wrong.append(f"{what}: {found.code} {found.err[-2000:]}")
            return found.complaints
        complaints = self._judged(found, found.code == 0, what, seen)
        again = put_in_parts(f"s3://{BUCKET}/parts", self.proxy.url, key, self.folder)
        if again.code or stored(store).get(key) != LARGE:
            seen.wrong.append(f"{what}: afterwards {again.code} {again.err}")
        store.delete(key)
        return complaints

    def lagging(self, removed: str, seen: Seen) -> None:
        """A split is made, and the listing still shows nothing; or ``removed``, which is gone."""
        seen.where.append("shows what was removed" if removed else "does not show what is there")
        self._outputs += 1
        prefix = f"out-{self._outputs:04}"
        store = self.direct(prefix)
        stale = S3Store(f"s3://{BUCKET}/{prefix}", StoreOptions(endpoint_url=self.proxy.url))
        self.proxy.replace_rules([Rule(Match("GET", "list-type=2"), Lag())])
        if not removed:
            assert not list(stale.list())
        for key, data in self.reference.items():
            store.put(key, data)
        assert {info.key for info in stale.list()} == ({*self.reference} if removed else set())
        for key in [key for key in self.reference if removed and key.startswith(removed)][:1]:
            store.delete(key)
        found = run(self._job(prefix), self.folder)
        self.proxy.clear()
        right = found.code == 0 and content(stored(store)) == content(self.reference)
        self._judged(found, right, f"a listing that lags, {removed}", seen)

    def _made(self, verb: str, rules: Sequence[Rule], what: str, seen: Seen) -> list[str]:
        self._outputs += 1
        prefix = f"out-{self._outputs:04}"
        store = self.direct(prefix)
        if verb == "resume":
            self._half_done(store)
        self.proxy.replace_rules(rules)
        found = run(self._job(prefix), self.folder)
        self.proxy.clear()
        there = stored(store)
        right = found.code == 0 and content(there) == content(self.reference)
        if untrue := untrue_receipts(there):
            seen.wrong.append(f"{what}: {untrue}")
            return found.complaints
        complaints = self._judged(found, right, what, seen)
        if found.code:
            self._go_on(prefix, store, what, seen)
        for info in store.list():
            store.delete(info.key)
        return complaints

    def _go_on(self, prefix: str, store: S3Store, what: str, seen: Seen) -> None:
        again = run(self._job(prefix), self.folder)
        if again.code == 2 and "--overwrite" in again.err:
            seen.anew += 1
            again = run([*self._job(prefix), "--overwrite"], self.folder)
        if again.code or content(stored(store)) != content(self.reference):
            seen.wrong.append(f"{what}: afterwards {again.code} {again.err}")

    def _half_done(self, store: S3Store) -> None:
        """What a job leaves that was killed before its last receipt."""
        last = max(key for key in self.reference if key.startswith("receipts/"))
        unmade = {last, "train.samples.parquet", "train.manifest.json"}
        for key, data in self.reference.items():
            if key not in unmade:
                store.put(key, data)

    def _judged(self, found: Finished, right: bool, what: str, seen: Seen) -> list[str]:
        if right:
            seen.right += 1
        elif found.code in (1, 2) and is_clear(found):
            seen.stopped[found.code] += 1
        else:
            seen.wrong.append(f"{what}: {found.code} {found.out[-300:]} {found.err[-2000:]}")
        return found.complaints

    @property
    def _options(self) -> StoreOptions:
        return StoreOptions(endpoint_url=self.server.url)

    @property
    def _endpoint(self) -> list[str]:
        quick = {"max_attempts": "2", "read_timeout_s": "1"}
        sets = [part for key, value in quick.items() for part in ("--set", f"store.{key}={value}")]
        return ["--endpoint-url", self.proxy.url, *sets]

    def _job(self, prefix: str) -> list[str]:
        return [
            *("shard", "--source", f"s3://{BUCKET}/source", "--output", f"s3://{BUCKET}/{prefix}"),
            *("--shard-size", "1MB"),
            *("--workers", "2", "--set", "dask.processes=false"),
            *self._endpoint,
        ]


def stored(store: S3Store) -> dict[str, bytes]:
    """What truly lies there; of what is damaged nothing."""
    found = {}
    for info in store.list():
        try:
            found[info.key] = store.get(info.key)
        except StoreError:
            found[info.key] = b""
    return found


def is_clear(found: Finished) -> bool:
    """One line says what is wrong, and where; no traceback."""
    lines = [line for line in found.complaints if re.search(r"s3://|out-\d|train|source", line)]
    return len(lines) == 1 and "Traceback" not in found.err


def cases(rates: Sequence[Rate]) -> Iterator[tuple[Operation, Kind, Rate]]:
    """Every kind of fault at every kind of request that can meet it."""
    for operation in OPERATIONS:
        for kind in KINDS:
            methods = kind.methods.split()
            if not {operation.method, "HEAD" if operation.method == "POST" else ""} & {*methods}:
                continue
            for rate in rates:
                if rate == "each 5th" and operation.name not in MANY:
                    continue
                yield operation, kind, rate


def lags(bench: Bench) -> Mapping[tuple[str, str], Seen]:
    """What comes of listings that lag."""
    seen = Seen()
    for removed in ("", "tfrecord/", "index/", "receipts/"):
        bench.lagging(removed, seen)
    return {("a listing that lags", "resume"): seen}


def attempts(
    bench: Bench, chosen: Sequence[tuple[Operation, Kind, Rate]], *, tell: bool = False
) -> Mapping[tuple[str, str], Seen]:
    """What happened, by kind of fault and command."""
    found: dict[tuple[str, str], Seen] = {}
    for operation, kind, rate in chosen:
        seen = found.setdefault((kind.name, operation.verb), Seen())
        lines = bench.attempt(operation, kind, rate, seen)
        lines += [f"WRONG {wrong}" for wrong in seen.wrong]
        if tell:
            _say(f"{operation.verb}, {operation.name}, {kind.name}, {rate}: {' '.join(lines)}")
    return found


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> int:
    """Try all; print the rows, and with ``--save`` keep them."""
    parser = argparse.ArgumentParser(prog="python -m tests.reliability.bad_store")
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--only", default="", help="a regular expression: verb, request, fault")
    parser.add_argument("--rates", default=",".join(RATES))
    parser.add_argument("--times", type=int, help="so many of all, drawn by --seed")
    parser.add_argument("--seed", type=int, default=20)
    asked = parser.parse_args(arguments)
    rates = [rate for rate in RATES if rate in asked.rates.split(",")]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        bench = Bench(Path(folder), stack)
        chosen = [
            case
            for case in cases(rates)
            if re.search(asked.only, f"{case[0].verb} {case[0].name} {case[1].name}")
        ]
        if asked.times is not None:
            random.Random(asked.seed).shuffle(chosen)
            chosen = chosen[: asked.times]
        found = {**lags(bench), **attempts(bench, chosen, tell=True)}
    rows = [seen.row(fault, verb) for (fault, verb), seen in sorted(found.items())]
    for row in rows:
        _say(str(row))
    for seen in found.values():
        for wrong in seen.wrong:
            _say(f"WRONG {wrong}")
    if asked.save:
        day = datetime.datetime.now(datetime.UTC).date().isoformat()
        drawn_by = f" --times {asked.times}" if asked.times is not None else ""
        command = f"PYTHONPATH=. python -m tests.reliability.bad_store{drawn_by}"
        seed = None if asked.times is None else asked.seed
        save("bad_store", Tried("A store that fails", command, day, seed, rows))
    return int(any(seen.wrong for seen in found.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
