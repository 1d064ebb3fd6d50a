"""A query over the table of samples, checked before pandas evaluates it.

pandas' query language can call functions, follow attributes and read variables of the program. A
query may come from a config file or from another person, so that only comparisons of columns are
allowed. The check also knows the type of each column: pandas answers ``label == "3"`` with False
for every sample, where an error helps more. What pandas and Python understand differently is
refused, and numbers are computed as float64: pandas would compute in the small integer types of the
table, which overflow without an error.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dataprep.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

_Type: TypeAlias = Literal["number", "text", "condition"]

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_MEMBERSHIP = (ast.In, ast.NotIn)
_ALLOWED = (
    "a query compares columns of the table of samples: label < 100 and source_width >= 64. It has "
    "names of columns, numbers, texts in quotes, comparisons, in and not in with a list, and, or, "
    "not, and + - * / // %"
)
_MAX_CHARACTERS = 10**6
_WORDS_OR_SIGNS = (
    "& and | stand beside and, or, not, which pandas and Python group differently: write and, or, "
    "not everywhere"
)


@dataclass(frozen=True, slots=True)
class Query:
    """A query that is allowed.

    Attributes:
        text: the query as the user wrote it, without spaces around it.
        expression: the same query in one line without comments, as pandas can evaluate it.
        numbers: the columns of numbers that it names, sorted.
        texts: the columns of texts that it names, sorted.
    """

    text: str
    expression: str
    numbers: tuple[str, ...]
    texts: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it names."""
        return self.numbers + self.texts

    @classmethod
    def parse(cls, text: object, schema: pa.Schema) -> Query:
        """Check a query over a table with this schema.

        Raises:
            ConfigError: it is not a query, contains something that is not allowed, names a column
                that does not exist, compares a text with a number, or can be understood in two
                ways.
        """
        if not isinstance(text, str) or not text.strip():
            raise ConfigError(f"the query {text!r} is empty, or not a text: {_ALLOWED}")
        text = text.strip()
        if len(text) > _MAX_CHARACTERS:
            raise ConfigError(
                f"the query has {len(text):,} characters, and may have {_MAX_CHARACTERS:,}: use "
                "dataset.select(numbers)"
            )
        check = _TypeCheck(text, schema)
        try:
            tree = ast.parse(text, mode="eval")
            value_type = check.type_of(tree.body)
            expression = ast.unparse(tree)
        except ConfigError:
            raise
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise check.error(f"it cannot be parsed; {_ALLOWED}") from None
        if value_type != "condition":
            raise check.error(f"it is a value and not a condition; {_ALLOWED}")
        check.require_words_or_signs(tree)
        numbers, texts = check.columns_of("number"), check.columns_of("text")
        return cls(text, expression, numbers, texts)

    def matches(self, table: pd.DataFrame) -> NDArray[np.bool_]:
        """Whether each row of a table with ``columns`` matches: shape (rows,).

        An unknown text is an empty one. An unknown number is not equal to any number.

        Raises:
            ConfigError: pandas cannot evaluate the query.
        """
        table = table.fillna(dict.fromkeys(self.texts, ""))
        table = table.astype(dict.fromkeys(self.numbers, np.float64))
        try:
            answer = table.eval(self.expression, engine="python", parser="pandas")
            mask: NDArray[np.bool_] = np.asarray(answer)
        except Exception as error:  # noqa: BLE001  pandas raises errors of all kinds
            raise ConfigError(
                f"the query {_short(self.text)} cannot be evaluated: {error}; {_ALLOWED}"
            ) from None
        if mask.dtype != np.bool_ or mask.shape != (len(table),):
            raise ConfigError(f"the query {_short(self.text)} has no answer for each sample")
        return mask


