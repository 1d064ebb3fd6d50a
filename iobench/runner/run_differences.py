"""Compare the config and the machine of a saved run with the present config and machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from iobench.config.benchmark import CHANGEABLE_KEYS, BenchConfig
from iobench.machine.environment import describe

_CHANGING_PROPERTIES = {"disks", "governor"}
"""Properties of a machine that may change between a run and its continuation."""
_LASTING_TARGET_PROPERTIES = {"file_system", "kind", "device", "read_ahead_kb"}
"""Properties of a disk target that must not change between a run and its continuation."""


def differing_machine(environment: Mapping[str, Any]) -> str:
    """The properties in which the machine of another run differs from this machine.

    The file systems of disk targets are not compared, since the other run may have other targets.

    Returns:
        The names of the properties, separated by commas; empty if there is no difference.
    """
    this_machine = {**describe({}), "targets": {}}
    other_machine = {**environment, "targets": {}}
    return machine_differences(other_machine, this_machine)


def differing_config(old: Mapping[str, Any], config: BenchConfig) -> str:
    """The keys in which the config of a saved run differs from the config that continues it.

    A key that is missing in the saved config has its default value. Keys that do not change the
    measurements (``CHANGEABLE_KEYS``) may differ.

    Args:
        old: the saved config.
        config: the config that continues the run.

    Returns:
        The dotted keys, separated by commas; empty if there is no difference.
    """
    try:
        saved_values = BenchConfig.model_validate(old).model_dump(mode="json")
    except ValidationError:  # Another version has saved it, with other keys or values.
        saved_values = dict(old)
    keys = differing_keys(saved_values, config.model_dump(mode="json"))
    return ", ".join(key for key in keys if key.partition(".")[0] not in CHANGEABLE_KEYS)


def machine_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """The properties in which two machines differ, without properties that often change.

    A property that only one description has is not compared: an older version may not have recorded
    it, or a metadata service may not have answered.

    Args:
        old, new: the descriptions of the machines, as ``Result.environment`` has them.

    Returns:
        The dotted names of the properties, separated by commas; empty if there is no difference.
    """
    lasting_old, lasting_new = _lasting_properties(old), _lasting_properties(new)
    return ", ".join(differing_keys(lasting_old, lasting_new, only_common_keys=True))


def _lasting_properties(environment: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of a machine that do not change from day to day, unlike its free space."""
    lasting = {
        name: value for name, value in environment.items() if name not in _CHANGING_PROPERTIES
    }
    lasting["targets"] = {}
    for label, target in (environment.get("targets") or {}).items():
        lasting["targets"][label] = {
            name: value for name, value in target.items() if name in _LASTING_TARGET_PROPERTIES
        }
    if "gpus" in lasting:
        lasting["gpus"] = [_lasting_gpu_properties(gpu) for gpu in environment["gpus"] or ()]
    return lasting


def _lasting_gpu_properties(gpu: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of a GPU, without its current clocks and temperatures."""
    return {name: value for name, value in gpu.items() if not name.endswith(".current")}


def differing_keys(
    old: Any, new: Any, path: str = "", *, only_common_keys: bool = False
) -> list[str]:
    """The dotted keys whose values differ.

    Args:
        old, new: the values to compare, as JSON values.
        path: the dotted key of both values.
        only_common_keys: whether to ignore keys that only one side has. A library that only one
            side has is not ignored, since its installation can change the measurements.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        keys = old.keys() | new.keys()
        if only_common_keys and path != "libraries":
            keys = old.keys() & new.keys()
        differing = []
        for key in sorted(keys):
            # The ellipsis object stands for a missing value, since no JSON value is equal to it.
            old_value, new_value = old.get(key, ...), new.get(key, ...)
            inner_path = f"{path}.{key}".lstrip(".")
            differing += differing_keys(
                old_value, new_value, inner_path, only_common_keys=only_common_keys
            )
        return differing
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for old_item, new_item in zip(old, new, strict=True):
            if differing_keys(old_item, new_item, only_common_keys=only_common_keys):
                return [path]
        return []
    return [] if old == new else [path]
