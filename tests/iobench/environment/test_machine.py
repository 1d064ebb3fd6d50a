"""What kind of machine it is: maker, hypervisor, cloud, container."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iobench.environment.machine import container, machine
from tests.iobench.targets.machines import PLANTED


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
    found = machine(computer(tmp_path, sys_vendor=vendor, product_name=product), {})
    assert (found["vendor"], found["product"]) == (vendor, product)
    assert (found.get("cloud"), found.get("virtual")) == (cloud, virtual)
    assert PLANTED not in json.dumps(found)


def test_azure_is_told_from_other_hyper_v(tmp_path: Path) -> None:
    """By a tag that all of its machines have."""
    azure = {"sys_vendor": "Microsoft Corporation", "product_name": "Virtual Machine"}
    tag = "7783-7084-3265-9085-8269-3286-77"
    found = machine(computer(tmp_path, chassis_asset_tag=tag, **azure), {})
    assert (found["cloud"], found["virtual"]) == ("Azure", "Hyper-V")
    assert tag not in found.values()


def test_xen_on_ec2(tmp_path: Path) -> None:
    """Its first machines had Xen's firmware with a version of Amazon's."""
    root = computer(tmp_path, sys_vendor="Xen", product_name="HVM domU", bios_version="4.11.amazon")
    (root / "sys/hypervisor").mkdir()
    (root / "sys/hypervisor/type").write_text("xen\n")
    found = machine(root, {})
    assert (found["cloud"], found["virtual"]) == ("Amazon EC2", "Xen")
    (root / "sys/class/dmi/id/bios_version").write_text("4.11\n")
    assert "cloud" not in machine(root, {})


def test_a_hypervisor_without_a_name(tmp_path: Path) -> None:
    """The processor says that there is one."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("flags\t\t: fpu hypervisor sse\n")
    assert machine(tmp_path, {}) == {"virtual": "yes, by which hypervisor is not told"}
    (tmp_path / "proc/cpuinfo").write_text("flags\t\t: fpu sse\n")
    assert machine(tmp_path, {}) == {}


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
    assert all(machine().values())
