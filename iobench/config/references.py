"""Read the references of a run, which are limits and prices, from their files.

Figures of the run are compared with the limits, such as the bandwidth of a machine type, and its
costs are computed from the prices. Both are saved with the result. If the report is drawn again, it
is therefore the same as before, even if the files have changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict

from pydantic import BeforeValidator, ValidationError

from dataprep.config.files import EXAMPLES, read_config
from dataprep.config.prices import Prices, read_prices, region_of, storage_price
from dataprep.errors import ConfigError
from iobench.config.benchmark import BenchConfig, CostSettings, Positive
from iobench.errors import ResultError
from iobench.results.result import Result
from iobench.settings import Settings

_LIMITS_FILE = "configs/limits.yaml"
_PRICES_FILE = "configs/prices.yaml"
_DATA_LABELS = {"targets": ("data", "mount", "shards", "source"), "stores": ("data",)}
"""Labels of the run's own data in ``limits.targets`` and ``limits.stores``. They can be used even
if the config has no target of this name."""

InstanceLimit: TypeAlias = Literal[
    "network_gbit_per_s", "network_baseline_gbit_per_s", "ebs_gbit_per_s"
]
"""Limits of a machine type. The baseline is always available, the others only for a short time."""


class VolumeLimits(Settings):
    """The limits of a type of volume."""

    mib_per_s: Positive


class Limits(Settings):
    """The content of a file of limits, with the source and the date of the limits."""

    as_of: Annotated[str, BeforeValidator(str)]  # YAML reads it as a date
    source: str
    instances: dict[str, dict[InstanceLimit, Positive]] = {}  # noqa: RUF012  pydantic copies it
    volumes: dict[str, VolumeLimits] = {}  # noqa: RUF012  pydantic copies it
    stores: dict[str, dict[Literal["gets_per_s_per_prefix"], Positive]] = {}  # noqa: RUF012  pydantic copies it


class SavedLimits(TypedDict):
    """The limits of a run, as its result saves them."""

    as_of: str
    source: str
    file: str
    volumes: Mapping[str, float]
    """MiB/s by the type of a volume."""
    stores: Mapping[str, Mapping[Literal["gets_per_s_per_prefix"], float]]
    instance_type: NotRequired[str]
    """The type of the machine. It is missing if it is unknown."""
    instance: NotRequired[Mapping[InstanceLimit, float] | None]
    """The limits of this type; None if the file of limits does not have it."""


class SavedPrices(TypedDict):
    """The prices of a run, as its result saves them.

    The ``..._about`` of a price names its origin. If the price is None, it says what is missing.
    """

    file: str
    currency: str
    s3: Mapping[str, Any] | None
    """The prices of the store of the data."""
    s3_about: str
    instance_type: str | None
    instance_usd_per_h: float | None
    instance_about: str


class References(TypedDict):
    """The references of a run. The result saves them in this form."""

    limits: SavedLimits
    prices: NotRequired[SavedPrices]


def references(config: BenchConfig, environment: Mapping[str, Any]) -> References:
    """Return the references of a run: its limits, and its prices if the config has ``cost``.

    Args:
        config: the config of the run.
        environment: the environment of the run.

    Raises:
        ConfigError: a file does not exist or has wrong content, or the config has a limit for an
            unknown target, store or type of volume.
    """
    limits = read_limits(_path(config.limits.file))
    _check_names(config, environment, limits)
    content: References = {"limits": _limits(config, environment, limits)}
    if config.cost is not None:
        content["prices"] = _prices(config, environment, read_prices(_path(config.prices)))
    return content


def read_limits(path: Path | None) -> Limits:
    """Read limits from a file, or from the example that comes with the package.

    Raises:
        ConfigError: the file does not exist, or is no file of limits.
    """
    return read_config(Limits, path or EXAMPLES / "limits.yaml", {})


def priced(
    result: Result, cost: Mapping[str, Any], prices: Path | None
) -> tuple[Result, Mapping[str, Any]]:
    """Replace the prices of a saved run by the prices that the file has today.

    Args:
        result: the saved run.
        cost: keys of ``CostSettings``. Missing keys are taken from the config of the run.
        prices: the file of prices; None for the file that the config of the run names.

    Returns:
        The run with the new prices, and the complete settings of its cost: all keys of
        ``CostSettings``.

    Raises:
        ConfigError: the file does not exist or has wrong content, or a key of ``cost`` is wrong.
        ResultError: this version does not accept the config of the run.
    """
    own_cost = result.config.get("cost") or {}
    settings = read_config(CostSettings, None, {**own_cost, **cost}).model_dump()
    content = {**result.config, "cost": settings, "limits": {}}
    if prices is not None:
        content["prices"] = str(prices)
    try:
        config = BenchConfig.model_validate(content)
    except ValidationError:
        raise ResultError(
            f"the run {result.name!r} has no valid config of iobench run: it watched a loop, or "
            "another version wrote it; measure with iobench run"
        ) from None
    new_prices = references(config, result.environment)["prices"]
    new_references = {**result.references, "prices": new_prices}
    return replace(result, references=new_references), settings


def _prices(config: BenchConfig, environment: Mapping[str, Any], prices: Prices) -> SavedPrices:
    """Return the prices of the store of the data, and the hourly price of the machine.

    Data on a disk have the prices of the store to which they are copied (``data.bucket``). The
    machine type in the config comes before the type that the environment has.
    """
    file = config.prices or _PRICES_FILE
    is_remote = "://" in (config.data.shards or config.data.source or "")
    store = config.data.store if is_remote else config.data.bucket.store
    store_price, store_about = storage_price(prices, store)
    instance = _instance_type(environment)
    if config.cost is not None and config.cost.instance:
        instance = config.cost.instance
    region = region_of(prices, store)
    usd_per_h = None
    about = f"{file} has no hourly price of {instance or 'this machine'} in {region}"
    if prices.instances is not None and instance:
        usd_per_h = prices.instances.usd_per_h.get(region, {}).get(instance)
        if usd_per_h is not None:
            as_of, source = prices.instances.as_of, prices.instances.source
            about = f"{instance} in {region}, as of {as_of}, {source}"
    return {
        "file": file,
        "currency": prices.currency,
        "s3": store_price.model_dump() if store_price else None,
        "s3_about": store_about,
        "instance_type": instance,
        "instance_usd_per_h": usd_per_h,
        "instance_about": about,
    }


def _limits(config: BenchConfig, environment: Mapping[str, Any], limits: Limits) -> SavedLimits:
    """Return the limits of the type of this machine, of all types of volumes and of all stores.

    The type in the config comes before the type that the environment has.
    """
    instance = config.limits.instance or _instance_type(environment)
    content: SavedLimits = {
        "as_of": limits.as_of,
        "source": limits.source,
        "file": config.limits.file or _LIMITS_FILE,
        "volumes": {name: volume.mib_per_s for name, volume in limits.volumes.items()},
        "stores": limits.stores,
    }
    if instance:
        content["instance_type"] = instance
        content["instance"] = limits.instances.get(instance)
    return content


def _instance_type(environment: Mapping[str, Any]) -> str | None:
    """Return the type of this machine in its cloud; None if it is unknown."""
    machine = environment.get("machine") or {}
    instance_type: str | None = machine.get("instance_type")
    return instance_type


def _check_names(config: BenchConfig, environment: Mapping[str, Any], limits: Limits) -> None:
    """Refuse limits for unknown names, because they would have no effect.

    Raises:
        ConfigError: the config has limits for a target, a store or a type of volume that is
            unknown.
    """
    settings = config.limits
    for label, target in settings.targets.items():
        if target.volume is not None and target.volume not in limits.volumes:
            raise ConfigError(
                f"limits.targets.{label}.volume: {settings.file or _LIMITS_FILE} has no "
                f"{target.volume!r}; it has {', '.join(limits.volumes)}"
            )
    # If a config does not measure disks or stores, it may still have limits for them.
    if config.disk is not None:
        _check_labels("targets", list(settings.targets), environment)
    if config.object_store is not None:
        _check_labels("stores", list(settings.stores), environment)


def _check_labels(section: str, labels: list[str], environment: Mapping[str, Any]) -> None:
    """Refuse labels of targets or stores that the run does not have.

    Args:
        section: ``targets`` or ``stores``.
        labels: the labels in this section of the config's ``limits``.
        environment: the environment of the run.

    Raises:
        ConfigError: a label is unknown.
    """
    allowed_labels = {*(environment.get(section) or ()), *_DATA_LABELS[section]}
    for label in labels:
        if label not in allowed_labels:
            raise ConfigError(
                f"limits.{section}.{label}: nothing in this run has this name; there are "
                f"{', '.join(sorted(allowed_labels))}"
            )


def _path(value: str | None) -> Path | None:
    """Return a path of a config, with the home folder in the place of ``~``; None for None."""
    return Path(value).expanduser() if value else None
