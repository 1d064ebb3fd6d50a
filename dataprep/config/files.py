"""Read configs from YAML files, command-line options and ``--set``, and explain what is wrong.

Both packages use this module. A config is a frozen pydantic model that forbids unknown keys.
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

from dataprep.credentials import without_credentials
from dataprep.errors import ConfigError
from dataprep.message_text import counted
from dataprep.schema import STRUCTURE_ERRORS

Config = TypeVar("Config", bound=BaseModel)

_PACKAGED = Path(__file__).parents[1] / "_configs"
EXAMPLES = _PACKAGED if _PACKAGED.is_dir() else Path(__file__).parents[2] / "configs"
"""The folder of the example configs: in the package, or in a checkout beside it."""

# If a value may have several types, pydantic adds the name of a type to the path of the key.
_UNION_MEMBER = re.compile(r"function-.*|constrained-int|int|str|bool|literal\[.*\]|tuple\[.*\]")

_MAX_VALUE_CHARACTERS = 60

_EXPECTED = {
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
"""What a value must be, by the type of pydantic's error, or by the first word of that type.

The fields in braces are those of the error's context.
"""


def read_config(
    model: type[Config],
    path: str | Path | None,
    overrides: Mapping[str, Any],
    flags: Mapping[str, str] | None = None,
    content: bytes | None = None,
) -> Config:
    """Read a config from a YAML file and overrides.

    Args:
        model: the type of the config.
        path: the YAML file; None for overrides alone.
        overrides: values by dotted key.
        flags: the command-line option for each dotted key that has one, for messages.
        content: the content of the file, if it was read before; None to read it.

    Raises:
        ConfigError: the file is missing or is not a mapping, or keys or values are wrong. The
            message names all wrong keys, and suggests valid keys for an unknown key.
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
    """Return the mapping in a YAML file. An empty file is an empty mapping.

    Args:
        path: the file.
        content: its content, if it was read before; None to read it.

    Raises:
        ConfigError: the file cannot be read, is not valid YAML, or is not a mapping.
    """
    try:
        if content is None:
            content = Path(path).read_bytes()
    except OSError as error:
        advice = ""
        if Path(path).is_dir():
            advice = ": give images with --source"
        elif Path(path).parts[:1] == ("configs",):
            advice = ": dataprep init copies the example configs here"
        raise ConfigError(f"cannot read config file {path}: {error.strerror}{advice}") from None
    values = parse_yaml(content, str(path))
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: a config is a mapping of keys to values")
    return values


def parse_yaml(text: bytes | str, where: str) -> Any:
    """Return the content of a YAML document.

    Args:
        text: the document.
        where: the file or the option that contains it, for errors.

    Raises:
        ConfigError: the document is not valid YAML. The message is one line.
    """
    try:
        return yaml.load(text, _UniqueKeys)  # noqa: S506  a SafeLoader
    # PyYAML raises STRUCTURE_ERRORS for a date such as 2024-13-01, or for a list as a key.
    except (yaml.YAMLError, *STRUCTURE_ERRORS) as error:
        problem = " ".join(str(error).split())
        raise ConfigError(f"{where}: not valid YAML: {problem}") from None


class _UniqueKeys(yaml.SafeLoader):
    """A loader of YAML that refuses repeated keys, as YAML 1.2 requires."""

    def compose_mapping_node(self, anchor: Any) -> Any:
        """Check the keys of a mapping. Keys that ``<<`` merges later may be repeated.

        Keys are compared as they are written, so that 1 and "1" are equal.
        """
        node: Any = super().compose_mapping_node(anchor)
        keys = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                continue
            key = key_node.value
            if key in keys:
                problem = f"key {key!r} is repeated"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
            keys.add(key)
        return node


def parse_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """Return the ``KEY=VALUE`` pairs of ``--set``. Each value is YAML.

    Raises:
        ConfigError: a pair has no key or no value, or a value is not valid YAML.
    """
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise ConfigError(f"--set {pair}: write KEY=VALUE")
        # Keep blanks, which may be a delimiter. YAML would read them as null.
        is_blank = bool(value) and not value.strip()
        settings[key] = value if is_blank else parse_yaml(value, f"--set {pair}")
    return settings


def set_dotted(values: dict[str, Any], dotted: str, value: Any) -> None:
    """Set a value in nested mappings and lists.

    Mappings and lists on the path are copied, because other configs may share them. Anything else
    on the path is replaced by a mapping.

    Args:
        values: the outermost mapping.
        dotted: the key, such as ``a.b.c``, or ``a.0.c`` for the first entry of a list.
        value: the new value.

    Raises:
        ConfigError: a list has no such entry.
    """
    *parents, last = dotted.split(".")
    inner: Any = values
    for parent in parents:
        key = _key_in(inner, parent, dotted)
        child = inner[key] if isinstance(inner, list) else inner.get(key)
        inner[key] = copy(child) if isinstance(child, dict | list) else {}
        inner = inner[key]
    inner[_key_in(inner, last, dotted)] = value


