"""An object store whose rate and latency are limited, in a process of its own.

It is the proxy of ``iobench.servers.fault_proxy`` with the objects of ``MemoryS3``. Both are in one
process, so that the store takes little processor time. This time is measured.
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
    """The limits of a store.

    Attributes:
        bytes_per_s: the rate of all connections together, separately for uploads and downloads;
            0 for no limit.
        latency_s: how long each request waits before it is handled.
    """

    bytes_per_s: float = 0.0
    latency_s: float = 0.0

    def rules(self) -> list[Rule]:
        """Return the limits as rules of the proxy."""
        delay = [Rule(Match(), Delay(self.latency_s))] if self.latency_s else []
        rate = [Rule(Match(), RateLimit(self.bytes_per_s))] if self.bytes_per_s else []
        return [*delay, *rate]


class RunningStore:
    """A store that runs.

    Attributes:
        pid: the id of its process.
        url: the URL of its endpoint.
        uri: the address of its bucket.
    """

    def __init__(self, pid: int, url: str) -> None:
        self.pid = pid
        self.url = url
        self.uri = f"s3://{BUCKET}"

    def options(self) -> StoreOptions:
        """Return the options with which a client reaches it."""
        return StoreOptions(endpoint_url=self.url)

    def cpu_s(self) -> float:
        """Return the processor time that it has taken so far, in seconds."""
        # See proc_pid_stat(5). The name of the program, in parentheses, may contain spaces.
        fields_after_name = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        user_ticks, system_ticks = int(fields_after_name[11]), int(fields_after_name[12])
        return (user_ticks + system_ticks) / os.sysconf("SC_CLK_TCK")


@contextmanager
def limited_store(limits: Limits, folder: Path | None = None) -> Iterator[RunningStore]:
    """Run a store during the ``with`` block.

    Credentials for its clients are set in the environment, and stay there.

    Args:
        limits: its limits.
        folder: a folder whose files become its objects; None for an empty store.

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
    """Measure the processor time of a store during the ``with`` block.

    When the block ends, the yielded dictionary gets ``store_cpu_share``: the processor time of the
    store, divided by the time of the block.
    """
    shares: dict[str, float] = {}
    started_s, before_s = time.perf_counter(), store.cpu_s()
    yield shares
    taken_s = time.perf_counter() - started_s
    shares["store_cpu_share"] = (store.cpu_s() - before_s) / taken_s


def s5cmd_copy(store: RunningStore, pattern: str, target: Path) -> float:
    """Copy objects into a folder by ``s5cmd cp``. Returns the seconds, with the start of s5cmd.

    Args:
        store: the store.
        pattern: a pattern of the keys of the objects.
        target: the folder.

    Raises:
        FileNotFoundError: s5cmd is not installed.
        CalledProcessError: s5cmd failed.
    """
    command = [find_program("s5cmd") or "s5cmd", "--endpoint-url", store.url, "cp"]
    started_s = time.perf_counter()
    subprocess.run(
        [*command, f"{store.uri}/{pattern}", f"{target}/"], check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - started_s


def main() -> None:
    """Serve until the parent process ends this process, or ends itself."""
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
