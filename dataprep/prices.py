"""What requests and storage cost, from a file that people edit."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from dataprep.config_file import EXAMPLES, read_config
from dataprep.errors import ConfigError
from dataprep.stores.options import StoreOptions

Dollars = Annotated[float, Field(ge=0)]
Date = Annotated[str, BeforeValidator(str)]
_GB = 2**30
_FIRMWARE = Path("/sys/devices/virtual/dmi/id")


class Price(BaseModel):
    """Of one storage class in one region, in the file's currency."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    put_per_1000: Dollars
    get_per_1000: Dollars
    gb_month: Dollars

    def of_requests(self, puts: int, gets: int, lists: int) -> float:
        """What requests cost; LIST is priced as PUT, HEAD as GET."""
        return ((puts + lists) * self.put_per_1000 + gets * self.get_per_1000) / 1_000

    def of_a_month(self, stored_bytes: int) -> float:
        """What it costs to keep bytes for a month."""
        return stored_bytes / _GB * self.gb_month


class InstancePrices(BaseModel):
    """An hour of machines: region to type to dollars, with a date and a source of their own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    as_of: Date
    source: str
    usd_per_h: dict[str, dict[str, Dollars]]


class Prices(BaseModel):
    """A file of prices: region to storage class to price, and where and when they were read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    as_of: Date
    source: str
    currency: str = "USD"
    s3: dict[str, dict[str, Price]]
    instances: InstancePrices | None = None


def read_prices(path: Path | None) -> Prices:
    """Prices from a file, else from the example that comes with the package.

    Raises:
        ConfigError: no such file, or it is not such a file.
    """
    chosen = path or EXAMPLES / "prices.yaml"
    prices = read_config(Prices, chosen, {})
    if not any(prices.s3.values()):
        raise ConfigError(f"{chosen}: no region under 's3' has a price")
    return prices


def price_at(prices: Prices, options: StoreOptions) -> tuple[Price | None, str]:
    """The price of a place reached with ``options``, and where it is from, or why there is none.

    The region is theirs, else ``AWS_REGION``, else the first of the file.
    """
    region = region_of(prices, options)
    storage_class = options.storage_class or "STANDARD"
    price = prices.s3.get(region, {}).get(storage_class)
    if price is None:
        return None, f"the prices know nothing of {storage_class} in {region}"
    return price, f"{region}, {storage_class}, {prices.source} as of {prices.as_of}"


def region_of(prices: Prices, options: StoreOptions) -> str:
    """Theirs, else ``AWS_REGION``, else the first of the file."""
    return options.region or os.environ.get("AWS_REGION") or next(iter(prices.s3))


def price_of_an_hour(prices: Prices, region: str, instance: str) -> float | None:
    """The price of an hour of this machine type in a region; None if the file has none."""
    if prices.instances is None:
        return None
    return prices.instances.usd_per_h.get(region, {}).get(instance)


def instance_type() -> str:
    """The type of this machine on EC2, as its firmware has it; empty elsewhere."""
    with contextlib.suppress(OSError):
        if (_FIRMWARE / "sys_vendor").read_text().strip() == "Amazon EC2":
            return (_FIRMWARE / "product_name").read_text().strip()
    return ""


def machine_region() -> str:
    """The AWS region of this machine, or the configured one; empty if unknown."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        if os.environ.get(name):
            return os.environ[name]
    if not instance_type():
        return ""
    from botocore.utils import InstanceMetadataRegionFetcher

    found = InstanceMetadataRegionFetcher(timeout=1, num_attempts=1).retrieve_region()
    return str(found or "")
