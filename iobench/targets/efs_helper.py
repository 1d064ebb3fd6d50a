"""Which local ports are those of EFS's mount helper.

It mounts ``127.0.0.1:/`` by a proxy of its own, and keeps a file ``fs-ID.MOUNT.POINT.PORT`` for
each in ``/var/run/efs``, which root alone may list (``get_mount_specific_filename`` in
aws/efs-utils).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

STATE = Path("/var/run/efs")


def mounted_by_helper(options: Iterable[str], state: Path = STATE) -> bool:
    """Whether the port among a mount's options is one of its; False where that cannot be told."""
    ports = {option.removeprefix("port=") for option in options if option.startswith("port=")}
    try:
        names = [path.name for path in state.iterdir()]
    except OSError:
        return False
    kept = (re.fullmatch(r"fs-[0-9a-f]+\..*\.(\d+)", name) for name in names)
    return any(match[1] in ports for match in kept if match)
