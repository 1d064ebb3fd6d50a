"""Samplers of this machine: those that it has something to read for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dataprep.errors import ConfigError
from iobench.errors import Unavailable
from iobench.samplers import SAMPLERS, Sampler

USUAL = ("cpu", "tree", "disk", "network", "page-cache", "gpu")


def opened(names: Iterable[str], process: int) -> tuple[dict[str, Sampler], list[str]]:
    """Samplers by name, and a line on each that is not to be had or is to be read with care.

    What cannot be sampled never stops what is measured.
    """
    found: dict[str, Sampler] = {}
    notes: list[str] = []
    for name in names:
        try:
            found[name] = SAMPLERS.load(name)(process)
        except (Unavailable, ConfigError) as error:
            notes.append(str(error))
        except Exception as error:  # noqa: BLE001  whatever a sampler of somebody else's raises
            notes.append(f"no series {name}: {type(error).__name__}: {error}")
    for sampler in found.values():
        notes.extend(sampler.notes)
    return found, notes


def close(samplers: Mapping[str, Sampler]) -> None:
    """Close each, whatever another's end is like."""
    for sampler in samplers.values():
        try:
            sampler.close()
        except Exception:  # noqa: BLE001, S112  what was read is kept
            continue
