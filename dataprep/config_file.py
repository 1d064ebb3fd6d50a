"""YAML files and dotted overrides into a config."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from copy import copy
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from dataprep.config_errors import explain
from dataprep.counted import counted
from dataprep.errors import ConfigError
from dataprep.yaml_text import LARGEST_BYTES, parse_yaml

Config = TypeVar("Config", bound=BaseModel)


def read_config(
    model: type[Config],
    path: Path | None,
    overrides: Mapping[str, Any],
    options: Collection[str] = (),
) -> Config:
    """A config from a YAML file and dotted overrides, or from overrides alone.

    ``options`` are keys that the command line has an option for, to name it where one is missing.

    Raises:
        ConfigError: the file is missing or no mapping, or a key or value is wrong; each
            problem with its key, unknown keys with the nearest known one.
    """
    values: dict[str, Any] = {} if path is None else read_yaml(path)
    for dotted, value in overrides.items():
        set_dotted(values, dotted, value)
    where = "the command line" if path is None else str(path)
    try:
        config = model.model_validate(values)
    except ValidationError as error:
        raise ConfigError(explain(error, model, where, options)) from None
    if slips := [*_counted_booleans(values, config)]:
        told = (f"{key}: give a number, not {str(value).lower()}" for key, value in slips)
        raise ConfigError(f"{where}: {'; '.join(told)}")
    return config


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file, empty for an empty file.

    Raises:
        ConfigError: no such file, not readable, not YAML, or no mapping.
    """
    try:
        with path.open("rb") as file:
            content = parse_yaml(file.read(LARGEST_BYTES + 1))
    except FileNotFoundError:
        raise ConfigError(f"no config file {str(path)!r}") from None
    except IsADirectoryError:
        raise ConfigError(
            f"{str(path)!r} is a folder, not a config file (images are named by --source)"
        ) from None
    except OSError as error:
        raise ConfigError(f"cannot read config {str(path)!r}: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{path}: not valid YAML: {error}") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: a config is a mapping of keys to values")
    return content


def _counted_booleans(given: Any, taken: Any, key: str = "") -> Iterator[tuple[str, bool]]:
    """Where ``true`` or ``false`` was given and pydantic took 1 or 0, with the dotted key."""
    if isinstance(given, bool):
        one = taken[0] if isinstance(taken, tuple) and len(taken) == 1 else taken
        if isinstance(one, int | float) and not isinstance(one, bool):
            yield key, given
    elif isinstance(given, Mapping):
        for name, value in given.items():
            inner = taken.get(name) if isinstance(taken, Mapping) else getattr(taken, name, None)
            yield from _counted_booleans(value, inner, f"{key}.{name}".lstrip("."))
    elif isinstance(given, list) and isinstance(taken, tuple) and len(given) == len(taken):
        for place, (value, inner) in enumerate(zip(given, taken, strict=True)):
            yield from _counted_booleans(value, inner, f"{key}.{place}")


def set_dotted(values: dict[str, Any], dotted: str, value: Any) -> None:
    """Set ``a.b.c``, or ``a.0.c`` in a list, in nested values, which are copied on the way.

    Raises:
        ConfigError: no such place in a list.
    """
    *parents, last = dotted.split(".")
    inner: Any = values
    for depth, parent in enumerate(parents, start=1):
        key: Any = _key(inner, parent, parents[: depth - 1])
        found = inner[key] if isinstance(inner, list) else inner.get(key)
        inner[key] = copy(found) if isinstance(found, (dict, list)) else {}
        inner = inner[key]
    inner[_key(inner, last, parents)] = value


def _key(inner: Any, name: str, above: list[str]) -> str | int:
    """``name`` as a key of a mapping, or as a place in a list."""
    if not isinstance(inner, list):
        return name
    if name.isdecimal() and int(name) < len(inner):
        return int(name)
    raise ConfigError(
        f"{'.'.join(above)!r} has {counted(len(inner), 'entry')}: give a number from 0 to "
        f"{len(inner) - 1}, not {name!r}"
    )
