"""The results of checks: an inspection, and a verification with its faults and their repair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from dataprep.checking.duplicates import Duplicates
from dataprep.message_text import counted
from dataprep.name_encoding import escape

Depth = Literal["quick", "full", "deep"]
"""How much a verification reads. ``verify`` describes the values."""

_DEPTH_REMARKS = {
    "quick": "; shards were not read",
    "full": "",
    "deep": "; every image was decoded",
}


@dataclass(frozen=True, slots=True)
class Inspection:
    """The result of an inspection.

    Attributes:
        text: the result as text.
        content: the result as ``--json`` prints it.
        ok: whether no damage was found.
    """

    text: str
    content: dict[str, Any]
    ok: bool = True

    def __str__(self) -> str:
        return self.text

    @classmethod
    def of_file(cls, line: str, content: dict[str, Any], faults: Sequence[str]) -> Inspection:
        """Return the result of a view that was written to a file.

        Args:
            line: describes the file. A line for each fault follows.
            content: the result as ``--json`` prints it.
            faults: the damage that was found.
        """
        lines = [escape(line)]
        lines += [escape(fault) for fault in faults]
        return cls("\n  fault: ".join(lines), content, not faults)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in an output.

    Attributes:
        key: the key of the faulty object.
        what: a description of the fault.
        record: the number of the record in the shard, from 0; None if the fault is not in a record.
        offset: the offset of this record in bytes.
        remedy: the key of the object to delete before ``dataprep shard`` is run again, which
            writes it again. It is empty if nothing has to be deleted, and None if running
            ``dataprep shard`` does not repair the fault.
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
        faults: all faults, but only the first faults of an object that has many.
        duplicates: samples with equal content. They do not count as faults.
        formats: the formats of the split.
        shards: the number of shards in each format whose receipts can be used.
        samples: the number of samples in each format, according to these receipts.
        bytes: the size of these shards in all formats together.
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
        """Instructions for repairing the faults; empty if no way is known."""
        remedies = [fault.remedy for fault in self.faults if fault.remedy is not None]
        if not remedies:
            return ""
        distinct_remedies = dict.fromkeys(remedies)  # keeps the order
        keys = [remedy for remedy in distinct_remedies if remedy]
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
