"""Saved runs against each other: ratios with intervals, verdicts, a trend."""

from iobench.compare.comparison import Comparison, Saved, compare
from iobench.compare.trend import Trend, trend

__all__ = ["Comparison", "Saved", "Trend", "compare", "trend"]
