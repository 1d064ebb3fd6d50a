"""The file of limits, and what a result keeps of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataprep.errors import ConfigError
from iobench.limits import read_limits


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
