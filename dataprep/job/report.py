"""What a job reports: its progress while it runs, and how each split came out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from dataprep import manifest
from dataprep.counted import counted
from dataprep.job.conversion import Progress
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
class Understood:
    """What a job took its source for: the first line of the summaries of ``shard`` and ``plan``.

    Attributes:
        source: its address, as the config has it.
        kind: what it is, in words: ``class folders``.
        classes: number of classes that have labels; 0 if samples have none.
        images: number of samples.
        label_order: how classes are numbered, in words: ``in the order of names``.
        notes: what else a person should know of how it was read, each a sentence.
    """

    source: str
    kind: str
    classes: int
    images: int
    label_order: str
    notes: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The facts in one line."""
        images = counted(self.images, "image")
        if not self.classes:
            return f"{self.source}: {self.kind}, {images}; no labels"
        classes = counted(self.classes, "class")
        labels = "label 0"
        if self.classes > 1:
            labels = f"labels 0 to {self.classes - 1:,} {self.label_order}"
        return f"{self.source}: {self.kind}, {classes}, {images}; {labels}"

    @property
    def lines(self) -> list[str]:
        """The facts in one line, then a line for each note."""
        return [self.line, *(f"  note: {note}" for note in self.notes)]


@dataclass(frozen=True, slots=True)
class ValidationShare:
    """How many of a job's samples its validation split has, and the share that was asked for."""

    asked: str
    samples: int
    of: int

    @property
    def percent(self) -> float:
        """The share in percent."""
        return 100 * self.samples / max(self.of, 1)


@dataclass(frozen=True, slots=True)
class Summary:
    """A complete split. ``seconds`` and ``images_per_s`` count this run only.

    ``skips`` maps reasons to numbers of skipped samples. ``missing_classes`` are the classes of the
    job, names escaped, without a sample in this split. Both are empty, as ``failures`` is, for a
    split that was complete before this run. ``understood`` is None where no source was read,
    ``validation`` where the split is no share of another one.
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
    understood: Understood | None = None
    missing_classes: tuple[str, ...] = ()
    validation: ValidationShare | None = None

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
            "missing_classes": list(self.missing_classes),
            "validation": None if self.validation is None else asdict(self.validation),
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
    understood: Understood | None = None

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        content = {
            **asdict(self),
            "part": str(self.part),
            "seconds": round(self.seconds, 3),
            "failures": [{"source": name, "reason": reason} for name, reason in self.failures],
        }
        del content["understood"]  # the object has it once, for all splits
        return content
