"""Facts and configs for forecasts, made up."""

from __future__ import annotations

from typing import Any

from dataprep.prices import Price
from iobench.config import BenchConfig
from iobench.forecast import DataFacts, Facts, Forecast, StoreFacts, forecast
from iobench.forecast.bounds import exactly
from iobench.plan import trials

PRICE = Price(put_per_1000=5.0, get_per_1000=0.4, gb_month=0.0)
AMAZON = StoreFacts(price=PRICE, prices="made up")
OTHER = StoreFacts(server="http://127.0.0.1:9000")


def data(samples: int = 1000, each: int = 50_000, shards: int = 4, store: str = "") -> DataFacts:
    """Data that lie there: so many samples of ``each`` bytes in so many shards."""
    size = exactly(samples * each)
    return DataFacts(
        exactly(samples), size, exactly(shards), size.times(2), exactly(6 * shards), store, True
    )


def forecast_of(facts: Facts | None = None, **values: Any) -> Forecast:
    """What a config would take."""
    config = BenchConfig.model_validate({"name": "made", **values})
    return forecast(config, trials(config), facts or Facts())
