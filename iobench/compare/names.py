"""PURE. Points in words that tell them apart."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from dataprep.names import escape
from iobench.trial import Params
from iobench.words import params_words

Key: TypeAlias = str


def key_of(kind: str, params: Params) -> Key:
    """The same for all repeats of a point, in every run."""
    return json.dumps([kind, dict(params)], sort_keys=True, default=str)


def named(points: Iterable[tuple[str, Params]]) -> dict[Key, str]:
    """Each in the words of a run's progress; where two had the same, with what tells them apart."""
    given = {key_of(kind, params): (kind, params) for kind, params in points}
    alike: dict[str, list[Key]] = {}
    for key, (kind, params) in given.items():
        alike.setdefault(_words(kind, params), []).append(key)
    found = {}
    for words, keys in alike.items():
        differing = _varying([given[key][1] for key in keys])
        for key in keys:
            found[key] = " ".join([words, *_pairs(given[key][1], differing)])
    return found


def _words(kind: str, params: Params) -> str:
    try:
        words = params_words(kind, params)
    except (LookupError, TypeError, ValueError):  # params of another version
        words = kind
    plain = escape(kind)
    return " ".join([plain, *_pairs(params, params)]) if words in (kind, plain) else words


def _pairs(params: Params, keys: Iterable[str]) -> list[str]:
    return [escape(f"{key}={params[key]}") for key in keys if key in params]


def _varying(sets: Sequence[Mapping[str, object]]) -> list[str]:
    keys = dict.fromkeys(key for params in sets for key in params)
    return [key for key in keys if len({repr(params.get(key, "\0")) for params in sets}) > 1]
