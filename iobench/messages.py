"""A trial and what it found, as JSON between the process that waits and the one that measures."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

from dataprep.stores import StoreOptions
from iobench.trial import Cold, Outcome, Place, TrialSpec

Message: TypeAlias = Mapping[str, Any]


def request(spec: TrialSpec, places: Mapping[str, Place], scratch: Path | None = None) -> bytes:
    """What is asked for, and a folder that may be written to."""
    shown = {
        name: {**asdict(place), "store": place.store.model_dump(mode="json")}
        for name, place in places.items()
    }
    content: dict[str, Any] = {"spec": asdict(spec), "places": shown}
    if scratch is not None:
        content["scratch"] = os.fspath(scratch)
    return json.dumps(content).encode()


def requested(data: bytes) -> tuple[TrialSpec, dict[str, Place], Path | None]:
    """The trial, its places and its folder, of a ``request``."""
    content = json.loads(data)
    places = {
        name: Place(**{**place, "store": StoreOptions(**place["store"])})
        for name, place in content["places"].items()
    }
    scratch = Path(content["scratch"]) if "scratch" in content else None
    return TrialSpec(**content["spec"]), places, scratch


def outcome_of(message: Message) -> Outcome:
    """What was found, of a message that has an ``outcome``."""
    content = message["outcome"]
    cold = Cold(**content["cold"]) if content["cold"] else None
    counted = content["counted_s"]
    return Outcome(
        metrics=content["metrics"],
        cold=cold,
        series=content["series"],
        origin_s=content["origin_s"],
        counted_s=(counted[0], counted[1]) if counted else None,
        pauses=tuple((begin_s, end_s) for begin_s, end_s in content["pauses"]),
    )
