"""pydantic's findings in words, with the nearest known key."""

from __future__ import annotations

import difflib
import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

# What pydantic puts into the place of an error for each type that a value might have had.
_UNION_MEMBER = re.compile(r"function-.*|constrained-int|int|str|bool|literal\[.*\]|tuple\[.*\]")

_WANTED = {
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "finite_number": "a finite number",
    "string_too_long": "at most {max_length} characters",
    "string_too_short": "at least {min_length} characters",
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
"""What would have been right, by the kind of pydantic's error or the first word of it."""
_SHOWN = 60


def explain(
    error: ValidationError, model: type[BaseModel], where: str, options: Collection[str] = ()
) -> str:
    """pydantic's findings, a line each, with the nearest known key for an unknown one.

    ``options`` are the keys of the top that the command line has an option for.
    """
    lines: dict[str, list[str]] = {}
    wanted: dict[str, tuple[list[str], Any]] = {}
    for problem in error.errors(include_url=False):
        keys = [str(key) for key in problem["loc"] if not _UNION_MEMBER.fullmatch(str(key))]
        dotted = ".".join(keys)
        if problem["type"] == "extra_forbidden":
            lines[f"unknown key {dotted!r}"] = [_hint(model, keys)]
        elif problem["type"] == "missing":
            flag = f"--{dotted.replace('_', '-')}"
            advice = f"give {flag}, or the key in a config file" if dotted in options else "add it"
            lines[f"{dotted!r} is missing"] = [advice]
        elif right := _wanted(problem):
            wanted.setdefault(dotted or "config", ([], problem["input"]))[0].append(right)
        else:
            message = problem["msg"].removeprefix("Value error, ")
            lines.setdefault(dotted or "config", []).append(message)
    for what, (right_ones, given) in wanted.items():
        lines.setdefault(what, []).append(_not_given(right_ones, given))
    shown = (f"{what}: {', or: '.join(dict.fromkeys(why))}" for what, why in lines.items())
    return f"{where}: " + "; ".join(shown)


def _wanted(problem: ErrorDetails) -> str:
    kind = problem["type"]
    wanted = _WANTED.get(kind) or _WANTED.get(kind.partition("_")[0], "")
    return wanted.format(**problem.get("ctx", {}))


def _not_given(wanted: Sequence[str], given: object) -> str:
    return f"give {' or '.join(dict.fromkeys(wanted))}, not {_shown(given)}"


def _shown(given: object) -> str:
    """A wrong value, unless somebody's password may be in it."""
    if isinstance(given, list | tuple):
        return "a list"
    if isinstance(given, Mapping):
        return "keys with values"
    if isinstance(given, int) and given.bit_length() > 256:
        return "a number of so many digits"
    return (
        "this" if "@" in str(given) else textwrap.shorten(repr(given), _SHOWN, placeholder=" ...")
    )


def _hint(model: type[BaseModel], keys: list[str]) -> str:
    """What an unknown key may have meant: one of a section, if it is called exactly so."""
    *above, last = keys
    known = _known_keys(model, above)
    meant = [f"{name}.{last}" for name in known if last in _known_keys(model, [*above, name])]
    if not meant:
        meant = difflib.get_close_matches(last, known, n=1, cutoff=0.5)
    if not meant:
        return f"known: {', '.join(sorted(known))}"
    return f"did you mean {' or '.join(map(repr, meant))}?"


def _known_keys(model: type[BaseModel], path: list[str]) -> list[str]:
    for key in path:
        if key.isdecimal():  # a place in a list: of models that were found one key before
            continue
        annotation = model.model_fields[key].annotation if key in model.model_fields else None
        candidates = [annotation, *getattr(annotation, "__args__", ())]
        inner = next(
            (c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None
        )
        if inner is None:
            return []
        model = inner
    return list(model.model_fields)
