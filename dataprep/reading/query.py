"""A query over the table of samples, checked before pandas evaluates it.

pandas' query language can call functions, follow attributes and read variables of the program. A
query may come from a config file or from another person. Therefore only comparisons, arithmetic,
and combinations by ``and``, ``or`` and ``not`` are allowed. The check also refuses two mistakes:

- A comparison of a text with a number. pandas would evaluate ``label == "3"`` to False for every
  sample.
- An expression that pandas and Python group differently. Its author may expect either result.

Numbers are converted to float64 before pandas computes with them. In the small integer types of the
table, results could overflow without an error.
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
    "a query compares columns of the table of samples: label < 100 and source_width >= 64. It may "
    "contain names of columns, numbers, texts in quotes, comparisons, in and not in with a list, "
    "and, or, not, and + - * / // %"
)
_MAX_CHARACTERS = 10**6  # A longer query is a list of samples, for which ``select`` is made.
_MIXED_OPERATORS = (
    "it mixes & or | with and, or or not, which pandas and Python group differently: write and, "
    "or, not everywhere"
)


@dataclass(frozen=True, slots=True)
class Query:
    """A query that has passed the check.

    Attributes:
        text: the query as the user wrote it, without spaces around it.
        expression: the same query in one line and without comments, for pandas.
        number_columns: the names of the numeric columns in the query, sorted.
        text_columns: the names of the text columns in the query, sorted.
    """

    text: str
    expression: str
    number_columns: tuple[str, ...]
    text_columns: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns in the query: the numeric ones, then the texts."""
        return self.number_columns + self.text_columns

    @classmethod
    def parse(cls, text: object, schema: pa.Schema) -> Query:
        """Check a query over a table with this schema.

        Raises:
            ConfigError: the text is not a query, contains something that is not allowed, names a
                column that does not exist, compares a text with a number, or can be understood in
                two ways.
        """
        if not isinstance(text, str) or not text.strip():
            raise ConfigError(f"the query {text!r} is empty, or not a text: {_ALLOWED}")
        text = text.strip()
        if len(text) > _MAX_CHARACTERS:
            raise ConfigError(
                f"the query has {len(text):,} characters, more than the {_MAX_CHARACTERS:,} that "
                "are allowed: use dataset.select(numbers)"
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
            raise check.error(f"it is a value, not a condition; {_ALLOWED}")
        check.refuse_mixed_operators(tree)
        return cls(text, expression, check.columns_of("number"), check.columns_of("text"))

    def matches(self, table: pd.DataFrame) -> NDArray[np.bool_]:
        """Return whether each row of ``table`` matches: bool of shape (rows,).

        The table must have ``columns``.

        A missing text counts as an empty text. A missing number is not equal to any number.

        Raises:
            ConfigError: pandas cannot evaluate the query.
        """
        table = table.fillna(dict.fromkeys(self.text_columns, ""))
        table = table.astype(dict.fromkeys(self.number_columns, np.float64))
        try:
            result = table.eval(self.expression, engine="python", parser="pandas")
            mask: NDArray[np.bool_] = np.asarray(result)
        except Exception as error:  # noqa: BLE001  pandas raises errors of all kinds
            raise ConfigError(
                f"the query {_quoted(self.text)} cannot be evaluated: {error}; {_ALLOWED}"
            ) from None
        if mask.dtype != np.bool_ or mask.shape != (len(table),):
            raise ConfigError(
                f"the query {_quoted(self.text)} is not true or false for each sample; {_ALLOWED}"
            )
        return mask


class _TypeCheck:
    """Goes through a parsed query, checks the type of each part, and collects the columns."""

    def __init__(self, text: str, schema: pa.Schema) -> None:
        self._columns: set[str] = set()
        self._text = text
        self._column_types = _column_types(schema)
        self._column_names: list[str] = schema.names

    def error(self, problem: str) -> ConfigError:
        """Return an error about this query."""
        return ConfigError(f"the query {_quoted(self._text)} is wrong: {problem}")

    def columns_of(self, column_type: _Type) -> tuple[str, ...]:
        """Return the columns of this type that the query names, sorted."""
        types = self._column_types
        return tuple(sorted(name for name in self._columns if types[name] == column_type))

    def refuse_mixed_operators(self, tree: ast.Expression) -> None:
        """Raise ConfigError for ``&`` or ``|`` beside ``and``, ``or`` or ``not``.

        ``not (a) & (b)`` is ``not (a and b)`` in Python, and ``(not a) and b`` in pandas.
        """
        nodes = list(ast.walk(tree))
        has_symbols = any(isinstance(node, ast.BitAnd | ast.BitOr) for node in nodes)
        has_keywords = any(isinstance(node, ast.And | ast.Or | ast.Not) for node in nodes)
        if has_symbols and has_keywords:
            raise self.error(_MIXED_OPERATORS)

    def type_of(self, node: ast.expr) -> _Type:
        """Return the type of an expression's value. Raise ConfigError if it is not allowed."""
        match node:
            case ast.BoolOp(values=values):
                self._require("condition", values, "'and' and 'or' connect comparisons")
                return "condition"
            case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
                self._require("condition", [operand], "'not' stands before a comparison")
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
        """Raise ConfigError if the value of an expression does not have the required type."""
        for node in nodes:
            value_type = self.type_of(node)
            if value_type != required:
                raise self.error(f"{_quoted(ast.unparse(node))} is a {value_type}, but {reason}")

    def _comparison(self, node: ast.Compare) -> _Type:
        """Check a comparison, or a chain such as ``2 < label < 7``; return its type."""
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            if not (_has_column(left) or _has_column(right)):
                compared = f"{_quoted(ast.unparse(left))} with {_quoted(ast.unparse(right))}"
                raise self.error(f"it compares {compared}, neither of which is a column")
            left_type = self.type_of(left)
            if left_type == "condition":
                raise self.error(f"{_quoted(ast.unparse(left))} is a condition already")
            if isinstance(operator, _MEMBERSHIP):
                self._require_list(right, left_type)
                if len(node.ops) > 1:
                    raise self.error("a chain of comparisons cannot contain 'in' or 'not in'")
            elif isinstance(operator, _COMPARISONS):
                right_type = self.type_of(right)
                if right_type != left_type:
                    compared = f"{_quoted(ast.unparse(left))} and {_quoted(ast.unparse(right))}"
                    raise self.error(f"{compared} are a {left_type} and a {right_type}")
            else:
                raise self._not_allowed(node)
            left = right
        return "condition"

    def _require_list(self, node: ast.expr, element_type: _Type) -> None:
        """Raise ConfigError if an expression is not a list of constants of this type.

        Numbers may have a minus sign.
        """
        if not isinstance(node, ast.List | ast.Tuple):
            raise self.error(f"'in' needs a list, not {_quoted(ast.unparse(node))}")
        for element in node.elts:
            constant = element
            if isinstance(element, ast.UnaryOp) and isinstance(element.op, ast.USub):
                constant = element.operand
            if not isinstance(constant, ast.Constant) or self.type_of(element) != element_type:
                raise self.error(
                    f"{_quoted(ast.unparse(element))} in a list is not a {element_type}"
                )

    def _column(self, name: str) -> _Type:
        """Return the type of a column, and add it to the columns of the query."""
        if name not in self._column_names:
            columns = ", ".join(self._column_names)
            raise self.error(f"there is no column {name!r}: the table has {columns}")
        if name not in self._column_types:
            raise self.error(f"column {name!r} contains lists, which cannot be compared")
        self._columns.add(name)
        return self._column_types[name]

    def _constant(self, node: ast.expr, value: object) -> _Type:
        """Return the type of a constant. Raise ConfigError if it is no text and no number."""
        if isinstance(value, str):
            return "text"
        if isinstance(value, int | float) and not isinstance(value, bool):
            return "number"
        raise self._not_allowed(node)

    def _not_allowed(self, node: ast.expr) -> ConfigError:
        return self.error(f"{_quoted(ast.unparse(node))} is not allowed; {_ALLOWED}")


def _has_column(node: ast.expr) -> bool:
    """Whether an expression contains the name of a column."""
    return any(isinstance(part, ast.Name) for part in ast.walk(node))


def _column_types(schema: pa.Schema) -> dict[str, _Type]:
    """Return the type of each column that can be compared: those of numbers and of texts."""
    types: dict[str, _Type] = {}
    for column in schema:
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            types[column.name] = "number"
        elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            types[column.name] = "text"
    return types


def _quoted(text: str) -> str:
    """Return the text in quotes, cut after a hundred characters."""
    excerpt = text if len(text) <= 100 else f"{text[:100]}…"
    return repr(excerpt)
