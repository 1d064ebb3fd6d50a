"""What a place holds, before anything of it is read: files, samples, bytes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dataprep.dataset import open_dataset
from dataprep.sources.imagefolder import ImageFolder
from iobench.errors import Unavailable
from iobench.trial import Place


@dataclass(frozen=True, slots=True)
class Stored:
    """``files`` are local paths, none where the place is remote."""

    samples: int
    bytes: int
    classes: int
    files: tuple[Path, ...]

    @property
    def sample_bytes(self) -> float:
        """Mean stored size of a sample."""
        return self.bytes / self.samples if self.samples else 0.0


def stored(place: Place, reads: str) -> Stored:
    """What a reader of the format ``reads``, or of ``files``, finds at ``place``.

    Raises:
        Unavailable: the place holds something else.
        DatasetError, SourceError: nothing there.
    """
    wanted = "files" if reads == "files" else "shards"
    if place.holds != wanted:
        raise Unavailable(f"this loader reads {wanted}; these data are {place.holds}")
    return _of_files(place) if reads == "files" else _of_shards(place, reads)


def _of_shards(place: Place, format_name: str) -> Stored:
    dataset = open_dataset(place.uri, place.split, format=format_name, options=place.store)
    entry = dataset.manifest.formats[format_name]
    keys = [shard.key for shard in entry.shards]
    return Stored(
        samples=entry.records,
        bytes=entry.bytes,
        classes=len(dataset.label_space.labels),
        files=() if place.is_remote else tuple(Path(place.uri) / key for key in keys),
    )


def _of_files(place: Place) -> Stored:
    listing = ImageFolder(place.uri, place.store).list()
    root = Path(place.uri)
    rows = [row for row in range(len(listing)) if row not in listing.problems]
    return Stored(
        samples=len(rows),
        bytes=int(listing.sizes[rows].sum()),
        classes=len({listing.classes[row] for row in rows}),
        files=() if place.is_remote else tuple(root / listing.names[row] for row in rows),
    )
