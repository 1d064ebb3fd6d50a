"""PURE. Which of a run's trials other packages take part in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from dataprep.registry import Registry
from iobench.consumers import CONSUMERS
from iobench.extensions import origins, passed_over
from iobench.loaders import LOADERS
from iobench.probes.object_store.clients import CLIENTS
from iobench.trial import TrialSpec

_GROUPS: tuple[tuple[str, Registry[Any]], ...] = (
    ("loader", LOADERS),
    ("consumer", CONSUMERS),
    ("client", CLIENTS),
)


def others(specs: Sequence[TrialSpec]) -> dict[str, str]:
    """``loader mine`` to ``package 1.0``, for all that other packages bring."""
    return dict(chain.from_iterable(origins(group, names) for group, names in _used(specs)))


def clashes(specs: Sequence[TrialSpec]) -> list[str]:
    """A line for each name that another package has as well."""
    return list(chain.from_iterable(passed_over(group, names) for group, names in _used(specs)))


def _used(specs: Sequence[TrialSpec]) -> Iterator[tuple[Registry[Any], list[str]]]:
    for key, registry in _GROUPS:
        named = dict.fromkeys(str(spec.params[key]) for spec in specs if key in spec.params)
        yield registry, list(named)
