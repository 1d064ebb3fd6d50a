"""A saved result as one HTML file that needs no network."""

from iobench.report.page import render

__all__ = ["render"]
