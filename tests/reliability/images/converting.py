"""A child that converts files one by one in bounded memory, and tells of each in a line of JSON.

``python -m tests.reliability.images.converting`` reads paths, a line each. The peak is
``VmHWM`` of ``/proc/self/status``, set back before each file (proc(5), ``clear_refs``).
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

from dataprep.errors import ImageError
from dataprep.image import ImagePolicy, check, convert

MORE_ADDRESSES = 6 * 10**9
"""Bytes of address space beyond what the interpreter and its libraries take."""

POLICIES = {
    "none": ImagePolicy(),
    "crop": ImagePolicy(mode="crop", size=48),
    "keep": ImagePolicy(mode="exact", size=48, truncated="keep", icc="srgb", orientation="apply"),
}


def main() -> None:
    """Answer each path with one line."""
    _bounded()
    for line in sys.stdin:
        told = [tell(Path(json.loads(line)), name) for name in POLICIES]
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


def tell(path: Path, policy: str) -> dict[str, Any]:
    """``result`` is ``written``, an ImageError's kind, or what else went wrong."""
    Path("/proc/self/clear_refs").write_text("5")
    data = path.read_bytes()
    begun_s = time.perf_counter()
    told: dict[str, Any] = {"policy": policy, "reason": "", "notes": []}
    try:
        made = convert(data, POLICIES[policy], name=path.name)
        size = check(made.data)
        told |= {"result": "written", "notes": made.notes}
        if size != (made.width, made.height, made.channels):
            told |= {"result": f"another size: {size}"}
    except ImageError as error:
        told |= {"result": error.kind, "reason": str(error)}
    except BaseException as error:  # noqa: BLE001  whatever it is, it should not have come out
        told |= {"result": f"raised {type(error).__name__}: {error}"}
    told["seconds"] = time.perf_counter() - begun_s
    told["peak_bytes"] = _status("VmHWM")
    return told


def _bounded() -> None:
    most = _status("VmSize") + MORE_ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    found = next(line for line in lines if line.startswith(key + ":"))
    return int(found.split()[1]) * 1024


if __name__ == "__main__":
    main()
