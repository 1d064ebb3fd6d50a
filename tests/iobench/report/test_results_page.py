"""docs/results.md documents every column that a run has, and no other column."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from iobench.config.benchmark import BenchConfig
from iobench.results.tables import SERIES_COLUMNS, TRIAL_COLUMNS, trials_table
from iobench.runner.progress import Lines
from iobench.runner.run import run
from iobench.runner.run_folder import read
from tests.iobench.small_runs import loaders

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "results.md").read_text()
GOLDEN = ROOT / "tests" / "golden" / "run-schema-1"


OF_SOME_MACHINES = {
    # A store that fails
    "metrics.errors.*",
    # Streams of torch with a shuffle buffer
    "metrics.shuffle_buffer_bytes",
    # A GPU, a disk and a network
    "metrics.gpu_utilisation_share",
    "metrics.disk_read_mb_per_s",
    "metrics.network_received_mb_per_s",
    # A trial that is suspended
    "metrics.stood_still_s",
    # An endless loader, whose rate is known within bounds only
    "metrics.samples_per_s_low",
    "metrics.samples_per_s_high",
    # Data that are larger than the memory
    "metrics.warm_share",
    # A loader that yields partial batches
    "metrics.dropped_samples",
    # A watched loop with a replay
    "metrics.ceiling_samples_per_s",
    "metrics.ceiling_samples_per_s_low",
    "metrics.ceiling_samples_per_s_high",
    "metrics.loss_share",
    "metrics.loss_share_low",
    "metrics.loss_share_high",
    "metrics.replay_batches",
    "metrics.replay_steps",
    "metrics.replay_left_out",
}
"""Documented columns that neither run has, with what would bring them."""


def patterns(title: str) -> list[str]:
    """Return the documented columns of a section, with ``*`` for other quantiles and names."""
    section = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.+?) \|", section, re.M)
    columns = []
    for cell in cells:
        names = re.findall(r"`([\w.*]+)`", cell)
        if "..." in cell:
            names = [f"{names[0].rpartition('_p')[0]}_p*"]
        columns += names
    return columns


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, small_data: dict[str, Any]) -> Path:
    """Return the folder of a run with columns that the golden run lacks, such as of writes."""
    pytest.importorskip("torch")
    columns_folder = tmp_path_factory.mktemp("columns")
    disk = {
        "targets": [{"label": "here", "path": str(columns_folder)}],
        "file_bytes": "1MiB",
        "operations": "write",
        "patterns": "sequential",
        "cache": "warm",
        "seconds": 0.1,
        "block_bytes": 4096,
        "at_block_bytes": 4096,
        "parallelism": 1,
        "at_parallelism": 1,
    }
    store = {
        "clients": "boto3",
        "operations": "get",
        "object_bytes": 1000,
        "connections": 1,
        "at_object_bytes": 1000,
        "at_connections": 1,
        "seconds": 0.1,
    }
    values: dict[str, Any] = {"name": "columns", "repeats": 1, "data": small_data, "disk": disk}
    loop = {"device": "cpu", "devices": 2, "model": "lenet", "image_size": 32, "batch_size": 2}
    loop |= {"loader": "null", "inputs": "synthetic", "workers": 0, "steps": 4}
    values |= {"object_store": store, "training": [loop], "sampling": {"per_s": 10}}
    of_modes = loaders("raw", data="shards@s3", access="file", epochs=2, batch_size=4)
    two_processes = loaders("torch-map", processes=2, batch_size=4, seconds=3, image_size=32)
    values["loaders"] = [
        *loaders("raw", "null", batch_size=4, seconds=2),
        *of_modes,
        *two_processes,
    ]
    values["cost"] = {"epochs": 2}
    config = BenchConfig.model_validate(values)
    run(config, columns_folder / "run", Lines())
    return columns_folder / "run"


def test_every_column_is_on_the_page(folder: Path) -> None:
    """Columns of a run of today and of the first version are documented."""
    documented = patterns("Columns of trials")
    for table in (pd.read_parquet(folder / "trials.parquet"), trials_table(read(GOLDEN).trials)):
        for column in table.columns:
            assert any(fnmatch(column, pattern) for pattern in documented), column
    assert set(TRIAL_COLUMNS) <= set(documented)


def test_every_line_of_the_page_is_a_column(folder: Path) -> None:
    """Each documented column is in one of the two runs."""
    columns = {*pd.read_parquet(folder / "trials.parquet"), *trials_table(read(GOLDEN).trials)}
    for pattern in patterns("Columns of trials"):
        if pattern not in OF_SOME_MACHINES:
            assert any(fnmatch(column, pattern) for column in columns), pattern


def test_references_are_on_the_page(folder: Path) -> None:
    """The page has every key under which a result keeps references."""
    kept = read(folder).references
    assert set(kept) == {"limits", "prices", "making", "fingerprints", "planned"}
    assert kept["making"]["shards@disk"]["reencoded"] > 0
    for name in kept:
        assert f"`references.{name}`" in PAGE


def test_series_have_their_columns() -> None:
    """Columns are in the documented order."""
    assert tuple(patterns("Columns of series")) == SERIES_COLUMNS
    assert tuple(pd.read_parquet(GOLDEN / "series.parquet")) == SERIES_COLUMNS


def test_the_line_for_pandas_works(folder: Path) -> None:
    """The Python code of the page runs on the table of a run."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    first = re.sub(r'"reports/[^"]+/trials.parquet"', "path", blocks[0])
    names: dict[str, Any] = {"pandas": pd, "path": folder / "trials.parquet"}
    exec(first, names)
    *before, last = blocks[1].strip().splitlines()
    exec("\n".join(before), names)
    rates = eval(last, names)
    assert len(names["trials"]) == 7
    assert rates["raw", 0] > 0
