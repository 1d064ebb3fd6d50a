"""Whole jobs on Ceph's S3 gateway, through a proxy that damages, cuts, refuses and loses.

``python -m tests.reliability.strict_server [--times N] [--seed S] [--save]``: the gateway's
refusals, N jobs with faults of which each must give the bytes of a quiet one, and N leases that
change hands. moto takes a wrong digest, a wrong signature and short parts; this server does not.
"""

from __future__ import annotations

import argparse
import datetime
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from botocore.exceptions import ClientError

import dataprep
from dataprep.errors import DataprepError
from dataprep.sample import draw_tree
from dataprep.stores import StoreOptions
from dataprep.stores.protocol import Holder
from dataprep.stores.s3 import S3Store
from dataprep.stores.s3_leases import take
from iobench.faults import Fault, FaultProxy, FlipByte, Match, Reset, Rule, Status, Truncate
from tests.commandline import comparable, objects
from tests.reliability.rows import Row, Tried, save
from tests.servers.radosgw import RadosGateway
from tests.servers.refused import REFUSED

SEED = 20
FORMATS = ("tfrecord", "recordio")
FAULTS: Mapping[str, Callable[[random.Random], tuple[str, Fault]]] = {
    "a byte flipped on its way up": lambda rng: ("PUT", FlipByte(rng.randrange(500), "upload")),
    "a byte flipped on its way down": lambda rng: ("GET", FlipByte(rng.randrange(500))),
    "a download cut": lambda rng: ("GET", Truncate(rng.randrange(500))),
    "a request lost": lambda rng: (rng.choice(("PUT", "GET", "HEAD")), Reset()),
    "an answer lost": lambda rng: (rng.choice(("PUT", "GET")), Reset("response")),
    "500 InternalError": lambda rng: ("PUT", Status(500, "InternalError", "Try again.")),
    "503 SlowDown": lambda rng: (rng.choice(("PUT", "GET")), Status(503, "SlowDown", "Slower.")),
}


def refusals(server: RadosGateway, times: int) -> Iterator[Row]:
    """One row for each thing that the server refuses; one that it takes counts as lost."""
    for code, (ask, secret) in REFUSED.items():
        taken = 0
        s3 = server.client(**({"secret": secret} if secret else {}))
        for number in range(times):
            bucket = f"refuse-{code.lower()}-{number}"
            server.create_bucket(bucket)
            try:
                ask(s3, bucket)
                taken += 1
            except ClientError as error:
                taken += error.response["Error"]["Code"] != code
        s3.close()
        yield Row(ask.__doc__ or code, "radosgw 16.2", times, f"refused: {code}", taken)


def jobs(
    server: RadosGateway,
    tree: Path,
    times: int,
    rng: random.Random,
    faults: Collection[str] = tuple(FAULTS),
) -> Iterator[Row]:
    """``times`` jobs for each fault, which meets about one request in four of its kind."""
    server.create_bucket("jobs")
    expected = _made(server, tree, "quiet", server.url)
    with FaultProxy(server.url) as proxy:
        for name in faults:
            draw = FAULTS[name]
            wrong, met, ends = 0, 0, Counter[str]()
            for number in range(times):
                proxy.clear()
                proxy.replace_rules(_rules(draw, rng))
                output = f"{name.replace(' ', '-').lower()}-{number}"
                end, found = _tried(server, tree, output, proxy.url)
                wrong += found is not None and found != expected
                ends[end] += 1
                met += sum(bool(request.faults) for request in proxy.requests)
            seen = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
            yield Row(name, "a whole job", times, f"{met} requests hit; {seen}", wrong)


def leases(server: RadosGateway, times: int) -> Row:
    """A lease is held, lapses, is taken over by one of two; whoever had it finds out."""
    server.create_bucket("leases")
    wrong = 0
    for number in range(times):
        stores = [_store("s3://leases", server.url) for _ in range(2)]
        key = f"train-{number}"
        first = take(stores[0], key, "the first", every_s=3600.0)
        if isinstance(first, Holder):
            wrong += 1
            continue
        second = take(stores[1], key, "the second", lifetime_s=0.0, every_s=3600.0)
        first._put(released=False)
        kept = not isinstance(second, Holder) and not second.lost()
        wrong += not (kept and "taken it over" in first.lost())
        first.release()
        if not isinstance(second, Holder):
            second.release()
        wrong += bool(list(stores[0].list(f"leases/{key}")))
        for store in stores:
            store.close()
    return Row(
        "a lease that lapsed", "radosgw 16.2", times, "the next has it, the first knows", wrong
    )


def tried(times: int, seed: int) -> Tried:
    """Every row, with a server and a drawn tree of its own. Sets the environment's keys."""
    rng = random.Random(seed)
    os.environ.update(RadosGateway.ENVIRONMENT)
    with RadosGateway() as server, tempfile.TemporaryDirectory() as folder:
        tree = draw_tree(Path(folder) / "photos", images=40, classes=4, seed=7).root
        rows = [*refusals(server, times), *jobs(server, tree, times, rng), leases(server, times)]
    command = f"PYTHONPATH=. python -m tests.reliability.strict_server --times {times}"
    title = "Ceph's S3 gateway, which refuses what moto takes"
    return Tried(title, command, datetime.datetime.now(datetime.UTC).date().isoformat(), seed, rows)


def _rules(draw: Callable[[random.Random], tuple[str, Fault]], rng: random.Random) -> list[Rule]:
    rules = []
    for place in range(0, 40, 4):
        method, fault = draw(rng)
        rules.append(Rule(Match(method, skip=place + rng.randrange(4), times=1), fault))
    return rules


def _tried(
    server: RadosGateway, tree: Path, output: str, url: str
) -> tuple[str, Mapping[str, object] | None]:
    """How it ended, and what lies there if it says that it is done; once more if it gave up."""
    for end in ("done", "done by resuming"):
        try:
            return end, _made(server, tree, output, url)
        except DataprepError as error:
            sys.stderr.write(f"{output}: {error}\n")
    return "gave up with an error", None


def _made(server: RadosGateway, tree: Path, output: str, url: str) -> Mapping[str, object]:
    """What can be compared, read without the proxy."""
    place = f"s3://jobs/{output}"
    dataprep.shard(
        dataprep.ShardConfig.model_validate(
            {
                "source": str(tree),
                "output": place,
                "format": FORMATS,
                "shard_size": "1MB",
                "store": {"endpoint_url": url},
                "dask": {"workers": 1, "processes": False},
            }
        )
    )
    store = _store(place, server.url)
    found = comparable(objects(store))
    for info in [*store.list()]:  # a server in memory has no place for all of them
        store.delete(info.key)
    store.close()
    return {key: data for key, data in found.items() if not key.startswith("receipts/")}


def _store(uri: str, url: str) -> S3Store:
    return S3Store(uri, StoreOptions(endpoint_url=url))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 1 where something was lost."""
    parser = argparse.ArgumentParser(prog="python -m tests.reliability.strict_server")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("DATAPREP_SEED", SEED)))
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args(arguments)
    found = tried(given.times, given.seed)
    for row in found.rows:
        sys.stdout.write(f"{row.fault}: {row.times} times: {row.seen}; lost {row.lost}\n")
    if given.save:
        save("strict_server", found)
    return int(any(row.lost for row in found.rows))


if __name__ == "__main__":
    raise SystemExit(main())
