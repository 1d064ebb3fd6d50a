"""NVIDIA GPUs as ``nvidia-smi`` tells them, with their link."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

SYSFS = Path("/sys")
_ALWAYS = ("name", "memory.total", "driver_version")
_LINK = (
    *("pcie.link.gen.max", "pcie.link.width.max"),
    *("pcie.link.gen.current", "pcie.link.width.current"),
)
_MORE = (*_LINK, "power.limit", "mig.mode.current", "persistence_mode")
_BUS = "pci.bus_id"
_TIMEOUT_S = 20


def gpus(root: Path = SYSFS) -> list[dict[str, str]]:
    """Name, memory and driver of each; PCI Express link, power limit, MIG and the NUMA node
    where they are told. None where its tool does not answer.

    A GPU that rests lowers ``pcie.link.gen.current``: the greatest is its link.
    """
    # An old driver refuses the whole question for one field that it does not know.
    return _asked((*_ALWAYS, *_MORE, _BUS), root) or _asked(_ALWAYS, root)


def _asked(fields: Sequence[str], root: Path) -> list[dict[str, str]]:
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return []
    return parsed(done.stdout, fields, root)


def parsed(text: str, fields: Sequence[str], root: Path = SYSFS) -> list[dict[str, str]]:
    """Rows of the answer; what the tool calls not available is left out."""
    rows = [line.split(", ") for line in text.splitlines()]
    found = []
    for row in rows:
        if len(row) != len(fields):
            continue
        told = {name: value.strip() for name, value in zip(fields, row, strict=True)}
        node = _node(told.pop(_BUS, ""), root)
        known = {name: value for name, value in told.items() if not _is_absent(value)}
        found.append({**known, **({"numa_node": node} if node else {})})
    return found


def _is_absent(value: str) -> bool:
    return value.startswith("[") or value in ("N/A", "")


def _node(bus_id: str, root: Path) -> str:
    """The node that a GPU is attached to; the kernel's -1 is none."""
    match = re.fullmatch(
        r"[0-9A-Fa-f]{4}([0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)", bus_id
    )
    if not match:
        return ""
    try:
        text = (root / "bus/pci/devices" / match[1].lower() / "numa_node").read_text().strip()
    except OSError:
        return ""
    return text if text.isdecimal() else ""
