"""Published limits and prices as a result keeps them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dataprep.errors import ConfigError
from iobench.config.benchmark import BenchConfig
from iobench.config.references import References, priced, read_limits, references
from iobench.errors import ResultError
from iobench.results.result import Result


@pytest.fixture(autouse=True)
def _no_region(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the region of this machine's environment."""
    monkeypatch.delenv("AWS_REGION", raising=False)


def references_of(environment: dict[str, Any] | None = None, **config: Any) -> References:
    """Return the references that a run with this config on this machine keeps."""
    return references(BenchConfig.model_validate(config), environment or {})


def test_a_result_keeps_what_is_known_of_its_machine() -> None:
    """The instance type comes from the metadata, or from the config, which takes precedence."""
    environment = {"machine": {"instance_type": "g5.12xlarge"}}
    limits = references_of(environment)["limits"]
    assert limits["instance"] == {"network_gbit_per_s": 40.0, "ebs_gbit_per_s": 16.0}
    unknown = references_of(environment, limits={"instance": "c9.huge"})["limits"]
    assert (unknown["instance_type"], unknown["instance"]) == ("c9.huge", None)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"targets": {"data": {"volume": "gp9"}}}, "has no 'gp9'; it has gp3, gp2"),
        ({"targets": {"dtaa": {"volume": "gp3"}}}, "limits.targets.dtaa: nothing in this run"),
        ({"stores": {"minio": 100}}, "limits.stores.minio: nothing in this run"),
    ],
)
def test_a_limit_of_what_is_not_there_is_refused(limits: dict[str, Any], message: str) -> None:
    """A limit for an unknown label is refused, since it would limit nothing without a word."""
    environment: dict[str, Any] = {"targets": {"scratch": {}}, "stores": {"s3": {}}}
    with pytest.raises(ConfigError, match=message):
        references_of(environment, limits=limits, disk={}, object_store={})


def test_a_volume_without_its_limit_is_refused(tmp_path: Path) -> None:
    """The error names the file, the type of the volume and the missing key."""
    file = tmp_path / "limits.yaml"
    file.write_text("as_of: 2031-02-03\nsource: a contract\nvolumes: {gp3: {}}\n")
    with pytest.raises(ConfigError, match=rf"^{file}: volumes\.gp3\.mib_per_s") as refused:
        references_of(limits={"file": str(file)})
    assert refused.value.exit_code == 2
    file.write_text("as_of: 2031-02-03\nsource: a contract\nvolumes: {gp3: {iops: 3000}}\n")
    with pytest.raises(ConfigError, match=r"volumes\.gp3\.iops: .*mib_per_s"):
        references_of(limits={"file": str(file)})


def test_limits_of_what_is_left_out_do_no_harm() -> None:
    """Limits of disks and stores are allowed if a run leaves these parts out."""
    settings = {"targets": {"scratch": {"mb_per_s": 1}}, "stores": {"s3": 1}}
    assert references_of(limits=settings, disk=None, object_store=None)["limits"]["as_of"]


def test_limits_of_targets_and_stores_that_are_there_are_taken() -> None:
    """Limits are found by the labels of the run."""
    environment: dict[str, Any] = {"targets": {"scratch": {}}, "stores": {"s3": {}}}
    targets = {"scratch": {"mb_per_s": 1}, "source": {"mb_per_s": 1}}
    settings = {"targets": targets, "stores": {"s3": 1}}
    assert references_of(environment, limits=settings)["limits"]["as_of"]


def test_without_a_type_there_is_no_instance() -> None:
    """A run without an instance type keeps the limits of volumes and stores."""
    limits = references_of()["limits"]
    assert "instance" not in limits
    assert limits["stores"]["aws-s3"]["gets_per_s_per_prefix"] == 5500


def test_prices_are_kept_where_costs_are_asked_for() -> None:
    """The price of the machine and those of S3 have a date."""
    assert "prices" not in references_of()
    prices = references_of({"machine": {"instance_type": "g5.xlarge"}}, cost={})["prices"]
    assert prices["instance_usd_per_h"] == 1.006
    assert "as of 2026-07-20" in prices["instance_about"]
    assert prices["s3"] is not None
    assert prices["s3"]["get_per_1000"] == 0.0004


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"cost": {"instance": "x9.large"}}, "has no hourly price of x9.large in us-east-1"),
        ({"cost": {}}, "has no hourly price of this machine in us-east-1"),
        (
            {
                "cost": {"instance": "g5.xlarge"},
                "data": {"bucket": {"store": {"region": "eu-west-1"}}},
            },
            "has no hourly price of g5.xlarge in eu-west-1",
        ),
    ],
)
def test_a_price_that_nobody_knows_is_none(config: dict[str, Any], message: str) -> None:
    """The price of another type or region is not used instead."""
    prices = references_of(None, **config)["prices"]
    assert prices["instance_usd_per_h"] is None
    assert message in prices["instance_about"]


def test_the_region_is_that_of_the_store_that_is_read() -> None:
    """The region of the store with the data decides, not that of a bucket for copies."""
    data = {"shards": "s3://bucket/out", "store": {"region": "us-west-2"}}
    prices = references_of(None, cost={}, data=data)["prices"]
    assert prices["s3_about"].startswith("us-west-2, STANDARD")


def test_a_saved_run_is_priced_anew(tmp_path: Path) -> None:
    """A saved run takes prices from another file and keeps its own settings."""
    file = tmp_path / "prices.yaml"
    file.write_text(
        "as_of: 2031-02-03\nsource: a contract\ncurrency: EUR\n"
        "s3: {here: {STANDARD: {put_per_1000: 1, get_per_1000: 2, gb_month: 3}}}\n"
    )
    config = BenchConfig.model_validate({"cost": {"epochs": 7}}).model_dump(mode="json")
    result = Result("r", "", {}, config, references={"making": {"shards@disk": {}}})
    priced_result, requested = priced(result, {"samples": 5}, file)
    assert (requested["epochs"], requested["samples"]) == (7, 5)
    assert priced_result.references["prices"]["currency"] == "EUR"
    assert priced_result.references["making"] == {"shards@disk": {}}


def test_a_wrong_key_and_another_config_are_refused() -> None:
    """The error names the key."""
    with pytest.raises(ConfigError, match="epochs"):
        priced(Result("r", "", {}, {}), {"epochs": 0}, None)
    with pytest.raises(ResultError, match="config"):
        priced(Result("r", "", {}, {"watch": {}}), {}, None)


def test_the_example_is_dated_and_says_where_it_is_from() -> None:
    """The example limits have a date and a source."""
    limits = read_limits(None)
    assert limits.as_of == "2026-08-18"
    assert limits.source.startswith("https://")
    assert limits.instances["p4d.24xlarge"]["network_gbit_per_s"] == 400
    assert limits.volumes["gp3"].mib_per_s == 125


def test_every_instance_has_a_figure() -> None:
    """No instance is listed without a limit."""
    for name, limits in read_limits(None).instances.items():
        assert limits, name


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    """The error names the key that is wrong."""
    path = tmp_path / "limits.yaml"
    path.write_text("as_of: 2026-01\nsource: me\ninstances: {a: {speed: 3}}\n")
    with pytest.raises(ConfigError, match="speed"):
        read_limits(path)
