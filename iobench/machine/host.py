"""The kind of machine: its maker, a cloud and its machine type, a container.

From DMI's ``sys_vendor`` and ``product_name`` (with the names that cloud-init's ds-identify
knows). Serial numbers, UUIDs and the board's asset tag, which identifies an instance, are not read;
the chassis' is the same for every machine of Azure.

The machine type comes from a cloud's metadata service. It is asked only if DMI shows a machine of
that cloud, since elsewhere the address may belong to another service. Amazon EC2, IMDSv2:
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html (Nitro
machines are not asked, since DMI's product name is their type). Google:
https://cloud.google.com/compute/docs/metadata/querying-metadata. Azure:
https://learn.microsoft.com/azure/virtual-machines/instance-metadata-service.
"""

from __future__ import annotations

import http.client
import os
import re
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path

from dataprep.kernel_files import ROOT, text, word

METADATA = ("169.254.169.254", 80)
_TIMEOUT_S = 0.2
_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{1,48}")
_LONGEST = 256
_AWS_TOKEN = "/latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
_TYPE_AT = {
    "Amazon EC2": ("/latest/meta-data/instance-type", {}),
    "Google Compute Engine": (
        "/computeMetadata/v1/instance/machine-type",
        {"Metadata-Flavor": "Google"},
    ),
    "Azure": (
        "/metadata/instance/compute/vmSize?api-version=2021-02-01&format=text",
        {"Metadata": "true"},
    ),
}
# Patterns of vendor and product.
_CLOUDS = (
    (r"^Amazon EC2 ", "Amazon EC2"),
    (r"^Google Google Compute Engine$", "Google Compute Engine"),
    (r"^Alibaba Cloud ", "Alibaba Cloud"),
    (r"^DigitalOcean ", "DigitalOcean"),
    (r"^Hetzner ", "Hetzner"),
    (r"^OpenStack Foundation ", "OpenStack"),
    (r"^OracleCloud ", "Oracle Cloud"),
    (r"^Scaleway ", "Scaleway"),
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


def host(root: Path = ROOT, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """``vendor``, ``product``, ``cloud`` and ``container``, each where known."""
    dmi = root / "sys/class/dmi/id"
    vendor, product = word(dmi / "sys_vendor"), word(dmi / "product_name")
    cloud = _first(_CLOUDS, f"{vendor} {product}")
    # Hyper-V has the same names on any machine.
    if vendor == "Microsoft Corporation" and text(dmi / "chassis_asset_tag") == _AZURE:
        cloud = "Azure"
    if vendor == "Xen" and "amazon" in text(dmi / "bios_version").lower():
        cloud = "Amazon EC2"
    found = {
        "vendor": vendor,
        "product": product,
        "cloud": cloud,
        "container": container(root, environ),
    }
    return {name: value for name, value in found.items() if value}


def container(root: Path = ROOT, environ: Mapping[str, str] = os.environ) -> str:
    """``signs of Docker: /.dockerenv``; empty where nothing shows a container.

    Signs only, since a machine's disk may have been made of a container's image.
    """
    signs = []
    if environ.get("KUBERNETES_SERVICE_HOST"):
        signs.append(("Kubernetes", "its service in the environment"))
    signs += [(kind, f"/{name}") for name, kind in _MARKS if (root / name).exists()]
    if kind := _first(_GROUPS, text(root / "proc/self/cgroup")):
        signs.append((kind, "its control group"))
    if re.search(r"^\d+ \d+ \S+ \S+ / .* - overlay ", text(root / "proc/self/mountinfo"), re.M):
        signs.append(("a container", "an overlay as root"))
    return f"signs of {signs[0][0]}: {', '.join(sign for _, sign in signs)}" if signs else ""


def instance_type(
    machine: Mapping[str, str],
    environ: Mapping[str, str] = os.environ,
    address: tuple[str, int] = METADATA,
) -> str | None:
    """``p4d.24xlarge``, ``a2-highgpu-1g``, ``Standard_ND96asr_v4``; None where not available.

    Args:
        machine: what ``host`` returned.
        environ: with ``AWS_EC2_METADATA_DISABLED=true`` no service is asked.
        address: the metadata service's.
    """
    product, cloud = machine.get("product", ""), machine.get("cloud", "")
    if machine.get("vendor") == "Amazon EC2" and _TYPE.fullmatch(product):
        return product
    disabled = environ.get("AWS_EC2_METADATA_DISABLED", "").strip().lower() == "true"
    if cloud not in _TYPE_AT or disabled:
        return None
    path, headers = _TYPE_AT[cloud]
    try:
        if cloud == "Amazon EC2":
            headers = {"X-aws-ec2-metadata-token": _answer(address, "PUT", *_AWS_TOKEN)}
        answer = _answer(address, "GET", path, headers)
    except (OSError, http.client.HTTPException, ValueError):
        return None
    kind = answer.rpartition("/")[2]  # Google's: projects/NUMBER/machineTypes/TYPE
    return kind if _TYPE.fullmatch(kind) else None


def _first(table: Iterable[tuple[str, str]], told: str) -> str:
    """The name of the first pattern that is found; empty for none."""
    return next((name for pattern, name in table if re.search(pattern, told)), "")


def _answer(address: tuple[str, int], method: str, path: str, headers: Mapping[str, str]) -> str:
    """The body of an answer, past all proxies; each wait is at most ``_TIMEOUT_S``."""
    url = f"http://{address[0]}:{address[1]}{path}"
    request = urllib.request.Request(url, headers=dict(headers), method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=_TIMEOUT_S) as response:
        return str(response.read(_LONGEST).decode("ascii").strip())
