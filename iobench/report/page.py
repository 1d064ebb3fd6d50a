"""Draw a result as one HTML file.

Styles and charts are inside the file. Every name is escaped. The page has no script, and it needs
no network.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from functools import cache
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from iobench.analysis.analyse import analyse
from iobench.report.appendix import sections
from iobench.report.evidence import cards
from iobench.report.front_page import feeds_basis, feeds_cell, front
from iobench.report.series import by_trial, readings_by_trial
from iobench.report.tables import Table
from iobench.report.typesetting import typeset
from iobench.results.result import Result

_NUMBER_WITH_UNITS = re.compile(r"[-+]?\d[^a-z]*(\b[a-zµ]{1,3}\b[^a-z]*)*$")
"""Matches a number, also with an interval and with units of at most three small letters."""


def render(
    result: Result, series: pd.DataFrame | None = None, samples: pd.DataFrame | None = None
) -> bytes:
    """Draw the report of a run. The same result always gives the same bytes.

    Args:
        result: the saved result.
        series: a row for each step, with the columns ``trial`` (the trial's id), ``step_end_s``,
            ``wait_s`` and ``compute_s``. Runs of newer versions also have ``time_s``. None if there
            are no steps.
        samples: a row for each reading of the machine, with the columns ``trial``, ``time_s`` and
            a column ``SAMPLER.NAME`` for each value of a sampler. None if there are no readings.

    Returns:
        The page in UTF-8.
    """
    analysis = analyse(result)
    return from_template(
        "report.html.j2",
        front=front(analysis),
        cards=cards(analysis, by_trial(series), readings_by_trial(samples)),
        sections=sections(analysis),
        raw=packed(json.loads(result.to_json())),
    )


def from_template(name: str, **values: Any) -> bytes:
    """Render a template of this package with some values, and return the page in UTF-8."""
    page = _environment().get_template(name).render(**values)
    # A file name that is not UTF-8 has lone surrogates, which cannot be encoded. They become
    # question marks, so that the page can still be written.
    return page.encode("utf-8", "replace")


def packed(raw: Any) -> str:
    """Compress JSON for a link that downloads it: gzip in base64."""
    data = gzip.compress(json.dumps(raw, allow_nan=False).encode(), mtime=0)
    return base64.b64encode(data).decode()


@cache
def _environment() -> Environment:
    """Return the environment of the templates. Names that are not defined raise an error."""
    environment = Environment(
        loader=PackageLoader("iobench.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["columns_of_numbers"] = columns_of_numbers
    environment.filters["typeset"] = typeset
    environment.globals["feeds_cell"] = feeds_cell
    environment.globals["feeds_basis"] = feeds_basis
    return environment


def columns_of_numbers(table: Table) -> list[bool]:
    """Return, for each column of a table, whether most of its cells are numbers.

    Such a column is aligned to the right, with its heading. Empty cells do not count. A number may
    have a unit and an interval.
    """
    number_counts = [0] * len(table.columns)
    text_counts = [0] * len(table.columns)
    for row in table.rows:
        for column, cell in enumerate(row):
            if _NUMBER_WITH_UNITS.match(cell):
                number_counts[column] += 1
            elif cell:
                text_counts[column] += 1
    return [numbers > texts for numbers, texts in zip(number_counts, text_counts, strict=True)]
