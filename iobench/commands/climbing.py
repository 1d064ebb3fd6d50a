"""PURE. A config's training loops on every rung that each can have, and nothing else."""

from __future__ import annotations

from dataprep.errors import ConfigError
from iobench.config import BenchConfig
from iobench.ladder import HOST_RUNGS, RUNGS
from iobench.loaders.own import FROM_MEMORY, SYNTHETIC
from iobench.loops.training_plan import Training


def climbing(config: BenchConfig) -> BenchConfig:
    """The same config for ``iobench ladder``.

    A loop that reads the store alone has no local rungs; one over a local copy has the store only
    where the config names a bucket (``data.bucket``) or asks for input ``store``.

    Raises:
        ConfigError: there is no training loop.
    """
    if not config.training:
        raise ConfigError("a ladder is of training loops, and this config has none: give training")
    bucket = "bucket" in config.data.model_fields_set
    loops = [
        {**loop.model_dump(mode="json"), "inputs": rungs_of(loop, bucket=bucket)}
        for loop in config.training
    ]
    kept = {"disk": None, "object_store": None, "loaders": ()}
    return BenchConfig.model_validate(
        {
            **config.model_dump(mode="json", exclude_unset=True),
            **kept,
            "name": config.name if config.name.endswith("ladder") else f"{config.name}-ladder",
            "training": loops,
        }
    )


def rungs_of(loop: Training, *, bucket: bool) -> list[str]:
    """Those that a loop can have, in order; ``bucket``: the config names one."""
    if loop.loader in SYNTHETIC:
        return [rung for rung in RUNGS if rung in loop.inputs]
    asked = set(loop.inputs)
    remote = "store" in asked
    wanted = {"synthetic", *(() if remote and not asked & {"warm", "cold"} else ("warm", "cold"))}
    if remote or bucket:
        wanted.add("store")
    torch = loop.consumer not in ("tensorflow", "mxnet")
    if loop.loader in FROM_MEMORY and torch and loop.devices == 1:
        wanted |= set(HOST_RUNGS) - ({"decode"} if loop.data == "pixels" else set())
    return [rung for rung in RUNGS if rung in wanted]
