"""A complete split of an output of this program as a source: its tables say where images lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dataprep import keys
from dataprep.arrow_bytes import parquet, require_enough
from dataprep.errors import DatasetError, ObjectNotFound, SourceError
from dataprep.labels import LabelSpace
from dataprep.manifest import Manifest, require_sums
from dataprep.names import unescape
from dataprep.snapshot import Snapshot
from dataprep.sources.protocol import Problem
from dataprep.sources.record_content import Fields, fields_of
from dataprep.sources.record_files import Format
from dataprep.stored_table import stored_table
from dataprep.stores import ObjectInfo, Store

_MANIFEST = ".manifest.json"


@dataclass(frozen=True)
class OwnSplit:
    """The samples that were written, in the order of their records.

    Attributes:
        form: the format that is read.
        fields: what the features of its Examples hold.
        shards: key of each shard, as it lies there; None for one that is missing.
        names, classes: of each sample.
        shard: int64 number of each one's shard.
        offsets: int64 byte at which its record begins.
        lengths: int64 bytes of its record.
        sizes: int64 bytes of its image; None in outputs of earlier versions.
        values: float32 labels where samples have several.
        label_space: the classes of the output.
        snapshot: its objects, as long as its manifest stays.
        has_boxes: whether its records have bounding boxes.
    """

    form: Format
    fields: Fields
    shards: Sequence[ObjectInfo]
    names: Sequence[str]
    classes: Sequence[str]
    shard: NDArray[np.int64]
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]
    sizes: NDArray[np.int64] | None
    values: NDArray[np.float32] | None
    label_space: LabelSpace
    snapshot: Snapshot
    has_boxes: bool = False

    def cut_off(self) -> dict[int, Problem]:
        """Samples whose record is beyond the end of what is left of its shard."""
        ends = np.array([shard.bytes for shard in self.shards], dtype=np.int64)[self.shard]
        return {
            row: Problem("failed", f"{self.shards[self.shard[row]].key} ends before its record")
            for row in np.flatnonzero(self.offsets + self.lengths > ends).tolist()
        }


def find_own(entries: Mapping[str, ObjectInfo], split: str, where: str) -> bool:
    """Whether ``entries`` are an output of this program that has a complete ``split``.

    Raises:
        SourceError: they are one, but it has other splits only, or none that is complete.
    """
    if keys.manifest(split) in entries:
        return True
    complete = sorted(key.removesuffix(_MANIFEST) for key in entries if _is_manifest(key))
    if complete:
        raise SourceError(
            f"{where} has no split {split!r}: it has {', '.join(complete)}; say which with "
            "--set records.split=NAME"
        )
    begun = sorted(found for key in entries if (found := keys.split_of_job(key)))
    if begun:
        raise SourceError(
            f"{where} is not complete: split {begun[0]!r} has no manifest; run the job that makes "
            "it again, it resumes"
        )
    return False


def read_own(store: Store, entries: Mapping[str, ObjectInfo], split: str, wanted: str) -> OwnSplit:
    """The samples of a complete split; ``wanted`` is a format or ``auto``.

    Raises:
        SourceError: its tables cannot be read, or it has not this format.
    """
    try:
        manifest, snapshot = Snapshot.open(store, split)
        require_sums(manifest, keys.manifest(split))
        label_space = LabelSpace.from_json(store.get(keys.LABELS))
        form = _format(manifest, wanted, store.uri)
        stored = stored_table(store, manifest)
        places = ("shard", f"{form}_offset", f"{form}_length")
        sizes = "image_bytes" in stored.names
        table = stored.columns(["source", "synset", *places, *(["image_bytes"] if sizes else [])])
        names = [unescape(name) for name in table["source"].to_pylist()]
        classes = [unescape(name) for name in table["synset"].to_pylist()]
        if strangers := {*classes} - label_space.index.keys():
            raise ValueError(f"the class {min(strangers)!r} is not in {keys.LABELS}")
        own = OwnSplit(
            form=form,
            fields=fields_of(manifest.config.get("layout", "imagenet")),
            shards=_shards(manifest, form, entries, store.uri),
            names=names,
            classes=classes,
            shard=_column(table, places[0]),
            offsets=_column(table, places[1]),
            lengths=_column(table, places[2]),
            sizes=_column(table, "image_bytes") if sizes else None,
            values=_values(store.get(keys.plan(split)), names),
            label_space=label_space,
            snapshot=snapshot,
            has_boxes=manifest.config.get("boxes") is not None,
        )
        snapshot.check()
    except (DatasetError, ObjectNotFound, KeyError, ValueError) as error:
        if isinstance(error, SourceError):
            raise
        raise SourceError(
            f"{store.uri}: the tables of split {split!r} cannot be read ({error}): mend them "
            "(dataprep verify), or name the folder of its shards as the source"
        ) from None
    return own


def _is_manifest(key: str) -> bool:
    return key.endswith(_MANIFEST) and "/" not in key


def _format(manifest: Manifest, wanted: str, where: str) -> Format:
    known = [name for name in ("tfrecord", "recordio") if name in manifest.formats]
    chosen = known[0] if wanted == "auto" and known else wanted
    if chosen not in known:
        raise SourceError(f"{where} was made as {', '.join(known)}, not as {wanted}")
    return "tfrecord" if chosen == "tfrecord" else "recordio"


def _shards(
    manifest: Manifest, form: Format, entries: Mapping[str, ObjectInfo], where: str
) -> list[ObjectInfo]:
    shards = []
    for shard in manifest.formats[form].shards:
        if shard.key not in entries:
            raise SourceError(
                f"{where} lacks {shard.key}, which its manifest names: put it back, or run the "
                "job that made it again"
            )
        shards.append(entries[shard.key])
    return shards


def _column(table: Any, name: str) -> NDArray[np.int64]:
    column: NDArray[np.int64] = table[name].to_numpy().astype(np.int64)
    return column


def _values(plan: bytes, names: Sequence[str]) -> NDArray[np.float32] | None:
    """All labels of samples that have several, as the plan has them."""
    try:
        file = pq.ParquetFile(parquet(plan))
    except (pa.ArrowException, OSError) as error:
        require_enough(error)
        raise ValueError(f"the plan: {error}") from None
    if "values" not in file.schema_arrow.names:
        return None
    table = file.read(columns=["source", "values"])
    sources = [unescape(name) for name in table["source"].to_pylist()]
    found = dict(zip(sources, table["values"].to_pylist(), strict=True))
    return np.array([found[name] for name in names], dtype=np.float32)
