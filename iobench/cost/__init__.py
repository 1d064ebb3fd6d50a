"""PURE. What training costs with what a run's loop gets, and when a change pays."""

from __future__ import annotations

from iobench.cost.whole import cost

__all__ = ["cost"]
