"""PURE. What a run will take, move and cost, before it begins."""

from iobench.forecast.bounds import Bounds
from iobench.forecast.facts import DataFacts, Facts, Photographs, StoreFacts
from iobench.forecast.predicted import Predicted
from iobench.forecast.whole import Forecast, forecast

__all__ = [
    "Bounds",
    "DataFacts",
    "Facts",
    "Forecast",
    "Photographs",
    "Predicted",
    "StoreFacts",
    "forecast",
]
