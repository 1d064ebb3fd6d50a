"""The file of limits, and what a result keeps of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataprep.errors import ConfigError
from iobench.config import BenchConfig
from iobench.limits import read_limits
from iobench.references import references


def test_the_example_is_dated_and_says_where_it_is_from() -> None:
    """Nothing in it is of nobody."""
    limits = read_limits(None)
    assert limits.as_of == "2026-08-18"
    assert limits.source.startswith("https://")
    assert limits.instances["p4d.24xlarge"].network_gbit_per_s == 400
    assert limits.volumes["gp3"].mib_per_s == 125


def test_every_instance_has_a_figure() -> None:
    """A name alone would be taken for known."""
    for name, known in read_limits(None).instances.items():
        assert known.model_dump(exclude_none=True), name


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    """With the key that is wrong."""
    path = tmp_path / "limits.yaml"
    path.write_text("as_of: 2026-01\nsource: me\ninstances: {a: {speed: 3}}\n")
    with pytest.raises(ConfigError, match="speed"):
        read_limits(path)


def test_a_result_keeps_what_is_known_of_its_machine() -> None:
    """By the metadata's type, or the config's, which overrules it."""
    environment = {"machine": {"instance_type": "g5.12xlarge"}}
    limits = references(BenchConfig(), environment)["limits"]
    assert limits["instance"] == {"network_gbit_per_s": 40.0, "ebs_gbit_per_s": 16.0}
    told = BenchConfig.model_validate({"limits": {"instance": "c9.huge"}})
    unknown = references(told, environment)["limits"]
    assert (unknown["instance_type"], unknown["instance"]) == ("c9.huge", None)


def test_without_a_type_there_is_no_instance() -> None:
    """Volumes and stores are kept all the same."""
    limits = references(BenchConfig(), {})["limits"]
    assert "instance" not in limits
    assert limits["stores"]["aws-s3"]["gets_per_s_per_prefix"] == 5500
