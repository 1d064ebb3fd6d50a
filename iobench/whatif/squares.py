"""PURE. Linear least squares of a few unknowns, none of them negative."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

Row = Sequence[float]


def nonnegative(rows: Sequence[Row]) -> list[float]:
    """Coefficients, none negative, for which each row's sum comes nearest to 1.

    The least of the squares over all choices of coefficients that are 0: with at most three of
    them the method of active sets (Lawson and Hanson, "Solving Least Squares Problems", chapter
    23) is their enumeration.

    Raises:
        ValueError: no rows, or no coefficient can bring any of them nearer to 1.
    """
    if not rows:
        raise ValueError("no rows")
    best: list[float] | None = None
    least = math.inf
    for count in range(1, len(rows[0]) + 1):
        for chosen in combinations(range(len(rows[0])), count):
            found = least_squares([[row[k] for k in chosen] for row in rows])
            if found is None or min(found) < 0:
                continue
            whole = [0.0] * len(rows[0])
            for k, value in zip(chosen, found, strict=True):
                whole[k] = value
            squares = squared_errors(rows, whole)
            if squares < least - 1e-15:
                best, least = whole, squares
    if best is None:
        raise ValueError("every coefficient would be negative")
    return best


def squared_errors(rows: Sequence[Row], coefficients: Row) -> float:
    """The sum of the squares of what is left to 1 in each row."""
    return sum(
        (sum(c * term for c, term in zip(coefficients, row, strict=True)) - 1) ** 2 for row in rows
    )


def least_squares(rows: Sequence[Row]) -> list[float] | None:
    """Coefficients for which each row's sum comes nearest to 1; None where they are not told apart.

    By the normal equations of columns of length 1, solved by elimination with pivots.
    """
    size = len(rows[0])
    lengths = [math.sqrt(sum(row[k] ** 2 for row in rows)) for k in range(size)]
    if min(lengths) == 0 or len(rows) < size:
        return None
    unit = [[row[k] / lengths[k] for k in range(size)] for row in rows]
    matrix = [
        [*(sum(row[i] * row[j] for row in unit) for j in range(size)), sum(row[i] for row in unit)]
        for i in range(size)
    ]
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(matrix[row][column]))
        if abs(matrix[pivot][column]) <= 1e-12:
            return None
        matrix[column], matrix[pivot] = matrix[pivot], matrix[column]
        for row in range(size):
            if row != column:
                factor = matrix[row][column] / matrix[column][column]
                matrix[row] = [
                    a - factor * b for a, b in zip(matrix[row], matrix[column], strict=True)
                ]
    return [matrix[k][size] / matrix[k][k] / lengths[k] for k in range(size)]
