"""Figures of others that a run's are held against: limits and prices, as their files say.

They are kept with the result, so that a report drawn again says the same as before, whatever
became of the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from iobench.config import BenchConfig
from iobench.limits import Limits, read_limits


def references(config: BenchConfig, environment: Mapping[str, Any]) -> dict[str, Any]:
    """``limits``: of this machine's type, of volumes and stores, each with source and date.

    Raises:
        ConfigError: no such file.
    """
    return {"limits": _limits(config, environment, read_limits(_path(config.limits.file)))}


def _limits(config: BenchConfig, environment: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
    machine = environment.get("machine") or {}
    kind = config.limits.instance or machine.get("instance_type")
    found: dict[str, Any] = {
        "as_of": limits.as_of,
        "source": limits.source,
        "file": config.limits.file or "configs/limits.yaml",
        "volumes": {name: each.mib_per_s for name, each in limits.volumes.items()},
        "stores": {name: each.model_dump() for name, each in limits.stores.items()},
    }
    if kind:
        known = limits.instances.get(kind)
        found["instance_type"] = kind
        found["instance"] = known.model_dump(exclude_none=True) if known else None
    return found


def _path(value: str | None) -> Path | None:
    return Path(value).expanduser() if value else None
