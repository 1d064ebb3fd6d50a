"""Consumers take batches and train, or emulate training. They are found by name."""

from __future__ import annotations

from dataprep.registry import Registry
from iobench.consumers.protocol import Consumer, ConsumerSettings, Device, Model

__all__ = ["CONSUMERS", "Consumer", "ConsumerSettings", "Device", "Model"]

CONSUMERS: Registry[Consumer] = Registry("iobench.consumers", "consumer")
