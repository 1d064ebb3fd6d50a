"""Configs from YAML files, command-line options and ``--set``; what is wrong with them; schemas.

Both packages use it. A model is a frozen pydantic model that forbids unknown keys.
"""

from __future__ import annotations

import difflib
import json
import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from dataprep.counted import counted
from dataprep.credentials import without_credentials
from dataprep.errors import ConfigError
from dataprep.schema import MISSHAPEN

Config = TypeVar("Config", bound=BaseModel)

_PACKAGED = Path(__file__).parent / "_configs"
EXAMPLES = _PACKAGED if _PACKAGED.is_dir() else Path(__file__).parents[1] / "configs"
"""The folder of the example configs."""

# What pydantic adds to the place of an error for each type that a value may have.
_UNION_MEMBER = re.compile(r"function-.*|constrained-int|int|str|bool|literal\[.*\]|tuple\[.*\]")

_WANTED = {
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "finite_number": "a finite number",
    "string_too_long": "at most {max_length} characters",
    "string_pattern_mismatch": "text that matches {pattern}",
    "string_too_short": "at least {min_length} characters",
    "too_short": "at least one",
    "too_long": "at most {max_length} values",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "text",
    "bytes": "text",
    "list": "a list",
    "tuple": "a list",
    "dict": "keys with values",
    "model": "keys with values",
    "literal": "{expected}",
}
"""What a value has to be, by the type of pydantic's error or by its first word."""


def read_config(
    model: type[Config],
    path: str | Path | None,
    overrides: Mapping[str, Any],
    flags: Mapping[str, str] | None = None,
    content: bytes | None = None,
) -> Config:
    """A config from a YAML file and dotted overrides, or from overrides alone.

    ``flags`` maps keys to the options of the command line that set them, for messages. ``content``
    is that of the file, if it was read before.

    Raises:
        ConfigError: the file is missing or is no mapping, or keys or values are wrong. Names each
            of them, and for an unknown key the nearest known ones.
    """
    values = {} if path is None else read_yaml(path, content)
    for dotted, value in overrides.items():
        set_dotted(values, dotted, value)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        problems = explain(error, model, overrides, flags or {})
        raise ConfigError(f"{path}: {problems}" if path else problems) from None


def read_yaml(path: str | Path, content: bytes | None = None) -> dict[str, Any]:
    """The mapping in a YAML file; an empty file is an empty mapping. Raises ConfigError."""
    try:
        if content is None:
            content = Path(path).read_bytes()
        found = parse_yaml(content, str(path))
    except OSError as error:
        advice = ""
        if Path(path).is_dir():
            advice = ": give images with --source"
        elif Path(path).parts[:1] == ("configs",):
            advice = ": dataprep init copies the example configs here"
        raise ConfigError(f"cannot read config file {path}: {error.strerror}{advice}") from None
    if not isinstance(found, dict | None):
        raise ConfigError(f"{path}: a config is a mapping of keys to values")
    return found or {}


def parse_yaml(text: bytes | str, where: str) -> Any:
    """The YAML document in ``text``, found ``where``. Raises ConfigError, in one line."""
    try:
        return yaml.load(text, _UniqueKeys)  # noqa: S506  a SafeLoader
    except (yaml.YAMLError, *MISSHAPEN) as error:  # such as a date 2024-13-01, a list as a key
        problem = " ".join(str(error).split())
        raise ConfigError(f"{where}: not valid YAML: {problem}") from None


class _UniqueKeys(yaml.SafeLoader):
    """YAML in which a repeated key is an error, as YAML 1.2 says."""

    def compose_mapping_node(self, anchor: Any) -> Any:
        """Check a mapping as it is written, before ``<<`` merges keys of others."""
        node: Any = super().compose_mapping_node(anchor)
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for key in keys:
            if keys.count(key) > 1:
                problem = f"key {key!r} is repeated"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        return node


def parse_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """The ``KEY=VALUE`` pairs of ``--set``, values as YAML, blanks as they are.

    Raises:
        ConfigError: a pair has no key or no value.
    """
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise ConfigError(f"--set {pair}: write KEY=VALUE")
        is_blank = bool(value) and not value.strip()  # a delimiter; YAML has null for it
        found[key] = value if is_blank else parse_yaml(value, f"--set {pair}")
    return found


