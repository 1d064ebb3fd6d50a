"""The machine's type from a metadata service: a real one over HTTP, and none."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable, Iterator
from typing import ClassVar

import pytest

from iobench.environment import cloud
from iobench.environment.cloud import instance_type

XEN = {"vendor": "Xen", "product": "HVM domU", "cloud": "Amazon EC2"}
TOKEN = "token-of-jane"


class Metadata(http.server.BaseHTTPRequestHandler):
    """Answers as the three services do; what it was asked stands in ``asked``."""

    asked: ClassVar[list[str]] = []
    answers: ClassVar[dict[str, str]] = {}
    release: ClassVar[threading.Event | None] = None

    def do_PUT(self) -> None:
        """A token, for who says how long it is to live."""
        self._answer(TOKEN if self.headers["X-aws-ec2-metadata-token-ttl-seconds"] else None)

    def do_GET(self) -> None:
        """The answer of this path, for who has the service's header."""
        known = (
            self.headers["X-aws-ec2-metadata-token"] == TOKEN
            or self.headers["Metadata-Flavor"] == "Google"
            or self.headers["Metadata"] == "true"
        )
        self._answer(self.answers.get(self.path) if known else None)

    def _answer(self, text: str | None) -> None:
        type(self).asked.append(f"{self.command} {self.path}")
        if self.release is not None:
            self.release.wait(30)
        self.send_response(200 if text else 401)
        self.end_headers()
        self.wfile.write((text or "who are you, account 123456789012?").encode())

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    """A service on this machine. Proxies of the environment are not for it."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    Metadata.asked.clear()
    Metadata.answers.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metadata)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield ("127.0.0.1", server.server_port)
    if Metadata.release is not None:
        Metadata.release.set()
        Metadata.release = None
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time for a busy machine to answer."""
    monkeypatch.setattr(cloud, "_AT_ONCE_S", 30.0)
    monkeypatch.setattr(cloud, "_CONNECT_S", 30.0)


@pytest.mark.usefixtures("patient")
class TestAnswers:
    def test_amazon_with_a_token(self, service: tuple[str, int]) -> None:
        """IMDSv2: a token first, then the type and nothing else."""
        Metadata.answers["/latest/meta-data/instance-type"] = "t2.micro"
        assert instance_type(XEN, {}, service) == "t2.micro"
        assert Metadata.asked == ["PUT /latest/api/token", "GET /latest/meta-data/instance-type"]

    def test_google_without_its_project(self, service: tuple[str, int]) -> None:
        """The number of the project stands in the answer, and is not kept."""
        path = "/computeMetadata/v1/instance/machine-type"
        Metadata.answers[path] = "projects/123456789/machineTypes/a2-highgpu-1g"
        machine = {"vendor": "Google", "cloud": "Google Compute Engine"}
        assert instance_type(machine, {}, service) == "a2-highgpu-1g"

    def test_azure(self, service: tuple[str, int]) -> None:
        """The size of the machine, as text."""
        path = "/metadata/instance/compute/vmSize?api-version=2021-02-01&format=text"
        Metadata.answers[path] = "Standard_ND96asr_v4"
        machine = {"vendor": "Microsoft Corporation", "cloud": "Azure"}
        assert instance_type(machine, {}, service) == "Standard_ND96asr_v4"

    @pytest.mark.parametrize(
        "answer", ["<html>welcome, jane</html>", "i-0123 account 12", "x" * 100, "\xff", ""]
    )
    def test_what_is_no_type_is_not_kept(self, service: tuple[str, int], answer: str) -> None:
        """Somebody else may answer at that address."""
        Metadata.answers["/latest/meta-data/instance-type"] = answer
        assert instance_type(XEN, {}, service) is None

    def test_a_refusal_is_no_answer(self, service: tuple[str, int]) -> None:
        """401, with an account in its words."""
        assert instance_type(XEN, {}, service) is None


def test_nitro_is_its_own_answer(service: tuple[str, int]) -> None:
    """The firmware says the type; no packet leaves."""
    machine = {"vendor": "Amazon EC2", "product": "p4d.24xlarge", "cloud": "Amazon EC2"}
    assert instance_type(machine, {}, service) == "p4d.24xlarge"
    assert instance_type({**machine, "product": "u-6tb1.metal"}, {}, service) == "u-6tb1.metal"
    assert Metadata.asked == []


@pytest.mark.parametrize(
    ("machine", "environ"),
    [
        ({}, {}),
        ({"vendor": "Dell Inc.", "product": "PowerEdge"}, {}),
        ({"vendor": "QEMU", "virtual": "QEMU or KVM"}, {}),
        ({"vendor": "Hetzner", "cloud": "Hetzner"}, {}),
        ({"vendor": "Microsoft Corporation", "product": "Virtual Machine"}, {}),
        (XEN, {"AWS_EC2_METADATA_DISABLED": "true"}),
        (XEN, {"AWS_EC2_METADATA_DISABLED": " True "}),
    ],
)
def test_no_packet_leaves_elsewhere(
    service: tuple[str, int], machine: dict[str, str], environ: dict[str, str]
) -> None:
    """Only where the firmware says that it is such a machine, and nobody switched it off."""
    assert instance_type(machine, environ, service) is None
    assert Metadata.asked == []


def test_who_does_not_answer_at_once_is_not_waited_for(service: tuple[str, int]) -> None:
    """The answer is there, half a minute later."""
    Metadata.answers["/latest/meta-data/instance-type"] = "t2.micro"
    Metadata.release = threading.Event()
    assert instance_type(XEN, {}, service) is None
    assert not Metadata.release.is_set()


def test_nobody_there(unused_port: Callable[[], int]) -> None:
    """A refused connection is no answer."""
    assert instance_type(XEN, {}, ("127.0.0.1", unused_port())) is None


@pytest.fixture
def unused_port() -> Callable[[], int]:
    """A port on which nobody listens."""

    def found() -> int:
        import socket

        with socket.socket() as made:
            made.bind(("127.0.0.1", 0))
            return int(made.getsockname()[1])

    return found
