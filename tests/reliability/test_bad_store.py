"""The short form of ``bad_store``: a few faults at each request, drawn by a seed."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from iobench.faults import FlipByte, Match, Rule
from iobench.s3_server import MotoServer
from tests.reliability.bad_store import KINDS, OPERATIONS, Bench, Seen, attempts, cases
from tests.reliability.store_jobs import read, untrue_receipts

SEED = int(os.environ.get("DATAPREP_SEED", "20"))
_EACH = 8


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A server behind a proxy, a source, and what a job makes of it."""
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.delenv("AWS_PROFILE", raising=False)
        for name, value in MotoServer.ENVIRONMENT.items():
            patch.setenv(name, value)
        yield Bench(tmp_path_factory.mktemp("bad-store"), stack)


def test_a_store_that_fails_makes_nothing_wrong(bench: Bench) -> None:
    """A command ends right, or with one clear line; afterwards it goes on to the same bytes."""
    drawn = random.Random(SEED).sample(list(cases(("once", "always"))), _EACH)
    found = attempts(bench, drawn)
    wrong = [line for seen in found.values() for line in seen.wrong]
    assert not wrong, f"DATAPREP_SEED={SEED}: {wrong}"
    assert sum(seen.times for seen in found.values()) >= _EACH


def test_every_kind_is_met_by_some_request() -> None:
    """No kind of fault and no kind of request stands in the lists for nothing."""
    every = list(cases(("once",)))
    assert {kind for _, kind, _ in every} == {*KINDS}
    assert {operation for operation, _, _ in every} == {*OPERATIONS}


def test_the_fault_is_met(bench: Bench) -> None:
    """The checker sees what it is to see: a run by which nothing was disturbed is none."""
    operation = next(o for o in OPERATIONS if o.name == "put of receipts")
    kind = next(k for k in KINDS if k.name == "expired token")
    seen = Seen()
    (line,) = bench.attempt(operation, kind, "always", seen)
    assert "the credentials have expired" in line
    assert (seen.right, seen.stopped, seen.wrong) == (0, {1: 1}, [])


def test_the_checker_knows_a_wrong_shard(bench: Bench) -> None:
    """Of a damaged shard the receipt is untrue, and a damaged image has another digest."""
    damaged = {**bench.reference}
    key = next(key for key in damaged if key.startswith("tfrecord/"))
    damaged[key] = damaged[key][:-1] + b"x"
    assert len(untrue_receipts(damaged)) == 1
    assert not untrue_receipts(bench.reference)
    bench.proxy.replace_rules([Rule(Match("GET", "/tfrecord/"), FlipByte(40))])
    found = read("s3://bad-store/done", bench.proxy.url, "all", bench.folder)
    bench.proxy.clear()
    assert found.code == 1
    assert found.out == ""
