"""A report as one HTML file: everything inlined, every name escaped, no network."""

from __future__ import annotations

import base64
import gzip
import json
import re
from functools import cache
from typing import Any

import pandas as pd
from bokeh.resources import Resources
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from iobench.report.charts import as_items
from iobench.report.model import build
from iobench.report.model.shapes import Report
from iobench.report.series import by_trial, readings_by_trial
from iobench.result import Result

_LONGEST_PLAIN = 250_000


def render(
    result: Result, series: pd.DataFrame | None = None, samples: pd.DataFrame | None = None
) -> bytes:
    """The page, UTF-8. A pure function of what was saved.

    ``series`` has a row a step: ``trial`` (its id), ``step_end_s``, ``wait_s``, ``compute_s`` and,
    of newer runs, ``time_s``. ``samples`` has a row a reading of the machine: ``trial``,
    ``time_s``, ``SAMPLER.NAME``.
    """
    return render_page(
        build(result, by_trial(series), readings_by_trial(samples)), json.loads(result.to_json())
    )


def render_page(report: Report, raw: Any) -> bytes:
    """Any page of this make, UTF-8, with the JSON value ``raw`` embedded in it."""
    page = (
        _environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            numbered=_numbered(report),
            charts=_embedded("charts", as_items(report.charts)),
            result=_embedded("result", raw),
            bokeh=_bokeh(),
        )
    )
    # Lone surrogates (names that are not UTF-8) cannot be encoded, and must not stop a page.
    return page.encode("utf-8", "replace")


def embedded_json(value: Any) -> Markup:
    """JSON that nothing in it can end: no ``<``, ``>`` or ``&``, and no line separators."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    escaped = re.sub(r"[<>&]", lambda found: f"\\u{ord(found[0]):04x}", text)
    return Markup(escaped)  # noqa: S704


def _embedded(name: str, value: Any) -> Markup:
    """The element that holds it: JSON, or where that were long, the same as gzip in base64."""
    plain = embedded_json(value)
    if len(plain) <= _LONGEST_PLAIN:
        return Markup('<script type="application/json" id="{}">{}</script>').format(name, plain)
    packed = base64.b64encode(gzip.compress(plain.encode(), mtime=0)).decode()
    return Markup('<script type="application/gzip" id="{}">{}</script>').format(name, packed)


def _numbered(report: Report) -> dict[int, int]:
    """Each chart's element by its identity."""
    return {id(chart): i for i, chart in enumerate(report.charts)}


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("iobench.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["kind"] = lambda block: type(block).__name__
    made.filters["identity"] = id
    return made


@cache
def _bokeh() -> Markup:
    """BokehJS without widgets; nothing in it may end its element."""
    (script,) = Resources(mode="inline", components=["bokeh"], minified=True).js_raw[:1]
    return Markup(re.sub(r"</(script)", r"<\\/\1", script, flags=re.I))  # noqa: S704
