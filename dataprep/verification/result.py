"""The result of a verification: faults, their places, and how to repair them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from dataprep.counted import counted
from dataprep.verification.duplicates import Duplicates

Depth = Literal["quick", "full", "deep"]

_DONE = {"quick": "; shards were not read", "full": "", "deep": "; every image was decoded"}


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong in the object ``key``, with its record and byte offset if they are known.

    ``remedy`` is the object to delete before ``dataprep shard`` runs again and makes it anew. It
    is empty if running again is enough, and None if that does not help.
    """

    key: str
    what: str
    record: int | None = None
    offset: int | None = None
    remedy: str | None = None

    def __str__(self) -> str:
        place = "" if self.record is None else f", record {self.record}, byte {self.offset}"
        return f"{self.key}{place}: {self.what}"


@dataclass(frozen=True, slots=True)
class Verification:
    """What was checked in one split, and what was found.

    ``shards`` and ``samples`` count once for all formats, ``bytes`` all shards of all formats.
    Samples of equal content are ``duplicates``, not faults.
    """

    output: str
    split: str
    depth: Depth
    faults: tuple[Fault, ...]
    duplicates: Duplicates
    formats: tuple[str, ...] = ()
    shards: int = 0
    samples: int = 0
    bytes: int = 0

    @property
    def ok(self) -> bool:
        """Whether there are no faults."""
        return not self.faults

    @property
    def repair(self) -> str:
        """What repairs the faults; empty if nothing is known to."""
        remedies = {fault.remedy: None for fault in self.faults if fault.remedy is not None}
        if not remedies:
            return ""
        named = ", ".join(filter(None, remedies))
        delete = f"delete {named} and " if named else ""
        return f"{delete}run the same dataprep shard again"

    def __str__(self) -> str:
        count = counted(len(self.faults), "fault") if self.faults else "no faults"
        lines = [
            f"{self.split}: {count} in {counted(self.shards, 'shard')} "
            f"({counted(self.samples, 'sample')}, {self.bytes / 1e6:,.1f} MB){_DONE[self.depth]}"
        ]
        lines += [f"  {fault}" for fault in self.faults]
        if self.repair:
            lines.append(f"  To repair: {self.repair}.")
        if self.duplicates.groups:
            lines.append(f"  note: {self.duplicates}")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """The content for ``--json``."""
        return {**asdict(self), "mending": self.repair, "ok": self.ok}
