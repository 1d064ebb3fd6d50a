"""The result of a verification: faults, where they are, and how they can be repaired."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from dataprep.checking.duplicates import Duplicates
from dataprep.counted import counted

Depth = Literal["quick", "full", "deep"]

_DEPTH_REMARKS = {
    "quick": "; shards were not read",
    "full": "",
    "deep": "; every image was decoded",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong in an output.

    Attributes:
        key: the object that is wrong.
        what: what is wrong, as a text.
        record: the number of the record in the shard, from 0; None if it is not one record.
        offset: the offset of this record in bytes.
        remedy: the key of the object to delete before ``dataprep shard`` runs again and writes it
            anew. It is empty if it is enough to run again, and None if this does not help.
    """

    key: str
    what: str
    record: int | None = None
    offset: int | None = None
    remedy: str | None = None

    def __str__(self) -> str:
        if self.record is None:
            return f"{self.key}: {self.what}"
        return f"{self.key}, record {self.record}, byte {self.offset}: {self.what}"


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of the verification of one split.

    Attributes:
        output: the URI of the output.
        split: the name of the split.
        depth: how much was read.
        faults: everything that is wrong.
        duplicates: samples with equal content, which are no faults.
        formats: the formats of the split.
        shards: the number of shards in each format.
        samples: the number of samples in each format.
        bytes: the size of all shards in all formats together.
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
        """How the faults can be repaired, as a text; empty if no way is known."""
        remedies = [fault.remedy for fault in self.faults if fault.remedy is not None]
        if not remedies:
            return ""
        keys = [key for key in dict.fromkeys(remedies) if key]  # each key once, in order
        if not keys:
            return "run the same dataprep shard again"
        return f"delete {', '.join(keys)} and run the same dataprep shard again"

    def __str__(self) -> str:
        count = counted(len(self.faults), "fault") if self.faults else "no faults"
        size = f"{counted(self.samples, 'sample')}, {self.bytes / 1e6:,.1f} MB"
        remark = _DEPTH_REMARKS[self.depth]
        lines = [
            f"{self.split}: {count} in {counted(self.shards, 'shard')} ({size}){remark}",
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
