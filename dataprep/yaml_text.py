"""PURE. YAML of anybody's: no tags but the plain ones, each key once, nothing that grows.

A few lines of aliases can stand for more values than any memory holds, and brackets within brackets
take longer with each; a config has neither.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

LARGEST_BYTES = 2**20
_DEEPEST = 50
_MOST_VALUES = 100_000
# Those that stand for a byte of a name that is not UTF-8 (PEP 383) are left out.
_LONE = re.compile("[\ud800-\udc7f\udd00-\udfff]")


def parse_yaml(text: bytes | str) -> Any:
    """The one document in ``text``.

    Raises:
        ValueError: it is no YAML, or no harmless one; with the line, where that is known.
    """
    if len(text) > LARGEST_BYTES:
        raise ValueError(f"{len(text):,} bytes, of which {LARGEST_BYTES:,} are read at most")
    try:
        return yaml.load(text, _Harmless)  # noqa: S506  safe: of SafeLoader
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except (yaml.YAMLError, ValueError, LookupError, TypeError) as error:
        # Others than YAMLError: a date such as 2024-13-01, a number of thousands of digits.
        raise ValueError(" ".join(str(error).split())) from None


class _Harmless(yaml.SafeLoader):
    """YAML in which a key that stands twice is an error, as in YAML 1.2 (3.2.1.1)."""

    def __init__(self, stream: Any) -> None:
        self._depth = 0
        super().__init__(stream)

    def fetch_flow_collection_start(self, token: Any) -> None:
        """A bracket opens; the scanner looks at all that are open at each token."""
        if self.flow_level >= _DEEPEST:
            raise yaml.MarkedYAMLError(
                problem="it is nested too deeply", problem_mark=self.get_mark()
            )
        super().fetch_flow_collection_start(token)

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Whatever comes next, with what is in it."""
        if self._depth >= _DEEPEST:
            mark = self.get_mark()
            raise yaml.MarkedYAMLError(problem="it is nested too deeply", problem_mark=mark)
        self._depth += 1
        node: Any = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def compose_scalar_node(self, anchor: Any) -> Any:
        """A text: escapes can put into it what neither a file's name nor UTF-8 has a place for."""
        node: Any = super().compose_scalar_node(anchor)
        if "\0" in node.value or _LONE.search(node.value):
            raise yaml.MarkedYAMLError(
                problem="it holds a NUL or half a character", problem_mark=node.start_mark
            )
        return node

    def compose_mapping_node(self, anchor: Any) -> Any:
        """A mapping as it is written, before ``<<`` brings in keys of others."""
        node: Any = super().compose_mapping_node(anchor)
        keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        seen: set[str] = set()
        for key in keys:
            if key.value in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"{key.value!r} stands twice", problem_mark=key.start_mark
                )
            seen.add(key.value)
        return node

    def get_single_node(self) -> Any:
        """The document, its aliases counted before anything is made of them."""
        node: Any = super().get_single_node()
        if node is not None:
            _size(node, {})
        return node


def _size(node: Any, known: dict[int, int]) -> int:
    """How many values a node stands for, those of its aliases each time that they are named."""
    size = known.get(id(node))
    if size is not None:
        if not size:
            raise yaml.MarkedYAMLError(problem="it holds itself", problem_mark=node.start_mark)
        return size
    known[id(node)] = 0
    inner = [] if isinstance(node, yaml.ScalarNode) else node.value
    parts = [part for one in inner for part in (one if isinstance(one, tuple) else (one,))]
    size = 1 + sum(_size(part, known) for part in parts)
    if size > _MOST_VALUES:
        what = f"its aliases stand for more than {_MOST_VALUES:,} values"
        raise yaml.MarkedYAMLError(problem=what, problem_mark=node.start_mark)
    known[id(node)] = size
    return size