def _key_in(inner: Any, name: str, dotted: str) -> Any:
    """Return ``name`` as the key of a mapping, or as the index of a list.

    Raises:
        ConfigError: the list has no such entry.
    """
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
    """Explain an error of pydantic in one line: each wrong key, its value, and valid values.

    Args:
        error: the error.
        model: the type of the config.
        overrides: the dotted keys whose values do not come from the file.
        flags: the command-line option for each dotted key that has one.
    """
    problems: list[str] = []
    reasons_by_setting: dict[str, list[str]] = {}
    for details in error.errors(include_url=False):
        keys = [str(key) for key in details["loc"] if not _UNION_MEMBER.fullmatch(str(key))]
        dotted = ".".join(keys)
        if details["type"] == "missing":
            flag = flags.get(dotted)
            advice = f"give {flag} or the key in a config file" if flag else "add it"
            problems.append(f"{dotted} is missing: {advice}")
        elif details["type"] == "extra_forbidden":
            suggestion = did_you_mean(dotted, [*_dotted_keys(model)])
            problems.append(f"unknown key {dotted}: {suggestion}")
        else:
            value = _value_in_short(details["input"])
            setting = f"{dotted or 'config'}={value}"
            if dotted in overrides and dotted in flags:
                setting = f"{flags[dotted]} {value}"
            reasons = reasons_by_setting.setdefault(setting.rstrip(" ="), [])
            reasons.append(_reason_of(details))
    for setting, reasons in reasons_by_setting.items():
        # If a value may have several types, pydantic gives a reason for each type.
        reason = " or ".join(dict.fromkeys(reasons)).replace(" or give ", " or ")
        problems.append(f"{setting}: {reason}")
    return "; ".join(problems)


def _reason_of(details: Any) -> str:
    """What a wrong value must be, from the details of one of pydantic's errors."""
    error_type = details["type"]
    first_word = error_type.partition("_")[0]
    expected = _EXPECTED.get(error_type) or _EXPECTED.get(first_word)
    if expected:
        return f"give {expected.format(**details.get('ctx', {}))}"
    message: str = details["msg"]
    return message.removeprefix("Value error, ")


def _value_in_short(value: object) -> str:
    """A wrong value in short form for a message.

    It is empty for a list or mapping, and if the value may contain a password.
    """
    if isinstance(value, list | tuple | Mapping):
        return ""
    text = without_credentials(str(value))
    if "@" in text:
        return ""
    return textwrap.shorten(text, _MAX_VALUE_CHARACTERS, placeholder=" ...") or repr(value)


def did_you_mean(key: str, valid_keys: Sequence[str]) -> str:
    """Suggest valid keys in place of an unknown key.

    Keys of any section with the same last name are suggested, else the most similar key of the same
    section. Without a suggestion, all keys of the section are named.

    Args:
        key: the unknown dotted key.
        valid_keys: all dotted keys.
    """
    key_without_indexes = re.sub(r"\.\d+\b", "", key)
    section, _, name = key_without_indexes.rpartition(".")
    keys_of_section = []
    suggestions = []
    for valid_key in valid_keys:
        valid_section, _, valid_name = valid_key.rpartition(".")
        if valid_section == section:
            keys_of_section.append(valid_key)
        if valid_name == name:
            suggestions.append(valid_key)
    if not suggestions:
        suggestions = difflib.get_close_matches(
            key_without_indexes, keys_of_section, n=1, cutoff=0.7
        )
    if suggestions:
        return f"did you mean {' or '.join(suggestions)}?"
    if not keys_of_section and section:
        # The section is an entry with a name of its own, such as ``volumes.gp3``. The valid keys
        # have no such names.
        parent = section.rpartition(".")[0]
        keys_of_section = [key for key in valid_keys if key.rpartition(".")[0] == parent]
    names = ", ".join(valid_key.rpartition(".")[2] for valid_key in keys_of_section)
    of_section = f" of {section}" if section else ""
    return f"known keys{of_section}: {names}"


def _dotted_keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Yield every dotted key of a model and of the models in it."""
    for name, field in model.model_fields.items():
        yield f"{prefix}{name}"
        for inner_model in _models_in(field.annotation):
            yield from _dotted_keys(inner_model, f"{prefix}{name}.")


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models in the annotation of a field, such as ``TLSOptions | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)


class _EditorSchema(GenerateJsonSchema):
    """A JSON schema that is marked as Draft 7, which all editors support.

    It has no titles of fields, because they would repeat the keys.
    """

    schema_dialect = "http://json-schema.org/draft-07/schema#"

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Return False: no field has a title."""
        return False


def editor_schema(model: type[BaseModel], title: str) -> str:
    """Return the JSON schema of a model: every key with its type, bounds, default and meaning."""
    schema = model.model_json_schema(schema_generator=_EditorSchema)
    content = {"$schema": _EditorSchema.schema_dialect, **schema, "title": title}
    return json.dumps(content, indent=1) + "\n"
