"""The kind of machine: its maker, its cloud and machine type, and its container."""

from __future__ import annotations

import http.server
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from iobench.machine import host as host_module
from iobench.machine.host import container, host, instance_type
from tests.iobench.machine.machines import PLANTED

AZURE = "7783-7084-3265-9085-8269-3286-77"


@pytest.mark.parametrize(
    ("vendor", "product", "tag", "cloud"),
    [
        ("Amazon EC2", "m5.large", "", "Amazon EC2"),
        ("Xen", "HVM domU", "", "Amazon EC2"),
        ("Google", "Google Compute Engine", "", "Google Compute Engine"),
        ("Google", "Pixelbook", "", None),
        ("Microsoft Corporation", "Virtual Machine", AZURE, "Azure"),
        ("Microsoft Corporation", "Virtual Machine", "", None),
        ("Hetzner", "vServer", "", "Hetzner"),
        ("Dell Inc.", "PowerEdge R750", "", None),
    ],
)
def test_clouds(tmp_path: Path, vendor: str, product: str, tag: str, cloud: str | None) -> None:
    """The firmware's fields or Azure's common tag name the cloud; no serial number is kept."""
    root = tmp_path / "sys/class/dmi/id"
    root.mkdir(parents=True)
    secret = dict.fromkeys(("product_serial", "product_uuid", "board_asset_tag"), PLANTED)
    settings = {"sys_vendor": vendor, "product_name": product, "chassis_asset_tag": tag}
    for name, text in {**secret, **settings, "bios_version": "4.11.amazon"}.items():
        (root / name).write_text(f"{text}\n")
    facts = host(tmp_path, {})
    assert (facts["vendor"], facts["product"], facts.get("cloud")) == (vendor, product, cloud)
    assert PLANTED not in json.dumps(facts)
    assert host(tmp_path / "nowhere", {}) == {}


@pytest.mark.parametrize(
    ("groups", "kind"),
    [
        ("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-2.scope", "Kubernetes"),
        (f"4:memory:/docker/{PLANTED}", "Docker"),
        ("0::/machine.slice/libpod-1.scope", "Podman"),
        ("0::/lxc.payload.web", "LXC"),
        ("0::/system.slice/containerd-1", "a container"),
    ],
)
def test_a_container_by_its_control_group(tmp_path: Path, groups: str, kind: str) -> None:
    """The control group shows the kind of container, and its name is not repeated."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(f"{groups}\n")
    assert container(tmp_path, {}) == f"signs of {kind}: its control group"


def test_a_container_by_marks_and_an_overlay_as_root(tmp_path: Path) -> None:
    """All signs are listed, since a single one may come from an image on a machine's disk."""
    assert container(tmp_path, {}) == ""
    (tmp_path / "proc/self").mkdir(parents=True)
    line = f"1 0 0:40 / / rw,relatime - overlay overlay rw,upperdir=/{PLANTED}\n"
    (tmp_path / "proc/self/mountinfo").write_text(line)
    assert container(tmp_path, {}) == "signs of a container: an overlay as root"
    (tmp_path / ".dockerenv").touch()
    facts = container(tmp_path, {"KUBERNETES_SERVICE_HOST": PLANTED})
    signs = "its service in the environment, /.dockerenv, an overlay as root"
    assert facts == f"signs of Kubernetes: {signs}"


XEN = {"vendor": "Xen", "product": "HVM domU", "cloud": "Amazon EC2"}
TOKEN = "token-of-jane"


class Metadata(http.server.BaseHTTPRequestHandler):
    """A server that answers as the metadata services of three clouds and notes its requests."""

    requests: ClassVar[list[str]] = []
    answers: ClassVar[dict[str, str]] = {}

    def do_PUT(self) -> None:
        """Answer with a token if the request gives the token's lifetime."""
        self._answer(TOKEN if self.headers["X-aws-ec2-metadata-token-ttl-seconds"] else None)

    def do_GET(self) -> None:
        """Answer with the text for this path if the request has the header of a service."""
        answers = (
            self.headers["X-aws-ec2-metadata-token"] == TOKEN
            or self.headers["Metadata-Flavor"] == "Google"
            or self.headers["Metadata"] == "true"
        )
        self._answer(self.answers.get(self.path) if answers else None)

    def _answer(self, text: str | None) -> None:
        type(self).requests.append(f"{self.command} {self.path}")
        self.send_response(200 if text else 401)
        self.end_headers()
        self.wfile.write((text or "who are you, account 123456789012?").encode())

    def log_message(self, format: str, *args: object) -> None:
        """Write no log."""


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    """Yield the address of a metadata service on this machine; the environment has a proxy."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setattr(host_module, "_TIMEOUT_S", 30.0)
    Metadata.requests.clear()
    Metadata.answers.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metadata)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield ("127.0.0.1", server.server_port)
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("machine", "path", "answer", "expected"),
    [
        (XEN, "/latest/meta-data/instance-type", "t2.micro", "t2.micro"),
        (
            {"cloud": "Google Compute Engine"},
            "/computeMetadata/v1/instance/machine-type",
            "projects/123456789/machineTypes/a2-highgpu-1g",
            "a2-highgpu-1g",
        ),
        (
            {"cloud": "Azure"},
            "/metadata/instance/compute/vmSize?api-version=2021-02-01&format=text",
            "Standard_ND96asr_v4",
            "Standard_ND96asr_v4",
        ),
        (XEN, "/latest/meta-data/instance-type", "<html>welcome, jane</html>", None),
        (XEN, "/latest/meta-data/instance-type", "x" * 100, None),
        (XEN, "/latest/meta-data/instance-type", "\xff", None),
        (XEN, "/other", "401, with an account in its words", None),
    ],
)
def test_the_metadata_service_answers(
    service: tuple[str, int], machine: dict[str, str], path: str, answer: str, expected: str | None
) -> None:
    """Only the machine type is requested and kept, and other answers are ignored."""
    Metadata.answers[path] = answer
    assert instance_type(machine, {}, service) == expected
    token = ["PUT /latest/api/token"] if machine == XEN else []
    assert Metadata.requests[: len(token)] == token
    assert len(Metadata.requests) == len(token) + 1


def test_nitro_is_its_own_answer(service: tuple[str, int]) -> None:
    """The firmware has the machine type, so no packet is sent."""
    machine = {"vendor": "Amazon EC2", "product": "p4d.24xlarge", "cloud": "Amazon EC2"}
    assert instance_type(machine, {}, service) == "p4d.24xlarge"
    assert Metadata.requests == []


@pytest.mark.parametrize(
    ("machine", "environ"),
    [
        ({}, {}),
        ({"vendor": "Dell Inc.", "product": "PowerEdge"}, {}),
        ({"vendor": "Hetzner", "cloud": "Hetzner"}, {}),
        ({"vendor": "Microsoft Corporation", "product": "Virtual Machine"}, {}),
        (XEN, {"AWS_EC2_METADATA_DISABLED": "true"}),
        (XEN, {"AWS_EC2_METADATA_DISABLED": " True "}),
    ],
)
def test_no_packet_leaves_elsewhere(
    service: tuple[str, int], machine: dict[str, str], environ: dict[str, str]
) -> None:
    """No packet is sent unless the firmware names such a cloud and the service is not disabled."""
    assert instance_type(machine, environ, service) is None
    assert Metadata.requests == []


def test_a_service_that_does_not_answer() -> None:
    """A refused connection and a silent server give no machine type, soon."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        assert instance_type(XEN, {}, silent.getsockname()) is None
        silent.listen()
        assert instance_type(XEN, {}, silent.getsockname()) is None
