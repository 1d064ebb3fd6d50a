"""Figures of others that a run's are held against: limits and prices, as their files say.

They are kept with the result, so that a report drawn again says the same as before, whatever
became of the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from dataprep.config_file import EXAMPLES, read_config
from dataprep.errors import ConfigError
from dataprep.prices import Prices, price_at, read_prices, region_of
from iobench.config import BenchConfig, CostSettings, Positive
from iobench.errors import ResultError
from iobench.result import Result

_LIMITS = "configs/limits.yaml"
_ALWAYS = {"targets": ("data", "mount", "shards", "source"), "stores": ("data",)}
_STRICT = ConfigDict(frozen=True, extra="forbid")


class InstanceLimits(BaseModel):
    """Of one type of machine; ``baseline`` is what is guaranteed where more is had for a while."""

    model_config = _STRICT

    network_gbit_per_s: Positive | None = None
    network_baseline_gbit_per_s: Positive | None = None
    ebs_gbit_per_s: Positive | None = None


class VolumeLimits(BaseModel):
    """Of one volume of a type."""

    model_config = _STRICT

    mib_per_s: Positive


class StoreLimits(BaseModel):
    """Of an object store, by its kind in ``iobench.machine``."""

    model_config = _STRICT

    gets_per_s_per_prefix: Positive | None = None


class Limits(BaseModel):
    """A file of limits, and where and when they were read."""

    model_config = _STRICT

    as_of: str
    source: str
    instances: dict[str, InstanceLimits] = {}
    volumes: dict[str, VolumeLimits] = {}
    stores: dict[str, StoreLimits] = {}

    @field_validator("as_of", mode="before")
    @classmethod
    def _date_as_text(cls, value: object) -> object:
        return str(value)


def references(config: BenchConfig, environment: Mapping[str, Any]) -> dict[str, Any]:
    """``limits``: of this machine's type, of volumes and stores, each with source and date.
    ``prices``: of its hours and of the store that data lie on, where costs are asked for.

    Raises:
        ConfigError: no such file, or limits are given of what is not there.
    """
    limits = read_limits(_path(config.limits.file))
    _check_names(config, environment, limits)
    found = {"limits": _limits(config, environment, limits)}
    if config.cost is not None:
        found["prices"] = _prices(config, environment, read_prices(_path(config.prices)))
    return found


def read_limits(path: Path | None) -> Limits:
    """Limits from a file, else from the example that comes with the package.

    Raises:
        ConfigError: no such file, or it is not such a file.
    """
    return read_config(Limits, path or EXAMPLES / "limits.yaml", {})


def priced(
    result: Result, cost: Mapping[str, Any], prices: Path | None
) -> tuple[Result, dict[str, Any]]:
    """A saved run with prices of today's file, and the whole of ``cost`` for it.

    Keys that ``cost`` lacks are those of the run's own config.

    Raises:
        ConfigError: no such file of prices, or a key is wrong.
        ResultError: the run's config is none of ``iobench run``.
    """
    asked = read_config(CostSettings, None, {**(result.config.get("cost") or {}), **cost})
    content = {**result.config, "cost": asked.model_dump(), "limits": {}}
    if prices is not None:
        content["prices"] = str(prices)
    try:
        config = BenchConfig.model_validate(content)
    except ValidationError:
        raise ResultError("its config is none that iobench run of this version takes") from None
    known = references(config, result.environment)
    told = {**result.references, "prices": known["prices"]}
    return replace(result, references=told), asked.model_dump()


def _prices(config: BenchConfig, environment: Mapping[str, Any], prices: Prices) -> dict[str, Any]:
    """A price that is not known is None, with a word of what does not know it."""
    file = config.prices or "configs/prices.yaml"
    remote = "://" in (config.data.shards or config.data.source or "")
    options = config.data.store if remote else config.data.bucket.store
    price, about = price_at(prices, options)
    machine = environment.get("machine") or {}
    kind = (config.cost.instance if config.cost else None) or machine.get("instance_type")
    region = region_of(prices, options)
    known = prices.instances
    rate = known.usd_per_h.get(region, {}).get(kind) if known and kind else None
    return {
        "file": file,
        "currency": prices.currency,
        "s3": price.model_dump() if price else None,
        "s3_about": about,
        "instance_type": kind,
        "instance_usd_per_h": rate,
        "instance_about": f"{kind} in {region}, as of {known.as_of}, {known.source}"
        if known and rate is not None
        else f"{file} knows no hour of {kind or 'this machine'} in {region}",
    }


def _limits(config: BenchConfig, environment: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
    machine = environment.get("machine") or {}
    kind = config.limits.instance or machine.get("instance_type")
    found: dict[str, Any] = {
        "as_of": limits.as_of,
        "source": limits.source,
        "file": config.limits.file or _LIMITS,
        "volumes": {name: each.mib_per_s for name, each in limits.volumes.items()},
        "stores": {name: each.model_dump() for name, each in limits.stores.items()},
    }
    if kind:
        known = limits.instances.get(kind)
        found["instance_type"] = kind
        found["instance"] = known.model_dump(exclude_none=True) if known else None
    return found


def _check_names(config: BenchConfig, environment: Mapping[str, Any], limits: Limits) -> None:
    """A limit that is misspelt would bind nothing, and nobody would see it.

    Raises:
        ConfigError: no target, store or type of volume is called so.
    """
    settings = config.limits
    for label, told in settings.targets.items():
        if told.volume is not None and told.volume not in limits.volumes:
            raise ConfigError(
                f"limits.targets.{label}.volume: {settings.file or _LIMITS} knows no "
                f"{told.volume!r}; it knows {', '.join(limits.volumes)}"
            )
    # What is left out of a run may keep its limits.
    named: dict[str, Iterable[str]] = {}
    if config.disk is not None:
        named["targets"] = settings.targets
    if config.object_store is not None:
        named["stores"] = settings.stores
    for part, labels in named.items():
        there = {*(environment.get(part) or ()), *_ALWAYS[part]}
        for label in labels:
            if label not in there:
                raise ConfigError(
                    f"limits.{part}.{label}: nothing in this run is called so; there are "
                    f"{', '.join(sorted(there))}"
                )


def _path(value: str | None) -> Path | None:
    return Path(value).expanduser() if value else None
