"""Draw a saved result as one HTML file that needs no network."""

from __future__ import annotations

from iobench.report.page import render

__all__ = ["render"]
