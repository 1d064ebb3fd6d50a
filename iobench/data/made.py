"""The shards that a run reads, by their manifests: which they are, and how long they took."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dataprep import keys
from dataprep.errors import DataprepError
from dataprep.manifest import Manifest
from iobench.trial import Place


def making(place: Place) -> dict[str, Any] | None:
    """``samples``, ``reencoded``, ``seconds`` and ``workers``; None where nothing tells them.

    Only of shards on a disk, decoded ones and such of another version aside.
    """
    manifest = None if place.decoded else _manifest(place)
    if manifest is None:
        return None
    run: Mapping[str, Any] = manifest.run
    seconds, workers = run.get("seconds"), run.get("workers")
    if not isinstance(seconds, (int, float)) or seconds <= 0:
        return None
    return {
        "samples": manifest.samples.written,
        "reencoded": manifest.samples.reencoded,
        "seconds": float(seconds),
        "workers": workers if isinstance(workers, int) else None,
    }


def fingerprint(place: Place) -> str | None:
    """What tells these shards from others that are made at the same place; None where nothing does.

    Shards that are made again of the same images in the same way have the same.
    """
    manifest = _manifest(place)
    return manifest.fingerprint if manifest is not None else None


def _manifest(place: Place) -> Manifest | None:
    if place.holds != "shards" or place.is_remote:
        return None
    file = Path(place.uri) / keys.manifest(place.split)
    try:
        return Manifest.from_json(file.read_bytes(), str(file))
    except (OSError, DataprepError):
        return None
