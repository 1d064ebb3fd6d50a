"""What verification says."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from dataprep.counted import counted
from dataprep.verification.duplicates import Duplicates

Depth = Literal["quick", "full", "deep"]
_NONE = Duplicates("", "", ())


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is not as it should be; record and offset where they are known."""

    key: str
    what: str
    record: int | None = None
    offset: int | None = None

    def __str__(self) -> str:
        place = self.key
        if self.record is not None:
            place += f", record {self.record}"
        if self.offset is not None:
            place += f", byte offset {self.offset}"
        return f"{place}: {self.what}"


@dataclass(frozen=True, slots=True)
class Verification:
    """What was checked, and what was found.

    ``shards`` and ``samples`` count once, whatever the number of formats; ``bytes`` are of all
    shards in all formats. Samples of equal content are ``duplicates``, and no fault.
    """

    output: str
    split: str
    depth: Depth
    formats: tuple[str, ...]
    shards: int
    samples: int
    bytes: int
    faults: tuple[Fault, ...]
    remarks: tuple[str, ...]
    duplicates: Duplicates

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults

    def __str__(self) -> str:
        verdict = "ok" if self.ok else f"{len(self.faults):,} faults"
        head = (
            f"{self.split} ({self.depth}): {verdict}: {counted(self.samples, 'sample')} in "
            f"{counted(self.shards, 'shard')}, as {' and '.join(self.formats)}, "
            f"{self.bytes / 1e6:,.1f} MB in {self.output}"
        )
        return "\n".join([head, *(f"  {fault}" for fault in self.faults), *self._remarks()])

    def _remarks(self) -> list[str]:
        return [f"  note: {remark}" for remark in (*self.remarks, *self.duplicates.lines())]

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        duplicates = self.duplicates.as_dict()
        return {**asdict(replace(self, duplicates=_NONE)), "duplicates": duplicates, "ok": self.ok}
