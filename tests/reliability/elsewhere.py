"""``python -m tests.reliability.elsewhere``: ``dataprep`` as if on another machine.

It cannot tell then whether the process that left a lease still lives.
"""

from __future__ import annotations

from dataprep.cli import main
from dataprep.stores import s3_leases


def _another() -> str:
    return "another machine"


if __name__ == "__main__":
    s3_leases._machine = _another  # type: ignore[assignment, attr-defined]
    main()
