"""pydantic's findings in words, with the nearest known key."""

from __future__ import annotations

import difflib
import re

from pydantic import BaseModel, ValidationError

# What pydantic puts into the place of an error for each type that a value might have had.
_UNION_MEMBER = re.compile(r"function-.*|constrained-int|int|str|bool|literal\[.*\]|tuple\[.*\]")


def explain(error: ValidationError, model: type[BaseModel], where: str) -> str:
    """pydantic's findings, a line each, with the nearest known key for an unknown one."""
    lines: dict[str, list[str]] = {}
    for problem in error.errors(include_url=False):
        keys = [str(key) for key in problem["loc"] if not _UNION_MEMBER.fullmatch(str(key))]
        dotted = ".".join(keys)
        if problem["type"] == "extra_forbidden":
            known = _known_keys(model, keys[:-1])
            near = difflib.get_close_matches(keys[-1], known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(known))}"
            lines[f"unknown key {dotted!r}"] = [hint]
        elif problem["type"] == "missing":
            # Only keys of the top have an option of their own.
            option = "" if len(keys) > 1 else f"--{dotted.replace('_', '-')}, or "
            lines[f"{dotted!r} is missing"] = [f"give {option}the key in a config file"]
        else:
            message = problem["msg"].removeprefix("Value error, ")
            lines.setdefault(dotted or "config", []).append(message)
    shown = (f"{what}: {', or: '.join(dict.fromkeys(why))}" for what, why in lines.items())
    return f"{where}: " + "; ".join(shown)


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
