"""A result as one HTML file: everything inlined, every name escaped, no network, no script."""

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
from iobench.report.front import feeds_cell, front, how_fed
from iobench.report.series import by_trial, readings_by_trial
from iobench.result import Result

_NUMBER = re.compile(r"[−+]?\d[^a-z]*(\b[a-zµ]{1,3}\b[^a-z]*)*$")


def render(
    result: Result, series: pd.DataFrame | None = None, samples: pd.DataFrame | None = None
) -> bytes:
    """The page, UTF-8. A pure function of what was saved.

    ``series`` has a row a step: ``trial`` (its id), ``step_end_s``, ``wait_s``, ``compute_s`` and,
    of newer runs, ``time_s``. ``samples`` has a row a reading of the machine: ``trial``,
    ``time_s``, ``SAMPLER.NAME``.
    """
    found = analyse(result)
    return from_template(
        "report.html.j2",
        front=front(found),
        cards=cards(found, by_trial(series), readings_by_trial(samples)),
        sections=sections(found),
        raw=packed(json.loads(result.to_json())),
    )


def from_template(name: str, **values: Any) -> bytes:
    """Render a template, as UTF-8."""
    page = _environment().get_template(name).render(**values)
    # Lone surrogates (names that are not UTF-8) cannot be encoded, and must not stop a page.
    return page.encode("utf-8", "replace")


def packed(raw: Any) -> str:
    """JSON as gzip in base64, for a link that downloads it."""
    data = gzip.compress(json.dumps(raw, allow_nan=False).encode(), mtime=0)
    return base64.b64encode(data).decode()


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("iobench.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["is_number"] = lambda text: bool(_NUMBER.match(str(text)))
    made.globals["feeds_cell"] = feeds_cell
    made.globals["how_fed"] = how_fed
    return made
