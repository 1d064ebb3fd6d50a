"""How long it took to make the shards that a run reads, as their manifests keep it."""

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
    if place.holds != "shards" or place.is_remote or place.decoded:
        return None
    file = Path(place.uri) / keys.manifest(place.split)
    try:
        manifest = Manifest.from_json(file.read_bytes(), str(file))
    except (OSError, DataprepError):
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
