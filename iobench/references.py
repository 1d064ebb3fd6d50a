"""Limits and prices that a run's figures are compared with, from their files.

They are kept with the result, so that a report drawn again says the same as before, even if the
files have changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, ValidationError

from dataprep.config_file import EXAMPLES, read_config
from dataprep.errors import ConfigError
from dataprep.prices import Prices, read_prices, region_of, storage_price
from iobench.config import BenchConfig, CostSettings, Positive
from iobench.errors import ResultError
from iobench.result import Result
from iobench.several import Settings

_LIMITS = "configs/limits.yaml"
_ALWAYS = {"targets": ("data", "mount", "shards", "source"), "stores": ("data",)}


InstanceLimit: TypeAlias = Literal[
    "network_gbit_per_s", "network_baseline_gbit_per_s", "ebs_gbit_per_s"
]
"""Limits of a type of machine; the baseline is guaranteed, the others hold for a while."""


class Limits(Settings):
    """A file of limits, with their source and date."""

    as_of: Annotated[str, BeforeValidator(str)]  # YAML has dates
    source: str
    instances: dict[str, dict[InstanceLimit, Positive]] = {}  # noqa: RUF012  pydantic copies it
    volumes: dict[str, dict[Literal["mib_per_s"], Positive]] = {}  # noqa: RUF012  pydantic copies it
    stores: dict[str, dict[Literal["gets_per_s_per_prefix"], Positive]] = {}  # noqa: RUF012  pydantic copies it


def references(config: BenchConfig, environment: Mapping[str, Any]) -> dict[str, Any]:
    """``limits`` of this machine's type, of volumes and of stores, with source and date.

    ``prices`` of the machine's hours and of the store of the data, if the config asks for costs.

    Raises:
        ConfigError: no such file, or the config limits something that is not in the run.
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
    """A saved run with prices from today's file, and the complete ``cost`` settings for it.

    Keys that ``cost`` lacks are taken from the run's own config.

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
        raise ResultError("this version of iobench run does not accept its config") from None
    known = references(config, result.environment)
    told = {**result.references, "prices": known["prices"]}
    return replace(result, references=told), asked.model_dump()


def _prices(config: BenchConfig, environment: Mapping[str, Any], prices: Prices) -> dict[str, Any]:
    """An unknown price is None, with the name of the file that lacks it."""
    file = config.prices or "configs/prices.yaml"
    remote = "://" in (config.data.shards or config.data.source or "")
    options = config.data.store if remote else config.data.bucket.store
    price, about = storage_price(prices, options)
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
        else f"{file} has no hourly price of {kind or 'this machine'} in {region}",
    }


def _limits(config: BenchConfig, environment: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
    machine = environment.get("machine") or {}
    kind = config.limits.instance or machine.get("instance_type")
    found: dict[str, Any] = {
        "as_of": limits.as_of,
        "source": limits.source,
        "file": config.limits.file or _LIMITS,
        "volumes": {name: each["mib_per_s"] for name, each in limits.volumes.items()},
        "stores": limits.stores,
    }
    if kind:
        found["instance_type"] = kind
        found["instance"] = limits.instances.get(kind)
    return found


def _check_names(config: BenchConfig, environment: Mapping[str, Any], limits: Limits) -> None:
    """Refuse misspelt names, whose limits would have no effect.

    Raises:
        ConfigError: no target, store or type of volume has this name.
    """
    settings = config.limits
    for label, told in settings.targets.items():
        if told.volume is not None and told.volume not in limits.volumes:
            raise ConfigError(
                f"limits.targets.{label}.volume: {settings.file or _LIMITS} has no "
                f"{told.volume!r}; it has {', '.join(limits.volumes)}"
            )
    for part, labels, measured in (
        ("targets", settings.targets, config.disk),
        ("stores", settings.stores, config.object_store),
    ):
        there = {*(environment.get(part) or ()), *_ALWAYS[part]}
        unknown = [label for label in labels if label not in there]
        # A config may keep limits of parts that it does not measure.
        if unknown and measured is not None:
            raise ConfigError(
                f"limits.{part}.{unknown[0]}: nothing in this run has this name; there are "
                f"{', '.join(sorted(there))}"
            )


def _path(value: str | None) -> Path | None:
    return Path(value).expanduser() if value else None
