"""A saved result as one HTML file that needs no network.

What draws is loaded with the first page: what a page would say can be had without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iobench.report.page import render, render_page

__all__ = ["render", "render_page"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from iobench.report import page

        return getattr(page, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
