"""YAML files and dotted overrides into a config."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from dataprep.config_errors import explain
from dataprep.errors import ConfigError

Config = TypeVar("Config", bound=BaseModel)


def read_config(model: type[Config], path: Path | None, overrides: Mapping[str, Any]) -> Config:
    """A config from a YAML file and dotted overrides, or from overrides alone.

    Raises:
        ConfigError: the file is missing or no mapping, or a key or value is wrong; each
            problem with its key, unknown keys with the nearest known one.
    """
    values: dict[str, Any] = {} if path is None else read_yaml(path)
    for dotted, value in overrides.items():
        set_dotted(values, dotted, value)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        where = "the command line" if path is None else str(path)
        raise ConfigError(explain(error, model, where)) from None


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file, empty for an empty file.

    Raises:
        ConfigError: no such file, not readable, not YAML, or no mapping.
    """
    try:
        content = yaml.safe_load(path.read_bytes())
    except FileNotFoundError:
        raise ConfigError(f"no config file {str(path)!r}") from None
    except OSError as error:
        raise ConfigError(f"cannot read config {str(path)!r}: {error.strerror}") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date such as 2024-13-01
        raise ConfigError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: a config is a mapping of keys to values")
    return content


def set_dotted(values: dict[str, Any], dotted: str, value: Any) -> None:
    """Set ``a.b.c`` in nested mappings, which are copied on the way, not changed."""
    *parents, last = dotted.split(".")
    for parent in parents:
        inner = values.get(parent)
        if not isinstance(inner, dict):
            inner = {}
        values[parent] = inner = dict(inner)
        values = inner
    values[last] = value
