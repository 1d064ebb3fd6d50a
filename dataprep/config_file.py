"""A YAML file and dotted overrides, before any key of it is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from dataprep.errors import ConfigError


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
