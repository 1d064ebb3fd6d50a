"""Batches to work: consumers by name, through entry points."""

from __future__ import annotations

from importlib.metadata import entry_points

from dataprep.errors import ConfigError
from iobench.consumers.protocol import Consumer, ConsumerSettings, Model

__all__ = ["Consumer", "ConsumerSettings", "Model", "consumer_names", "get_consumer"]

_GROUP = "iobench.consumers"


def consumer_names() -> list[str]:
    """Every consumer that is registered, sorted."""
    return sorted({point.name for point in entry_points(group=_GROUP)})


def get_consumer(name: str) -> type[Consumer]:
    """The consumer class of that name.

    Raises:
        ConfigError: nobody registered one.
    """
    for point in entry_points(group=_GROUP, name=name):
        consumer: type[Consumer] = point.load()
        return consumer
    raise ConfigError(f"no consumer {name!r}: known are {', '.join(consumer_names())}")
