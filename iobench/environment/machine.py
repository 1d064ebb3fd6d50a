"""What kind of machine this is: its maker, a hypervisor, a cloud, a container.

Told from DMI's ``sys_vendor`` and ``product_name`` (the names that clouds and hypervisors give
are those that systemd-detect-virt(1) and cloud-init's ds-identify go by), ``/sys/hypervisor``
and the processor's ``hypervisor`` flag. Serial numbers, UUIDs and the board's asset tag, which is
an instance's identity, are not read; the chassis' is the same for every machine of Azure.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from iobench.kernel_files import text, word

ROOT = Path("/")
_CLOUDS = {
    "Amazon EC2": "Amazon EC2",
    "Google": "Google Compute Engine",
    "Alibaba Cloud": "Alibaba Cloud",
    "DigitalOcean": "DigitalOcean",
    "Hetzner": "Hetzner",
    "OpenStack Foundation": "OpenStack",
    "OracleCloud": "Oracle Cloud",
    "Scaleway": "Scaleway",
}
_HYPERVISORS = (
    (r"VMware", "VMware"),
    (r"innotek|VirtualBox", "VirtualBox"),
    (r"Xen", "Xen"),
    (r"QEMU|KVM|RHEV|oVirt|Bochs", "QEMU or KVM"),
    (r"Microsoft Corporation Virtual Machine", "Hyper-V"),
    (r"Parallels", "Parallels"),
    (r"BHYVE", "bhyve"),
    (r"Apple Virtualization", "Apple Virtualization"),
    (r"Google Compute Engine|DigitalOcean|Hetzner|OpenStack|Alibaba", "KVM"),
)
_AZURE = "7783-7084-3265-9085-8269-3286-77"
_MARKS = ((".dockerenv", "Docker"), ("run/.containerenv", "Podman"))
_GROUPS = (
    (r"kubepods", "Kubernetes"),
    (r"/docker[/-]", "Docker"),
    (r"libpod", "Podman"),
    (r"/lxc[./]", "LXC"),
    (r"containerd|crio", "a container"),
)


def machine(root: Path = ROOT, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """``vendor``, ``product``, ``cloud``, ``virtual`` and ``container``, each where it is told."""
    dmi = root / "sys/class/dmi/id"
    vendor, product = word(dmi / "sys_vendor"), word(dmi / "product_name")
    found = {
        "vendor": vendor,
        "product": product,
        "cloud": _cloud(dmi, vendor, product),
        "virtual": _virtual(root, vendor, product),
        "container": container(root, environ),
    }
    return {name: value for name, value in found.items() if value}


def container(root: Path = ROOT, environ: Mapping[str, str] = os.environ) -> str:
    """``signs of Docker: /.dockerenv``; "" where nothing shows a container.

    Signs, since a machine's disk may have been made of a container's image.
    """
    shown = list(dict.fromkeys(_signs(root, environ)))
    if not shown:
        return ""
    return f"signs of {shown[0][0]}: {', '.join(sign for _, sign in shown)}"


def _signs(root: Path, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if environ.get("KUBERNETES_SERVICE_HOST"):
        yield "Kubernetes", "its service in the environment"
    for name, kind in _MARKS:
        if (root / name).exists():
            yield kind, f"/{name}"
    groups = text(root / "proc/self/cgroup")
    for pattern, kind in _GROUPS:
        if re.search(pattern, groups):
            yield kind, "its control group"
            break
    if re.search(r"^\d+ \d+ \S+ \S+ / .* - overlay ", text(root / "proc/self/mountinfo"), re.M):
        yield "a container", "an overlay as root"


def _cloud(dmi: Path, vendor: str, product: str) -> str:
    if vendor == "Microsoft Corporation":
        # Hyper-V has the same names on any machine.
        return "Azure" if text(dmi / "chassis_asset_tag") == _AZURE else ""
    if vendor == "Xen" and "amazon" in text(dmi / "bios_version").lower():
        return "Amazon EC2"
    if vendor == "Google" and product != "Google Compute Engine":
        return ""
    return _CLOUDS.get(vendor, "")


def _virtual(root: Path, vendor: str, product: str) -> str:
    if vendor == "Amazon EC2":
        return "" if re.search(r"\.metal\b", product) else "KVM (Nitro)"
    if word(root / "sys/hypervisor/type") == "xen":
        return "Xen"
    for pattern, name in _HYPERVISORS:
        if re.search(pattern, f"{vendor} {product}"):
            return name
    flags = re.search(r"^flags\s*:.*\bhypervisor\b", text(root / "proc/cpuinfo"), re.M)
    return "yes, by which hypervisor is not told" if flags else ""
