"""What a job reports: its progress while it runs, and then a summary of each split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from dataprep.job.conversion import Progress
from dataprep.job.parts import Part
from dataprep.message_text import counted
from dataprep.output import manifest
from dataprep.output.manifest import Manifest


class Display:
    """Receives the progress of a job. This class shows nothing; subclasses override its methods."""

    def start(self, split: str, samples: int, done: int) -> None:
        """Receive the start of a split.

        Args:
            split: the name of the split.
            samples: the number of samples that this run is responsible for: those of the whole
                split, or of a part of it.
            done: the number of these samples that are in shards that are stored already.
        """

    def advance(self, progress: Progress) -> None:
        """Receive the progress since the last call. Called from any thread."""

    def note(self, line: str) -> None:
        """Receive a message for the user, which is one line."""

    def stop(self) -> None:
        """Receive the end of the work on a split. No more progress of this split follows."""


@dataclass(frozen=True, slots=True)
class Understood:
    """How the program interprets a source: its kind, images, classes and labels.

    ``shard`` and ``plan`` print it first, so that the user notices a misunderstanding early.

    Attributes:
        source: the address of the source, as in the config.
        kind: the kind of the source, as a phrase such as ``class folders``.
        classes: the number of classes that have labels; 0 if samples have no labels.
        images: the number of samples.
        label_order: how classes are numbered, as a phrase such as ``in the order of names``.
        notes: further sentences about how the source was read.
    """

    source: str
    kind: str
    classes: int
    images: int
    label_order: str
    notes: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The source, its kind, classes, images and labels in one line."""
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
        """``line``, and a line for each note."""
        return [self.line, *(f"  note: {note}" for note in self.notes)]


@dataclass(frozen=True, slots=True)
class ValidationShare:
    """The size of a validation split that was taken from another split.

    Attributes:
        asked: the requested share, as the config has it, such as ``5%``.
        samples: the number of samples of the validation split.
        of: the number of samples of both splits together.
    """

    asked: str
    samples: int
    of: int

    @property
    def percent(self) -> float:
        """The actual share of the samples, in percent."""
        return 100 * self.samples / max(self.of, 1)


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a complete split.

    Attributes:
        split: the name of the split.
        output: the address of the output.
        manifest: the manifest of the split.
        seconds: how long this run worked on the split.
        made_shards: the number of shards that this run made.
        kept_shards: the number of shards that earlier runs made.
        images_per_s: the number of samples that this run converted, divided by ``seconds``.
        failures: the name and the reason of each failed sample; empty if the split was complete
            before this run.
        skips: the number of skipped samples by reason; empty if the split was complete before.
        understood: how the source was interpreted; None if the source was not read.
        missing_classes: the classes of the job without a sample in this split, with escaped names;
            empty if the split was complete before.
        validation: the size of the validation split; None if this split was not taken from another
            split.
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
        """Return the summary as ``--json`` prints it."""
        formats = {}
        for name, entry in self.manifest.formats.items():
            formats[name] = {
                "shards": len(entry.shards),
                "records": entry.records,
                "bytes": entry.bytes,
                "label_offset": entry.label_offset,
            }
        return {
            "split": self.split,
            "output": self.output,
            "samples": asdict(self.manifest.samples),
            "formats": formats,
            "warnings": dict(self.manifest.warnings),
            "spread": round(manifest.spread(self.manifest.formats), 4),
            "made_shards": self.made_shards,
            "kept_shards": self.kept_shards,
            "seconds": round(self.seconds, 3),
            "images_per_s": round(self.images_per_s, 1),
            "fingerprint": self.manifest.fingerprint,
            "failures": _failures_as_json(self.failures),
            "skips": dict(self.skips),
            "missing_classes": list(self.missing_classes),
            "validation": None if self.validation is None else asdict(self.validation),
        }


@dataclass(frozen=True, slots=True)
class PartSummary:
    """The summary of one part of a split. The field names are keys of ``--json``.

    Attributes:
        split: the name of the split.
        output: the address of the output.
        part: the part that this run made.
        shards: the number of shards of the whole split.
        made_shards: the number of shards that this run made.
        kept_shards: the number of shards of this part that earlier runs made.
        lacking_shards: the number of shards of the whole split that are not stored yet.
        complete: whether the split has its manifest and all its shards.
        samples: the number of samples that this run converted.
        failed: the number of samples that failed in this run.
        seconds: how long this run worked on the part.
        failures: the name and the reason of a few samples that failed in this run.
        understood: how the source was interpreted.
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
        """Return the summary as ``--json`` prints it."""
        content = asdict(self)
        content["part"] = str(self.part)
        content["seconds"] = round(self.seconds, 3)
        content["failures"] = _failures_as_json(self.failures)
        del content["understood"]  # --json prints it once, for all splits
        return content


def _failures_as_json(failures: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """The name and the reason of each failed sample, as objects."""
    return [{"source": name, "reason": reason} for name, reason in failures]
