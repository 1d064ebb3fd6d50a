"""The kind of machine: maker, hypervisor, cloud and its machine type, container."""

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


def computer(root: Path, **dmi: str) -> Path:
    """A machine whose firmware says so, with names where firmware has names."""
    folder = root / "sys/class/dmi/id"
    folder.mkdir(parents=True)
    secret = dict.fromkeys(("product_serial", "product_uuid", "board_asset_tag"), PLANTED)
    for name, text in {**secret, **dmi}.items():
        (folder / name).write_text(f"{text}\n")
    return root


@pytest.mark.parametrize(
    ("vendor", "product", "cloud", "virtual"),
    [
        ("Amazon EC2", "m5.large", "Amazon EC2", "KVM (Nitro)"),
        ("Amazon EC2", "c5.metal", "Amazon EC2", None),
        ("Google", "Google Compute Engine", "Google Compute Engine", "KVM"),
        ("Google", "Pixelbook", None, None),
        ("Microsoft Corporation", "Virtual Machine", None, "Hyper-V"),
        ("Microsoft Corporation", "Surface Laptop", None, None),
        ("VMware, Inc.", "VMware7,1", None, "VMware"),
        ("innotek GmbH", "VirtualBox", None, "VirtualBox"),
        ("QEMU", "Standard PC (Q35 + ICH9, 2009)", None, "QEMU or KVM"),
        ("Hetzner", "vServer", "Hetzner", "KVM"),
        ("Dell Inc.", "PowerEdge R750", None, None),
    ],
)
def test_makers(
    tmp_path: Path, vendor: str, product: str, cloud: str | None, virtual: str | None
) -> None:
    """A cloud and a hypervisor where the firmware gives their names; serial numbers nowhere."""
    found = host(computer(tmp_path, sys_vendor=vendor, product_name=product), {})
    assert (found["vendor"], found["product"]) == (vendor, product)
    assert (found.get("cloud"), found.get("virtual")) == (cloud, virtual)
    assert PLANTED not in json.dumps(found)


def test_azure_is_told_from_other_hyper_v(tmp_path: Path) -> None:
    """By a tag that all of its machines have."""
    azure = {"sys_vendor": "Microsoft Corporation", "product_name": "Virtual Machine"}
    tag = "7783-7084-3265-9085-8269-3286-77"
    found = host(computer(tmp_path, chassis_asset_tag=tag, **azure), {})
    assert (found["cloud"], found["virtual"]) == ("Azure", "Hyper-V")
    assert tag not in found.values()


def test_xen_on_ec2(tmp_path: Path) -> None:
    """Its first machines had Xen's firmware with a version of Amazon's."""
    root = computer(tmp_path, sys_vendor="Xen", product_name="HVM domU", bios_version="4.11.amazon")
    (root / "sys/hypervisor").mkdir()
    (root / "sys/hypervisor/type").write_text("xen\n")
    found = host(root, {})
    assert (found["cloud"], found["virtual"]) == ("Amazon EC2", "Xen")
    (root / "sys/class/dmi/id/bios_version").write_text("4.11\n")
    assert "cloud" not in host(root, {})


def test_a_hypervisor_without_a_name(tmp_path: Path) -> None:
    """The processor says that there is one."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("flags\t\t: fpu hypervisor sse\n")
    assert host(tmp_path, {}) == {"virtual": "yes, by which hypervisor is not told"}
    (tmp_path / "proc/cpuinfo").write_text("flags\t\t: fpu sse\n")
    assert host(tmp_path, {}) == {}


class TestContainer:
    def test_no_sign(self, tmp_path: Path) -> None:
        """Nothing is said then."""
        assert container(tmp_path, {}) == ""

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
    def test_by_its_control_group(self, tmp_path: Path, groups: str, kind: str) -> None:
        """Its name is not repeated."""
        (tmp_path / "proc/self").mkdir(parents=True)
        (tmp_path / "proc/self/cgroup").write_text(f"{groups}\n")
        assert container(tmp_path, {}) == f"signs of {kind}: its control group"

    def test_by_marks_and_an_overlay_as_root(self, tmp_path: Path) -> None:
        """All signs are told: one alone may be that of an image on a machine's disk."""
        (tmp_path / "proc/self").mkdir(parents=True)
        line = f"1 0 0:40 / / rw,relatime - overlay overlay rw,upperdir=/{PLANTED}\n"
        (tmp_path / "proc/self/mountinfo").write_text(line)
        assert container(tmp_path, {}) == "signs of a container: an overlay as root"
        (tmp_path / ".dockerenv").touch()
        assert container(tmp_path, {}) == "signs of Docker: /.dockerenv, an overlay as root"
        environ = {"KUBERNETES_SERVICE_HOST": PLANTED}
        found = container(tmp_path, environ)
        assert found.startswith("signs of Kubernetes: its service in the environment, /.dockerenv")
        assert PLANTED not in found


def test_here() -> None:
    """Whatever this machine is, it is said in words."""
    assert all(host().values())


XEN = {"vendor": "Xen", "product": "HVM domU", "cloud": "Amazon EC2"}
TOKEN = "token-of-jane"


class Metadata(http.server.BaseHTTPRequestHandler):
    """Answers as the three services do; what it was asked stands in ``asked``."""

    asked: ClassVar[list[str]] = []
    answers: ClassVar[dict[str, str]] = {}

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
        self.send_response(200 if text else 401)
        self.end_headers()
        self.wfile.write((text or "who are you, account 123456789012?").encode())

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    """A service on this machine. Proxies of the environment are not for it."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setattr(host_module, "_TIMEOUT_S", 30.0)
    Metadata.asked.clear()
    Metadata.answers.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metadata)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield ("127.0.0.1", server.server_port)
    server.shutdown()
    thread.join()
    server.server_close()


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


def test_a_service_that_does_not_answer() -> None:
    """Neither a refused connection nor silence is an answer, and it is not waited for."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        assert instance_type(XEN, {}, silent.getsockname()) is None
        silent.listen()
        assert instance_type(XEN, {}, silent.getsockname()) is None