class _TypeCheck:
    """Walk through a parsed query: find the type of each part, and the columns that it names."""

    def __init__(self, text: str, schema: pa.Schema) -> None:
        self._columns: set[str] = set()
        self._text = text
        self._column_types = _column_types(schema)
        self._column_names: list[str] = schema.names

    def error(self, what: str) -> ConfigError:
        """An error about this query."""
        return ConfigError(f"the query {_short(self._text)} is wrong: {what}")

    def columns_of(self, column_type: _Type) -> tuple[str, ...]:
        """The columns of this type that the query names, sorted."""
        types = self._column_types
        return tuple(sorted(name for name in self._columns if types[name] == column_type))

    def require_words_or_signs(self, tree: ast.Expression) -> None:
        """Raise ConfigError for ``&`` or ``|`` beside ``and``, ``or`` or ``not``.

        ``not (a) & (b)`` is ``not (a and b)`` in Python, and ``(not a) and b`` in pandas.
        """
        nodes = [*ast.walk(tree)]
        has_signs = any(isinstance(node, ast.BitAnd | ast.BitOr) for node in nodes)
        has_words = any(isinstance(node, ast.And | ast.Or | ast.Not) for node in nodes)
        if has_signs and has_words:
            raise self.error(_WORDS_OR_SIGNS)

    def type_of(self, node: ast.expr) -> _Type:
        """The type of the value of an expression. Raises ConfigError if it is not allowed."""
        match node:
            case ast.BoolOp(values=values):
                self._require("condition", values, "and and or connect comparisons")
                return "condition"
            case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
                self._require("condition", [operand], "not stands before a comparison")
                return "condition"
            case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr(), right=right):
                reason = "& and | connect comparisons in parentheses; write and, or"
                self._require("condition", [left, right], reason)
                return "condition"
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                self._require("number", [operand], "only a number can have a sign")
                return "number"
            case ast.BinOp(left=left, op=operator, right=right):
                if not isinstance(operator, _ARITHMETIC):
                    raise self._not_allowed(node)
                self._require("number", [left, right], "only numbers can be calculated with")
                return "number"
            case ast.Compare():
                return self._comparison(node)
            case ast.Name(id=name):
                return self._column(name)
            case ast.Constant(value=value):
                return self._constant(node, value)
        raise self._not_allowed(node)

    def _require(self, required: _Type, nodes: list[ast.expr], reason: str) -> None:
        """Raise ConfigError if the value of an expression has another type."""
        for node in nodes:
            value_type = self.type_of(node)
            if value_type != required:
                raise self.error(f"{_short(ast.unparse(node))} is a {value_type}, but {reason}")

    def _comparison(self, node: ast.Compare) -> _Type:
        """The type of a comparison, or of a chain such as ``2 < label < 7``."""
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            if not (_has_column(left) or _has_column(right)):
                compared = f"{_short(ast.unparse(left))} with {_short(ast.unparse(right))}"
                raise self.error(f"it compares {compared}, which are no columns")
            left_type = self.type_of(left)
            if left_type == "condition":
                raise self.error(f"{_short(ast.unparse(left))} is a condition already")
            if isinstance(operator, _MEMBERSHIP):
                self._require_list(right, left_type)
                if len(node.ops) > 1:
                    raise self.error("in and not in stand alone between a column and a list")
            elif isinstance(operator, _COMPARISONS):
                right_type = self.type_of(right)
                if right_type != left_type:
                    compared = f"{_short(ast.unparse(left))} and {_short(ast.unparse(right))}"
                    raise self.error(f"{compared} are a {left_type} and a {right_type}")
            else:
                raise self._not_allowed(node)
            left = right
        return "condition"

    def _require_list(self, node: ast.expr, element_type: _Type) -> None:
        """Raise ConfigError if an expression is not a list of constants of this type."""
        if not isinstance(node, ast.List | ast.Tuple):
            raise self.error(f"in needs a list, not {_short(ast.unparse(node))}")
        for element in node.elts:
            constant = element
            if isinstance(element, ast.UnaryOp) and isinstance(element.op, ast.USub):
                constant = element.operand
            if not isinstance(constant, ast.Constant) or self.type_of(element) != element_type:
                raise self.error(
                    f"{_short(ast.unparse(element))} in a list is not a {element_type}"
                )

    def _column(self, name: str) -> _Type:
        """The type of a column, which is noted."""
        if name not in self._column_names:
            columns = ", ".join(self._column_names)
            raise self.error(f"there is no column {name!r}: the table has {columns}")
        if name not in self._column_types:
            raise self.error(f"column {name!r} has lists, which cannot be compared")
        self._columns.add(name)
        return self._column_types[name]

    def _constant(self, node: ast.expr, value: object) -> _Type:
        if isinstance(value, str):
            return "text"
        if isinstance(value, int | float) and not isinstance(value, bool):
            return "number"
        raise self._not_allowed(node)

    def _not_allowed(self, node: ast.expr) -> ConfigError:
        return self.error(f"{_short(ast.unparse(node))} is not allowed; {_ALLOWED}")


def _has_column(node: ast.expr) -> bool:
    """Whether an expression contains the name of a column."""
    return any(isinstance(part, ast.Name) for part in ast.walk(node))


def _column_types(schema: pa.Schema) -> dict[str, _Type]:
    """The type of each column that can be compared."""
    types: dict[str, _Type] = {}
    for column in schema:
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            types[column.name] = "number"
        elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            types[column.name] = "text"
    return types


def _short(text: str) -> str:
    """At most the first hundred characters, in quotes."""
    shown = text if len(text) <= 100 else f"{text[:100]}…"
    return repr(shown)
