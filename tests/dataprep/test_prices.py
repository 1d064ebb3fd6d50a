"""Tests of dataprep.prices."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataprep.errors import ConfigError
from dataprep.prices import Price, price_at, read_prices
from dataprep.stores import StoreOptions


def test_the_example_is_dated_and_says_where_it_is_from() -> None:
    """The prices that come with the package name their source and time."""
    prices = read_prices(None)
    assert prices.as_of[:2] == "20"
    assert prices.source.startswith("https://aws.amazon.com/")
    assert prices.currency == "USD"
    assert "STANDARD" in prices.s3["us-east-1"]


def test_hours_of_machines_have_a_date_of_their_own() -> None:
    """They change at other times than S3's."""
    instances = read_prices(None).instances
    assert instances is not None
    assert instances.as_of == "2026-07-20"
    assert instances.source.startswith("https://")
    assert instances.usd_per_h["us-east-1"]["g5.xlarge"] == 1.006


def test_a_sum() -> None:
    """LIST costs what PUT does, HEAD what GET does, a GB of storage is 2^30 bytes."""
    price = Price(put_per_1000=5.0, get_per_1000=0.4, gb_month=2.0)
    assert price.of_requests(puts=1_500, gets=10_000, lists=500) == 10.0 + 4.0
    assert price.of_a_month(3 * 2**30) == 6.0


def test_prices_of_ones_own(tmp_path: Path) -> None:
    """A copy with other figures is taken instead."""
    path = tmp_path / "mine.yaml"
    path.write_text(
        "as_of: 2031-02-03\nsource: a contract\ncurrency: EUR\n"
        "s3: {here: {STANDARD: {put_per_1000: 1, get_per_1000: 2, gb_month: 3}}}\n"
    )
    prices = read_prices(path)
    assert (prices.as_of, prices.currency) == ("2031-02-03", "EUR")
    assert prices.s3["here"]["STANDARD"] == Price(put_per_1000=1, get_per_1000=2, gb_month=3)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("as_of: x\nsource: y\ns3: {}\n", "no region"),
        ("as_of: x\nsource: y\ns3: {a: {B: {put: 1}}}\n", "put"),
        ("as_of: x\ns3: {a: {}}\n", "source is missing: add it$"),
        ("[1]", "mapping"),
    ],
)
def test_no_prices(tmp_path: Path, text: str, said: str) -> None:
    """What is no such file is refused with the key that is wrong."""
    path = tmp_path / "prices.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=said):
        read_prices(path)


def test_no_file(tmp_path: Path) -> None:
    """A file that is not there is named."""
    with pytest.raises(ConfigError, match=r"none\.yaml"):
        read_prices(tmp_path / "none.yaml")


def test_the_price_of_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its options, else the environment, else the first region; with where it is from."""
    prices = read_prices(None)
    monkeypatch.delenv("AWS_REGION", raising=False)
    price, about = price_at(prices, StoreOptions())
    assert price == prices.s3["us-east-1"]["STANDARD"]
    assert about.startswith("us-east-1, STANDARD, https://aws.amazon.com/s3/pricing/ as of")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert price_at(prices, StoreOptions())[1].startswith("eu-west-1")
    told = StoreOptions(region="us-west-2", storage_class="GLACIER")
    assert price_at(prices, told) == (None, "the prices know nothing of GLACIER in us-west-2")
