"""Ceph's S3 gateway (radosgw) as a server of one's own: on loopback, in memory, gone at the end.

``python -m tests.servers.radosgw [BUCKET ...]`` starts one, makes the buckets, prints how to
reach it, and stops it at Ctrl-C or SIGTERM. It needs Debian's packages ``ceph-mon ceph-osd
radosgw ceph-common``, and no rights. ``RadosGateway`` is the same as a context manager: that
command, in a process which ends with the one that started it, however that ends.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from iobench.machine.processes import end_with_parent
from iobench.servers.moto_server import MotoServer

PACKAGES = "ceph-mon ceph-osd radosgw ceph-common"
PROGRAMS = ("ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "ceph")
KEY, SECRET = "testing", "testing"
FSID = "5e0b3a1c-7d51-4c0a-9a52-0c1f6f1f7a01"
OSD = "5e0b3a1c-7d51-4c0a-9a52-0c1f6f1f7a02"
CAPACITY_BYTES = 2**30
"""This is the size of the store. A full store blocks every request instead of refusing it."""

# Ceph's documentation of 16.2: "Configuring Ceph", "Ceph Object Gateway Config Reference".
_CONF = """
[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{mon_port}]
mon initial members = a
ms bind msgr1 = false
auth cluster required = none
auth service required = none
auth client required = none
# The gateway's own default, "secure", needs keys.
ms mon client mode = crc
run dir = {folder}
crash dir = {folder}
admin socket =
pid file =
log file = {folder}/$name.log
log to stderr = false
mon cluster log to file = false
# One copy on one store, and as little work for it as can be.
osd crush chooseleaf type = 0
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
mon allow pool size one = true
mon max pg per osd = 10000
[mon]
mon data = {folder}/mon
mon data avail warn = 0
mon data avail crit = 0
mon warn on pool no redundancy = false
auth allow insecure global id reclaim = false
paxos propose interval = 0.05
paxos min wait = 0.01
[osd]
public addr = 127.0.0.1
cluster addr = 127.0.0.1
osd data = {folder}/osd
osd objectstore = memstore
memstore device bytes = {capacity}
osd class load list = *
osd class default list = *
[client]
# Without it each small request waits 40 ms for a delayed acknowledgement.
rgw frontends = beast endpoint=127.0.0.1:{port} tcp_nodelay=1
rgw enable usage log = false
rgw dynamic resharding = false
rgw run sync thread = false
rgw thread pool size = 64
# What was deleted is freed at once, not after two hours.
rgw gc obj min wait = 1
rgw gc processor period = 5
rgw gc processor max time = 5
"""

_ROOT = Path(__file__).resolve().parents[2]
_PATIENCE_S = 120.0
_STARTS = 3  # Another program may have taken the free port before it is used.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ceph_conf(folder: Path, mon_port: int, port: int, capacity: int = CAPACITY_BYTES) -> str:
    """Return ceph.conf: all is below ``folder``, the gateway on ``port`` of 127.0.0.1."""
    return _CONF.format(folder=folder, fsid=FSID, mon_port=mon_port, port=port, capacity=capacity)


def missing() -> str:
    """Return why no gateway can be started here, or an empty text."""
    lacking = [name for name in PROGRAMS if shutil.which(name) is None]
    if not lacking:
        return ""
    return f"no {', '.join(lacking)}: apt-get install --no-install-recommends {PACKAGES}"


class RadosGateway:
    """A gateway that starts with the ``with`` block and ends with it.

    It has one user, whose keys are ``testing``. Start it from the main thread: it ends with the
    thread that started it.

    Raises:
        RuntimeError: the programs are not installed, or the gateway does not come up.
    """

    ENVIRONMENT = MotoServer.ENVIRONMENT

    def __enter__(self) -> RadosGateway:
        if why := missing():
            raise RuntimeError(why)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.servers.radosgw", "--parent", str(os.getpid())],
            stdout=subprocess.PIPE,
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": str(_ROOT)},
            start_new_session=True,  # Ctrl-C in a terminal is not for the server
        )
        assert self.process.stdout is not None
        message = _first_line(self.process.stdout)
        if "url" not in message:
            self.__exit__()
            raise RuntimeError(message.get("problem", "radosgw: ended before it answered"))
        self.url: str = message["url"]
        self.folder = Path(message["folder"])
        self._client = self.client()
        return self

    def __exit__(self, *_: object) -> None:
        if hasattr(self, "_client"):
            self._client.close()
        self.process.terminate()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def create_bucket(self, name: str) -> None:
        """Make an empty bucket, whatever the environment says of proxies and profiles."""
        self._client.create_bucket(Bucket=name)

    def client(self, *, secret: str = SECRET, **config: Any) -> Any:
        """Return a boto3 client that tries each request once; ``config`` is for botocore."""
        return _client(self.url, secret, **config)

    def admin(self, *arguments: str) -> str:
        """Return what ``radosgw-admin`` prints."""
        return _run(self.folder, "radosgw-admin", "-n", "client.rgw", *arguments)


def _client(url: str, secret: str = SECRET, **config: Any) -> Any:
    import boto3
    from botocore.config import Config

    return boto3.Session(KEY, secret, region_name="us-east-1").client(
        "s3",
        endpoint_url=url,
        config=Config(
            retries={"total_max_attempts": 1},
            proxies={},
            s3={"addressing_style": "path"},
            read_timeout=_PATIENCE_S,
            **config,
        ),
    )


def _first_line(stream: IO[bytes]) -> dict[str, str]:
    ready, _, _ = select.select([stream], [], [], 2 * _PATIENCE_S)
    line = stream.readline() if ready else b""
    actual: dict[str, str] = json.loads(line) if line else {}
    return actual


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class _Failed(RuntimeError):
    """A program has ended or does not become ready."""


class _Cluster:
    """The daemons are children of this process, which has one thread only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        mon_port, self.port = _free_port(), _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        (folder / "ceph.conf").write_text(ceph_conf(folder, mon_port, self.port))
        (folder / "osd").mkdir()

    def start(self) -> None:
        """Start the daemons; return when the gateway answers and has its user."""
        _run(self._folder, "ceph-mon", "--mkfs", "-i", "a")
        self._daemon("ceph-mon", "-i", "a")
        _run(self._folder, "ceph-osd", "--mkfs", "-i", "0", "--no-mon-config", "--osd-uuid", OSD)
        _run(self._folder, "ceph", "--connect-timeout", "60", "osd", "new", OSD, "0")
        self._daemon("ceph-osd", "-i", "0", "--no-mon-config")
        self._daemon("radosgw", "-n", "client.rgw", "--no-mon-config")
        self._wait()
        user = ("--uid=test", "--display-name=test", f"--access-key={KEY}", f"--secret={SECRET}")
        _run(self._folder, "radosgw-admin", "-n", "client.rgw", "user", "create", *user)

    def stop(self) -> None:
        """Kill the daemons at once: nothing that they hold is to last."""
        for daemon in self._daemons.values():
            daemon.kill()
        for daemon in self._daemons.values():
            daemon.wait()

    def watch(self) -> None:
        """Return when one of the daemons has ended."""
        while not self._ended():
            time.sleep(0.5)

    def _daemon(self, name: str, *arguments: str) -> None:
        parent = os.getpid()
        with (self._folder / f"{name}.out").open("wb") as out:
            self._daemons[name] = subprocess.Popen(
                _command(self._folder, name, *arguments, "-f"),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                process_group=0,
                preexec_fn=lambda: end_with_parent(parent),
            )

    def _wait(self) -> None:
        deadline_s = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline_s:
            if name := self._ended():
                raise _Failed(f"{name} ended: {self._last_words(name)}")
            try:
                with _DIRECT.open(self.url, timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        raise _Failed(f"radosgw does not answer: {self._last_words('radosgw')}")

    def _ended(self) -> str:
        gone = (name for name, daemon in self._daemons.items() if daemon.poll() is not None)
        return next(gone, "")

    def _last_words(self, name: str) -> str:
        text = (self._folder / f"{name}.out").read_text(errors="replace")
        return " ".join(text.split())[-500:] or "it said nothing"


def _command(folder: Path, program: str, *arguments: str) -> list[str]:
    return [program, "-c", str(folder / "ceph.conf"), *arguments]


def _run(folder: Path, program: str, *arguments: str) -> str:
    done = subprocess.run(
        _command(folder, program, *arguments),
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        timeout=_PATIENCE_S,
        check=False,
    )
    if done.returncode:
        raise _Failed(f"{program}: {' '.join(done.stderr.split())[-500:]}")
    return done.stdout


@contextlib.contextmanager
def _running() -> Iterator[tuple[_Cluster, Path]]:
    """Yield a cluster and its folder, which is removed afterwards."""
    for attempt in range(1, _STARTS + 1):
        # Sockets' paths, should a daemon make one, have 107 bytes at most (unix(7)).
        with tempfile.TemporaryDirectory(prefix="rgw-", ignore_cleanup_errors=True) as name:
            cluster = _Cluster(Path(name))
            try:
                try:
                    cluster.start()
                except _Failed:
                    if attempt == _STARTS:
                        raise
                    continue
                yield cluster, Path(name)
                return
            finally:
                cluster.stop()


def _serve(parent: int | None, buckets: Sequence[str]) -> int:
    try:
        with _running() as (cluster, folder):
            if parent is not None:
                _out(json.dumps({"url": cluster.url, "folder": str(folder)}))
            else:
                _say(cluster.url, buckets)
            cluster.watch()
            sys.stderr.write("radosgw: a daemon has ended\n")
            return 1
    except _Failed as error:
        _out(json.dumps({"problem": str(error)}) if parent is not None else str(error))
        return 1


def _say(url: str, buckets: Sequence[str]) -> None:
    with contextlib.closing(_client(url)) as s3:
        for bucket in buckets:
            s3.create_bucket(Bucket=bucket)
    _out(f"export AWS_ENDPOINT_URL={url}")
    for name, value in RadosGateway.ENVIRONMENT.items():
        _out(f"export {name}={value}")
    _out(f"# it runs until Ctrl-C; buckets: {', '.join(buckets) or 'none'}")


def _out(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _stop(number: int, _: object) -> None:
    signal.signal(number, signal.SIG_IGN)  # A second signal must not disturb the tidying up.
    raise SystemExit(128 + number)


def main() -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.servers.radosgw", description=__doc__)
    parser.add_argument("bucket", nargs="*", help="buckets to make")
    parser.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if why := missing():
        _out(json.dumps({"problem": why}) if given.parent is not None else why)
        return 2
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _stop)
    if given.parent is not None:
        end_with_parent(given.parent, signal.SIGTERM)
    return _serve(given.parent, given.bucket)


if __name__ == "__main__":
    raise SystemExit(main())
