"""The prices of requests, storage and machines, from a file that users can edit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from dataprep.config.files import EXAMPLES, read_config
from dataprep.errors import ConfigError
from dataprep.machine.kernel_files import text
from dataprep.stores.options import StoreOptions

Dollars = Annotated[float, Field(ge=0)]
Date = Annotated[str, BeforeValidator(str)]
_BYTES_PER_GB = 2**30  # the GB in which AWS bills storage
_FIRMWARE = Path("/sys/devices/virtual/dmi/id")


class Price(BaseModel):
    """The prices of one storage class in one region, in the currency of the file.

    Attributes:
        put_per_1000: the price of 1,000 requests PUT or LIST.
        get_per_1000: the price of 1,000 requests GET or HEAD.
        gb_month: the price of storing one GB for a month.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    put_per_1000: Dollars
    get_per_1000: Dollars
    gb_month: Dollars

    def requests_cost(self, puts: int, gets: int, lists: int) -> float:
        """Return the cost of requests. LIST has the price of PUT; ``gets`` includes HEAD."""
        return ((puts + lists) * self.put_per_1000 + gets * self.get_per_1000) / 1_000

    def month_cost(self, stored_bytes: int) -> float:
        """Return the cost of storing bytes for a month."""
        return stored_bytes / _BYTES_PER_GB * self.gb_month


class InstancePrices(BaseModel):
    """The prices of machines, with the date and the source of these prices.

    Attributes:
        as_of: the date of the prices.
        source: where they were read.
        usd_per_h: the price of an hour in dollars, by region and machine type.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    as_of: Date
    source: str
    usd_per_h: dict[str, dict[str, Dollars]]


class Prices(BaseModel):
    """The content of a file of prices.

    Attributes:
        as_of: the date of the prices.
        source: where they were read.
        currency: the currency of the prices of storage.
        s3: the prices of storage and requests, by region and storage class.
        instances: the prices of machines, if the file has any.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    as_of: Date
    source: str
    currency: str = "USD"
    s3: dict[str, dict[str, Price]]
    instances: InstancePrices | None = None


def read_prices(path: Path | None) -> Prices:
    """Read a file of prices.

    Args:
        path: the file; None for the example that comes with the package.

    Raises:
        ConfigError: the file does not exist, is not a file of prices, or has no price of storage.
    """
    file = path or EXAMPLES / "prices.yaml"
    prices = read_config(Prices, file, {})
    if not any(prices.s3.values()):
        raise ConfigError(f"{file}: no region under 's3' has a price")
    return prices


def storage_price(prices: Prices, options: StoreOptions) -> tuple[Price | None, str]:
    """Return the prices of a store, and a text that names their origin.

    If there are no prices, the first result is None, and the text says why.

    Args:
        prices: the file of prices.
        options: the options of the store, with its region (see ``region_of``) and storage class.
    """
    region = region_of(prices, options)
    storage_class = options.storage_class or "STANDARD"
    price = prices.s3.get(region, {}).get(storage_class)
    if price is None:
        return None, f"the file of prices has no price of {storage_class} in {region}"
    return price, f"{region}, {storage_class}, {prices.source} as of {prices.as_of}"


def region_of(prices: Prices, options: StoreOptions) -> str:
    """Return the region of a store: from its options, else from ``AWS_REGION``.

    If neither is set, the result is the first region in the file of prices.
    """
    first_region = next(iter(prices.s3))
    return options.region or os.environ.get("AWS_REGION") or first_region


def instance_price_per_h(prices: Prices, region: str, instance: str) -> float | None:
    """Return the price of a machine type in dollars per hour; None if the file has none."""
    if prices.instances is None:
        return None
    return prices.instances.usd_per_h.get(region, {}).get(instance)


def instance_type() -> str:
    """Return the type of this machine on EC2, according to its firmware; empty elsewhere."""
    if text(_FIRMWARE / "sys_vendor") == "Amazon EC2":
        return text(_FIRMWARE / "product_name")
    return ""


def machine_region() -> str:
    """Return the configured AWS region, else the region of this machine; empty if unknown."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        if os.environ.get(name):
            return os.environ[name]
    if not instance_type():
        return ""
    from botocore.utils import InstanceMetadataRegionFetcher

    region = InstanceMetadataRegionFetcher(timeout=1, num_attempts=1).retrieve_region()
    return str(region or "")
