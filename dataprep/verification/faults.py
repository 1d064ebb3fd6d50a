"""What verification says."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from dataprep.counted import counted
from dataprep.verification.duplicates import Duplicates

Depth = Literal["quick", "full", "deep"]
_NONE = Duplicates("", "", ())
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is not as it should be; record and offset where they are known.

    ``remedy`` is the object to delete before ``dataprep shard`` is run again, which makes it anew;
    empty where running it again is enough, None where nothing is known to help.
    """

    key: str
    what: str
    record: int | None = None
    offset: int | None = None
    remedy: str | None = None

    @classmethod
    def of(cls, error: Exception, key: str, remedy: str | None = None) -> Fault:
        """What an error says of an object, which it may have named already."""
        return cls(key, str(error).removeprefix(f"{key}: "), remedy=remedy)

    @property
    def place(self) -> str:
        """The object, and record and offset in it where they are known."""
        place = self.key
        if self.record is not None:
            place += f", record {self.record}"
        if self.offset is not None:
            place += f", byte offset {self.offset}"
        return place

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


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
        verdict = "ok" if self.ok else counted(len(self.faults), "fault")
        formats = f", as {' and '.join(self.formats)}" if self.formats else ""
        head = (
            f"{self.split} ({self.depth}): {verdict}: {counted(self.samples, 'sample')} in "
            f"{counted(self.shards, 'shard')}{formats}, {self.bytes / 1e6:,.1f} MB in {self.output}"
        )
        faults = [f"  {fault}" for fault in self.faults]
        mending = [f"  to mend: {self.mending}"] if self.mending else []
        return "\n".join([head, *faults, *mending, *self._remarks()])

    @property
    def mending(self) -> str:
        """What to do about the faults of which that is known."""
        remedies = dict.fromkeys(f.remedy for f in self.faults if f.remedy is not None)
        if not remedies:
            return ""
        named = [key for key in remedies if key]
        shown = ", ".join(named[:_MOST_NAMED])
        if len(named) > _MOST_NAMED:
            shown += f" and {len(named) - _MOST_NAMED:,} more"
        delete = f"delete {shown}, then " if named else ""
        return f"{delete}run the same dataprep shard again: it makes anew what lacks"

    def _remarks(self) -> list[str]:
        return [f"  note: {remark}" for remark in (*self.remarks, *self.duplicates.lines())]

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        duplicates = self.duplicates.as_dict()
        content = asdict(replace(self, duplicates=_NONE))
        return {**content, "duplicates": duplicates, "mending": self.mending, "ok": self.ok}
