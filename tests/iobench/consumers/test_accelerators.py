"""The table of accelerators: names, rates with their kind of work and source, and prices."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataprep.config.prices import instance_price_per_h, read_prices
from iobench.consumers.accelerators import ACCELERATORS, RATES, Rental, WorkKind, rental_of

TUNED = {"V100": 1_200, "A100": 2_470, "H100": 7_000}
IN_A_JOB = {"V100-mxnet-64": 687, "V100-tensorflow-64": 640}
STORAGE = {"A100-mlperf": 920, "H100-mlperf": 1_786, "B200-mlperf": 505, "MI355-mlperf": 505}
PRICES = Path(__file__).parents[3] / "configs/prices.yaml"


def rates_of(work_kind: WorkKind) -> dict[str, int]:
    """Return the rates of this kind of work by name, in whole samples/s."""
    rates = RATES.values()
    return {rate.name: round(rate.samples_per_s) for rate in rates if rate.work_kind is work_kind}


@pytest.mark.parametrize(
    ("work_kind", "rates"),
    [
        (WorkKind.TUNED_STEP, TUNED),
        (WorkKind.STEP_IN_A_JOB, IN_A_JOB),
        (WorkKind.MLPERF_STORAGE, STORAGE),
    ],
)
def test_each_rate_says_what_it_means(work_kind: WorkKind, rates: dict[str, int]) -> None:
    """Each rate is of a tuned training step, of a step in a large job, or of MLPerf Storage."""
    assert rates_of(work_kind) == rates


def test_names_are_unique_and_have_sources() -> None:
    """No rate hides another one, and each one says where it comes from."""
    rates = [rate for accelerator in ACCELERATORS for rate in accelerator.rates]
    assert len(RATES) == len(rates)
    assert all(rate.source and rate.samples_per_s > 0 for rate in rates)
    for accelerator in ACCELERATORS:
        assert all(rate.name.startswith(accelerator.name) for rate in accelerator.rates)


@pytest.mark.parametrize(
    ("name", "batch_size", "computation_s", "pass_mark", "version"),
    [
        ("A100-mlperf", 400, 0.435, 0.90, "v2.0"),
        ("H100-mlperf", 400, 0.224, 0.90, "v2.0"),
        ("B200-mlperf", 24, 0.04755, 0.85, "v3.0"),
        ("MI355-mlperf", 32, 0.0634, 0.85, "v3.0"),
    ],
)
def test_rates_of_mlperf_storage_follow_from_its_workload_files(
    name: str, batch_size: int, computation_s: float, pass_mark: float, version: str
) -> None:
    """The rate is the batch size over the computation time; the source cites file and both."""
    rate = RATES[name]
    assert rate.workload is not None
    assert rate.samples_per_s == pytest.approx(batch_size / computation_s)
    assert rate.workload.pass_mark == pass_mark
    for cited in (version, rate.workload.file, f"{computation_s:g} s", f"batch of {batch_size}"):
        assert cited in rate.source


def test_only_workloads_of_mlperf_storage_have_a_pass_mark() -> None:
    """They are those whose names end in -mlperf."""
    for name, rate in RATES.items():
        assert (rate.workload is not None) == name.endswith("-mlperf")
        assert (rate.workload is not None) == (rate.work_kind is WorkKind.MLPERF_STORAGE)


def test_prices_are_of_one_accelerator() -> None:
    """The price of an instance for an hour is divided by its accelerators; all rates share it."""
    rental = rental_of("H100-mlperf")
    assert rental is not None
    assert rental is rental_of("H100")
    assert rental.usd_per_accelerator_h == pytest.approx(6.88)
    assert rental_of("MI355-mlperf") is None
    assert rental_of("K80") is None


@pytest.mark.parametrize(
    "rental", [accelerator.rental for accelerator in ACCELERATORS if accelerator.rental is not None]
)
def test_prices_agree_with_the_example_file_of_prices(rental: Rental) -> None:
    """An instance that stands in both has one price."""
    price = instance_price_per_h(read_prices(PRICES), rental.region, rental.instance)
    assert price in (None, rental.usd_per_h)
