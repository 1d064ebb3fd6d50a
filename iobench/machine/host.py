"""The kind of machine: its maker, its cloud and machine type, and signs of a container.

Maker and cloud come from DMI's ``sys_vendor`` and ``product_name``, with the names that
cloud-init's ds-identify knows. Serial numbers, UUIDs and the asset tag of the board, which
identifies an instance, are not read. The asset tag of the chassis is the same for all machines of
Azure.

The machine type comes from the metadata service of a cloud. A request is sent only if DMI shows a
machine of that cloud, since elsewhere the address may belong to another service.

Amazon EC2, IMDSv2:
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html (Nitro
machines need no request, since DMI's product name is their type). Google:
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
from typing import NamedTuple

from dataprep.machine.kernel_files import ROOT, one_line, text

METADATA_ADDRESS = ("169.254.169.254", 80)
"""The address of the metadata service, in every cloud."""

_TIMEOUT_S = 0.2
"""The maximum wait for an answer of the metadata service, in seconds."""
_MACHINE_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{1,48}")
_MAX_ANSWER_BYTES = 256
"""How much of an answer is read. Tokens and names of machine types are shorter."""


class _MetadataRequest(NamedTuple):
    """A request to the metadata service of a cloud."""

    path: str
    headers: Mapping[str, str]


_AWS_TOKEN_REQUEST = _MetadataRequest(
    "/latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
)
_TYPE_REQUESTS = {
    "Amazon EC2": _MetadataRequest("/latest/meta-data/instance-type", {}),
    "Google Compute Engine": _MetadataRequest(
        "/computeMetadata/v1/instance/machine-type", {"Metadata-Flavor": "Google"}
    ),
    "Azure": _MetadataRequest(
        "/metadata/instance/compute/vmSize?api-version=2021-02-01&format=text",
        {"Metadata": "true"},
    ),
}
"""The request for the machine type, by cloud."""

# Patterns of vendor and product, and the cloud.
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
_AZURE_ASSET_TAG = "7783-7084-3265-9085-8269-3286-77"
_CONTAINER_FILES = ((".dockerenv", "Docker"), ("run/.containerenv", "Podman"))
# Patterns of the control group, and the container.
_CONTROL_GROUPS = (
    (r"kubepods", "Kubernetes"),
    (r"/docker[/-]", "Docker"),
    (r"libpod", "Podman"),
    (r"/lxc[./]", "LXC"),
    (r"containerd|crio", "a container"),
)


def host(root: Path = ROOT, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return ``vendor``, ``product``, ``cloud`` and ``container``, as far as they are known.

    Args:
        root: the folder that contains ``sys`` and ``proc``.
        environ: the environment variables.
    """
    dmi = root / "sys/class/dmi/id"
    vendor, product = one_line(dmi / "sys_vendor"), one_line(dmi / "product_name")
    cloud = _first_match(_CLOUDS, f"{vendor} {product}")
    # Hyper-V has the same vendor and product on any machine. Only Azure has this asset tag.
    if vendor == "Microsoft Corporation" and text(dmi / "chassis_asset_tag") == _AZURE_ASSET_TAG:
        cloud = "Azure"
    if vendor == "Xen" and "amazon" in text(dmi / "bios_version").lower():
        cloud = "Amazon EC2"
    values = {
        "vendor": vendor,
        "product": product,
        "cloud": cloud,
        "container": container(root, environ),
    }
    return {name: value for name, value in values.items() if value}


def container(root: Path = ROOT, environ: Mapping[str, str] = os.environ) -> str:
    """Return signs of a container, such as ``signs of Docker: /.dockerenv``; empty without signs.

    The first sign names the kind of container. Signs are no proof, since the disk of a machine may
    be made from the image of a container.
    """
    signs = []
    if environ.get("KUBERNETES_SERVICE_HOST"):
        signs.append(("Kubernetes", "its service in the environment"))
    signs += [(kind, f"/{name}") for name, kind in _CONTAINER_FILES if (root / name).exists()]
    group_kind = _first_match(_CONTROL_GROUPS, text(root / "proc/self/cgroup"))
    if group_kind:
        signs.append((group_kind, "its control group"))
    if re.search(r"^\d+ \d+ \S+ \S+ / .* - overlay ", text(root / "proc/self/mountinfo"), re.M):
        signs.append(("a container", "an overlay as root"))
    if not signs:
        return ""
    return f"signs of {signs[0][0]}: {', '.join(sign for _, sign in signs)}"


def instance_type(
    machine: Mapping[str, str],
    environ: Mapping[str, str] = os.environ,
    address: tuple[str, int] = METADATA_ADDRESS,
) -> str | None:
    """Return the machine type, such as ``p4d.24xlarge`` or ``a2-highgpu-1g``; None if unknown.

    Args:
        machine: the result of ``host``.
        environ: the environment variables. With ``AWS_EC2_METADATA_DISABLED=true``, no request is
            sent.
        address: host and port of the metadata service.
    """
    product, cloud = machine.get("product", ""), machine.get("cloud", "")
    if machine.get("vendor") == "Amazon EC2" and _MACHINE_TYPE.fullmatch(product):
        return product
    disabled = environ.get("AWS_EC2_METADATA_DISABLED", "").strip().lower() == "true"
    if cloud not in _TYPE_REQUESTS or disabled:
        return None
    request = _TYPE_REQUESTS[cloud]
    try:
        if cloud == "Amazon EC2":
            token = _answer(address, "PUT", _AWS_TOKEN_REQUEST)
            request = request._replace(headers={"X-aws-ec2-metadata-token": token})
        answer = _answer(address, "GET", request)
    except (OSError, http.client.HTTPException, ValueError):
        return None
    # Google answers projects/NUMBER/machineTypes/TYPE.
    machine_type = answer.rpartition("/")[2]
    return machine_type if _MACHINE_TYPE.fullmatch(machine_type) else None


def _first_match(table: Iterable[tuple[str, str]], content: str) -> str:
    """Return the name of the first pattern that is found in a text; empty if none is found.

    Args:
        table: pairs of a regular expression and a name.
        content: the text.
    """
    for pattern, name in table:
        if re.search(pattern, content):
            return name
    return ""


def _answer(address: tuple[str, int], method: str, request: _MetadataRequest) -> str:
    """Send a request without a proxy, and return the body of the answer.

    Raises:
        OSError, HTTPException: there is no answer within ``_TIMEOUT_S``, or it reports an error.
        ValueError: the body is not ASCII.
    """
    host_name, port = address
    url = f"http://{host_name}:{port}{request.path}"
    http_request = urllib.request.Request(url, headers=dict(request.headers), method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(http_request, timeout=_TIMEOUT_S) as response:
        body: bytes = response.read(_MAX_ANSWER_BYTES)
    return body.decode("ascii").strip()
