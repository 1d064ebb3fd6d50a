"""What a job reports: its progress while it runs, and how each split came out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from dataprep import manifest
from dataprep.job.worker import Progress
from dataprep.manifest import Manifest
from dataprep.split_plan import Part


class Display:
    """Receives a job's progress, and shows nothing; subclasses show it."""

    def start(self, split: str, samples: int, done: int) -> None:
        """A split begins; ``done`` of its samples are stored already."""

    def advance(self, progress: Progress) -> None:
        """Work was done; called from any thread."""

    def note(self, line: str) -> None:
        """Something worth a line of its own."""

    def stop(self) -> None:
        """Nothing more will come for this split."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A complete split. ``seconds`` and ``images_per_s`` count this run only.

    ``skips`` maps reasons to numbers of skipped samples. It is empty, as ``failures`` is, for a
    split that was complete before this run.
    """

    split: str
    output: str
    manifest: Manifest
    seconds: float
    made_shards: int
    kept_shards: int
    images_per_s: float
    failures: tuple[tuple[str, str], ...]
    skips: Mapping[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        counts = self.manifest.samples
        return {
            "split": self.split,
            "output": self.output,
            "samples": asdict(counts),
            "formats": {
                name: {
                    "shards": len(entry.shards),
                    "records": entry.records,
                    "bytes": entry.bytes,
                    "label_offset": entry.label_offset,
                }
                for name, entry in self.manifest.formats.items()
            },
            "warnings": dict(self.manifest.warnings),
            "spread": round(manifest.spread(self.manifest.formats), 4),
            "made_shards": self.made_shards,
            "kept_shards": self.kept_shards,
            "seconds": round(self.seconds, 3),
            "images_per_s": round(self.images_per_s, 1),
            "fingerprint": self.manifest.fingerprint,
            "failures": [{"source": name, "reason": reason} for name, reason in self.failures],
            "skips": dict(self.skips),
        }


@dataclass(frozen=True, slots=True)
class PartSummary:
    """One part of a split.

    ``shards`` counts the whole split, of which ``lacking_shards`` are not stored yet. ``samples``,
    ``failed``, ``seconds`` and ``failures`` (name and reason of a few) count this run only.
    ``complete`` means that the split has its manifest already.
    """

    split: str
    output: str
    part: Part
    shards: int
    made_shards: int
    kept_shards: int
    lacking_shards: int
    complete: bool
    samples: int
    failed: int
    seconds: float
    failures: tuple[tuple[str, str], ...]

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            **asdict(self),
            "part": str(self.part),
            "seconds": round(self.seconds, 3),
            "failures": [{"source": name, "reason": reason} for name, reason in self.failures],
        }
