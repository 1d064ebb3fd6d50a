"""An object store limited in rate and latency, in a process of its own.

The proxy of ``iobench.servers.fault_proxy`` with ``MemoryS3`` behind it: one hop, so
that what the store itself takes of the processors is little. How much it took is measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from dataprep.stores import StoreOptions
from iobench.machine.processes import end_with_parent, find_program
from iobench.servers.fault_proxy import Delay, FaultProxy, Match, RateLimit, Rule
from iobench.servers.memory_s3 import MemoryS3
from iobench.servers.moto_server import MotoServer

BUCKET = "bench"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a store gives: 0 is without limit.

    ``bytes_per_s`` is for all connections together and for each direction, ``latency_s`` what
    each request waits before it is looked at.
    """

    bytes_per_s: float = 0.0
    latency_s: float = 0.0

    def rules(self) -> list[Rule]:
        """As rules of the proxy."""
        delay = [Rule(Match(), Delay(self.latency_s))] if self.latency_s else []
        rate = [Rule(Match(), RateLimit(self.bytes_per_s))] if self.bytes_per_s else []
        return [*delay, *rate]


class RunningStore:
    """A store that is up: ``url`` is where."""

    def __init__(self, pid: int, url: str) -> None:
        self.pid = pid
        self.url = url
        self.uri = f"s3://{BUCKET}"

    def options(self) -> StoreOptions:
        """How clients reach it."""
        return StoreOptions(endpoint_url=self.url)

    def cpu_s(self) -> float:
        """Processor time that it has taken so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def limited_store(limits: Limits, folder: Path | None = None) -> Iterator[RunningStore]:
    """Start one, with what lies in ``folder`` as its objects; clients find credentials set.

    Raises:
        RuntimeError: it did not start.
    """
    os.environ.update(MotoServer.ENVIRONMENT)
    request = {"parent": os.getpid(), "limits": asdict(limits), "folder": str(folder or "")}
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, json.dumps(request)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        if not url:
            raise RuntimeError(f"the limited store ended with exit code {process.wait()}")
        yield RunningStore(process.pid, url)
    finally:
        process.kill()
        process.communicate()


@contextmanager
def store_share(store: RunningStore) -> Iterator[dict[str, float]]:
    """``store_cpu_share`` of the block: processor seconds of the store for each second."""
    shares: dict[str, float] = {}
    started_s, before_s = time.perf_counter(), store.cpu_s()
    yield shares
    taken_s = time.perf_counter() - started_s
    shares["store_cpu_share"] = (store.cpu_s() - before_s) / taken_s


def s5cmd_copy(store: RunningStore, pattern: str, target: Path) -> float:
    """Copy the objects whose keys match into a folder; the seconds that it took, start included.

    Raises:
        FileNotFoundError: s5cmd is not installed.
        CalledProcessError: it failed.
    """
    command = [find_program("s5cmd") or "s5cmd", "--endpoint-url", store.url, "cp"]
    started_s = time.perf_counter()
    subprocess.run(
        [*command, f"{store.uri}/{pattern}", f"{target}/"], check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - started_s


def main() -> None:
    """Serve until the one who started this ends it."""
    request = json.loads(sys.argv[1])
    end_with_parent(request["parent"])
    objects = MemoryS3()
    if request["folder"]:
        objects.fill(BUCKET, Path(request["folder"]))
    with FaultProxy(objects.answer, Limits(**request["limits"]).rules()) as proxy:
        print(proxy.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
