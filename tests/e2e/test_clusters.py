"""Jobs run on Dask clusters that other programs have started, each program in its own folder."""

from __future__ import annotations

import datetime
import ipaddress
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests import commandline
from tests.commandline import JOB, Running, comparable, objects, wait_until
from tests.e2e.conftest import Gate

pytestmark = [pytest.mark.process, pytest.mark.slow]


class Programs:
    """A scheduler and its workers. All of them get ``options``, such as certificates."""

    def __init__(self, folder: Path, stack: ExitStack, options: Sequence[str] = ()) -> None:
        self._folder, self._stack, self._options = folder, stack, options
        self._started = 0
        self._file = folder / f"scheduler-{len(list(folder.iterdir()))}.json"
        self.scheduler = self._start("scheduler", "--port", "0", "--no-dashboard")
        wait_until(self._written, "the scheduler's address")
        self.address: str = json.loads(self._file.read_text())["address"]

    def _written(self) -> bool:
        """Whether the scheduler has written its address."""
        return self._file.exists() and self._file.stat().st_size > 0

    def worker(self, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start a worker."""
        return self._start(
            "worker", "--nthreads", "1", "--no-nanny", "--no-dashboard", env=env or {}
        )

    def _start(
        self, name: str, *options: str, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a program in a folder of its own."""
        self._started += 1
        own = self._folder / f"{self._file.stem}-{name}-{self._started}"
        own.mkdir()
        program = [sys.executable, "-m", f"distributed.cli.dask_{name}", "--host", "127.0.0.1"]
        started = subprocess.Popen(
            [*program, *options, "--scheduler-file", str(self._file), *self._options],
            cwd=own,
            env={**os.environ, **(env or {})},
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        self._stack.callback(started.wait)
        self._stack.callback(started.kill)
        return started


Start = Callable[..., Programs]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """A function that starts a scheduler with options; all its programs end with the test."""
    (tmp_path / "programs").mkdir()
    with ExitStack() as stack:
        yield lambda *options: Programs(tmp_path / "programs", stack, options)


def shard(tree: Path, output: str | Path, address: str, *more: str) -> list[str]:
    """The command that makes shards on a cluster."""
    arguments = ["--source", str(tree), "--output", str(output)]
    return ["shard", *arguments, *JOB, "--scheduler", address, *more]


def test_a_worker_dies_and_another_joins(
    tree: Path,
    tmp_path: Path,
    start: Start,
    gate: Gate,
    reference: Mapping[str, object],
) -> None:
    """If one worker dies and another joins, no shard is lost and the bytes are those of one run."""
    cluster = start()
    first = cluster.worker(gate.kills_at("receipts/", 3))
    output, harmless = tmp_path / "out", gate.kills_at("nothing/", 1)
    arguments = shard(tree, f"gated://{output}", cluster.address, "--json")
    with Running(*arguments, env=harmless) as running:
        assert first.wait(timeout=60) == -signal.SIGKILL
        cluster.worker(harmless)
        done = running.finish()
    assert done.code == 0, done.err
    assert comparable(objects(output)) == reference


def test_the_scheduler_goes_away(
    tree: Path,
    tmp_path: Path,
    start: Start,
    gate: Gate,
    reference: Mapping[str, object],
) -> None:
    """Without its scheduler the job ends with 1 and one line, and another cluster completes it."""
    cluster = start()
    cluster.worker(gate.waits_at("receipts/", 3))
    output, harmless = tmp_path / "out", gate.kills_at("nothing/", 1)
    arguments = shard(tree, f"gated://{output}", cluster.address)
    with Running(*arguments, env=harmless) as running:
        wait_until(lambda: gate.reached, "the third receipt")
        cluster.scheduler.kill()
        done = running.finish()
    assert done.code == 1
    (line,) = done.complaints
    assert "run the same command again to resume" in line
    another = start()
    another.worker(harmless)
    done = commandline.dataprep(*shard(tree, output, another.address, "--json"))
    assert done.code == 0, done.err
    (split,) = done.one_object["splits"]
    assert split["kept_shards"] >= 2
    assert comparable(objects(output)) == reference


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The paths of a self-signed certificate for this machine, and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate_files = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("certificate")
    pem = serialization.Encoding.PEM
    (folder / "cert.pem").write_bytes(certificate_files.public_bytes(pem))
    plain = serialization.NoEncryption()
    kind = serialization.PrivateFormat.PKCS8
    (folder / "key.pem").write_bytes(key.private_bytes(pem, kind, plain))
    return str(folder / "cert.pem"), str(folder / "key.pem")


@pytest.mark.parametrize("how", ["config", "variables"])
def test_tls(
    how: str,
    tree: Path,
    tmp_path: Path,
    start: Start,
    certificate: tuple[str, str],
    reference: Mapping[str, object],
) -> None:
    """Certificates come from the config, or from Dask's own variables."""
    cert, key = certificate
    files = ["--tls-ca-file", cert, "--tls-cert", cert, "--tls-key", key]
    cluster = start("--protocol", "tls", *files)
    cluster.worker()
    assert cluster.address.startswith("tls://")
    more, env = [], {}
    if how == "config":
        for name, path in (("ca_file", cert), ("cert", cert), ("key", key)):
            more += ["--set", f"dask.tls.{name}={path}"]
    else:
        prefix = "DASK_DISTRIBUTED__COMM__TLS__"
        env = {f"{prefix}CA_FILE": cert}
        env |= {f"{prefix}CLIENT__CERT": cert, f"{prefix}CLIENT__KEY": key}
    output = tmp_path / "out"
    done = commandline.dataprep(*shard(tree, output, cluster.address, *more), env=env)
    assert done.code == 0, done.err
    assert comparable(objects(output)) == reference
