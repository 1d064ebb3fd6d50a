"""PURE. Prices that a result knows: of the config, else of the dated file as the run read it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from dataprep.prices import Price
from iobench.result import Result

HOURS_A_MONTH = 365 * 24 / 12

_GB = 2**30
_AMAZON, _OWN_SERVER = "aws-s3", "own-server"


@dataclass(frozen=True, slots=True)
class Known:
    """None is a price that nobody told; ``missing`` says which key would.

    ``own_server``: the store is one of the run's own, on this machine, which takes no money.
    """

    hour_usd: float | None
    store: Price | None
    disk_gb_month_usd: float | None
    currency: str
    basis: tuple[str, ...]
    missing: tuple[str, ...]
    own_server: bool = False

    def hours(self, hours: float) -> float | None:
        """Of the machine."""
        return None if self.hour_usd is None else hours * self.hour_usd

    def requests(self, *, gets: float = 0.0, puts: float = 0.0) -> float | None:
        """At the store."""
        if self.own_server:
            return 0.0
        if self.store is None:
            return None
        return self.store.of_requests(round(puts), round(gets), 0)

    def stored(self, side: str, stored_bytes: float, hours: float) -> float | None:
        """Bytes kept for so many hours, at the store or on a disk."""
        months = hours / HOURS_A_MONTH
        if side == "store":
            if self.own_server:
                return 0.0
            return (
                None if self.store is None else self.store.of_a_month(round(stored_bytes)) * months
            )
        if self.disk_gb_month_usd is None:
            return None
        return stored_bytes / _GB * self.disk_gb_month_usd * months


def known(result: Result, asked: Mapping[str, Any], sides: Collection[str]) -> Known:
    """What ``asked`` (the keys of ``CostSettings``) and the result's references tell.

    ``sides``: where data were read, ``disk`` or ``store``; of others no price is missing.
    """
    told = result.references.get("prices")
    prices: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
    told_hour = asked.get("instance_usd_per_h")
    hour = told_hour if told_hour is not None else prices.get("instance_usd_per_h")
    basis, missing = [], []
    if told_hour is not None:
        basis.append("an hour of the machine: cost.instance_usd_per_h")
    elif hour is not None:
        basis.append(f"an hour of the machine: {prices.get('instance_about')}")
    else:
        why = prices.get("instance_about") or "no prices were read"
        missing.append(f"an hour of the machine ({why}): give cost.instance_usd_per_h")
    content, server = prices.get("s3"), _server(result)
    store = Price.model_validate(content) if isinstance(content, Mapping) else None
    own = server.get("kind") == _OWN_SERVER
    if server.get("kind") != _AMAZON:
        store = None  # whose prices are others
    if "store" not in sides:
        pass
    elif own:
        basis.append("the store is a server on this machine: requests and storage cost nothing")
    elif store is not None:
        basis.append(f"requests and storage: {prices.get('s3_about')}")
    elif server.get("kind") == _AMAZON:
        missing.append(f"S3 ({prices.get('s3_about') or 'no prices were read'}): give prices")
    else:
        name = server.get("name") or "the store"
        missing.append(f"requests and storage of {name}: prices are of Amazon S3 alone")
    disk = asked.get("disk_usd_per_gb_month")
    if disk is None and "disk" in sides:
        missing.append("a disk for the data: give cost.disk_usd_per_gb_month (0 for the machine's)")
    return Known(
        hour_usd=None if hour is None else float(hour),
        store=store,
        disk_gb_month_usd=None if disk is None else float(disk),
        currency=str(prices.get("currency") or "USD"),
        basis=tuple(basis),
        missing=tuple(missing),
        own_server=own,
    )


def _server(result: Result) -> Mapping[str, Any]:
    """The store that data lie on, as far as it is known."""
    stores = result.environment.get("stores")
    store = stores.get("data") if isinstance(stores, Mapping) else None
    return store if isinstance(store, Mapping) else {}