def set_dotted(values: dict[str, Any], dotted: str, value: Any) -> None:
    """Set ``a.b.c``, or ``a.0.c`` in a list, in nested values, which are copied on the way.

    Raises:
        ConfigError: no such place in a list.
    """
    *parents, last = dotted.split(".")
    inner: Any = values
    for parent in parents:
        key = _key(inner, parent, dotted)
        found = inner[key] if isinstance(inner, list) else inner.get(key)
        inner[key] = copy(found) if isinstance(found, dict | list) else {}
        inner = inner[key]
    inner[_key(inner, last, dotted)] = value


def _key(inner: Any, name: str, dotted: str) -> Any:
    """``name`` as a key of a mapping or a place in a list."""
    if not isinstance(inner, list):
        return name
    if name.isdecimal() and int(name) < len(inner):
        return int(name)
    raise ConfigError(f"{dotted}: the list has {counted(len(inner), 'entry')}, counted from 0")


def explain(
    error: ValidationError,
    model: type[BaseModel],
    overrides: Collection[str],
    flags: Mapping[str, str],
) -> str:
    """pydantic's findings in one line: each key or option, its value, and what it has to be."""
    found: list[str] = []
    wrong: dict[str, list[str]] = {}
    for problem in error.errors(include_url=False):
        keys = [str(key) for key in problem["loc"] if not _UNION_MEMBER.fullmatch(str(key))]
        dotted = ".".join(keys)
        if problem["type"] == "missing":
            flag = flags.get(dotted)
            advice = f"give {flag} or the key in a config file" if flag else "add it"
            found.append(f"{dotted} is missing: {advice}")
        elif problem["type"] == "extra_forbidden":
            meant = did_you_mean(dotted, [*_dotted_keys(model)])
            found.append(f"unknown key {dotted}: {meant}")
        else:
            value = _shown(problem["input"])
            flag = flags.get(dotted) if dotted in overrides else None
            label = f"{flag} {value}" if flag else f"{dotted or 'config'}={value}"
            kind = problem["type"]
            wanted = _WANTED.get(kind) or _WANTED.get(kind.partition("_")[0])
            reason = problem["msg"].removeprefix("Value error, ")
            if wanted:
                reason = f"give {wanted.format(**problem.get('ctx', {}))}"
            wrong.setdefault(label.rstrip(" ="), []).append(reason)
    for label, reasons in wrong.items():
        reason = " or ".join(dict.fromkeys(reasons)).replace(" or give ", " or ")
        found.append(f"{label}: {reason}")
    return "; ".join(found)


def _shown(value: object) -> str:
    """A wrong value in short; nothing of a structure, or of what may hold a password."""
    if isinstance(value, list | tuple | Mapping):
        return ""
    text = without_credentials(str(value))
    if "@" in text:
        return ""
    return textwrap.shorten(text, 60, placeholder=" ...") or repr(value)


def did_you_mean(key: str, known: Sequence[str]) -> str:
    """The known keys that an unknown one may mean, else those of its section."""
    name = re.sub(r"\.\d+\b", "", key)  # without places in lists
    section, _, last = name.rpartition(".")
    beside = [one for one in known if one.rpartition(".")[0] == section]
    meant = [one for one in known if one.rpartition(".")[2] == last]
    meant = meant or difflib.get_close_matches(name, beside, n=1, cutoff=0.7)
    if meant:
        return f"did you mean {' or '.join(meant)}?"
    names = ", ".join(one.rpartition(".")[2] for one in beside)
    return f"known keys{section and f' of {section}'}: {names}"


def _dotted_keys(model: type[BaseModel], above: str = "") -> Iterator[str]:
    """Every key of a model and of those in it."""
    for name, field in model.model_fields.items():
        yield f"{above}{name}"
        for inner in _models(field.annotation):
            yield from _dotted_keys(inner, f"{above}{name}.")


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)


class _EditorSchema(GenerateJsonSchema):
    """Draft 7, which every editor reads, without titles that repeat the keys."""

    schema_dialect = "http://json-schema.org/draft-07/schema#"

    def field_title_should_be_set(self, schema: Any) -> bool:
        """No field has a title."""
        return False


def editor_schema(model: type[BaseModel], title: str) -> str:
    """The JSON schema of a model: every key with its type, bounds, default and meaning."""
    schema = model.model_json_schema(schema_generator=_EditorSchema)
    content = {"$schema": _EditorSchema.schema_dialect, **schema, "title": title}
    return json.dumps(content, indent=1) + "\n"
