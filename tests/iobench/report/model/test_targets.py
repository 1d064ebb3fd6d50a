"""Targets and stores on the page."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.report.model import build
from iobench.report.model.shapes import Section, Table, Words
from iobench.report.model.targets import store_table, target_names, target_table
from iobench.result import Result
from tests.iobench.report.results import Run

NVME = {
    "kind": "nvme",
    "name": "NVMe",
    "why": "an NVMe drive on PCI Express",
    "stack": ["xfs", "partition", "NVMe (Samsung SSD 980)"],
    "device": {
        "model": "Samsung SSD 980",
        "rotational": False,
        "link_mb_per_s": 3938.5,
        "queue": {"scheduler": "none"},
    },
    "file_system": "xfs",
    "mount_options": "rw,noatime",
    "total_bytes": 10**12,
    "free_bytes": 5 * 10**11,
    "read_ahead_kb": 128,
}
OLD = {"file_system": "ext4", "mount_options": "rw", "total_bytes": 10**9, "free_bytes": 1}
S3 = {"kind": "aws-s3", "name": "Amazon S3", "why": "w", "encrypted": True, "region": "eu-west-1"}


def section(result: Result, id: str) -> Section:
    """A section of the page."""
    return next(part for part in build(result, {}).sections if part.id == id)


def cells(table: Table) -> list[list[str]]:
    """Its texts."""
    return [[entry.text for entry in row] for row in table.rows]


@pytest.mark.parametrize(
    ("target", "short"),
    [
        (NVME, "NVMe, Samsung SSD 980, xfs"),
        (
            {
                "name": "Amazon EBS",
                "device": {"model": "Amazon Elastic Block Store"},
                "file_system": "ext4",
            },
            "Amazon EBS, Amazon Elastic Block Store, ext4",
        ),
        ({"name": "tmpfs: memory", "file_system": "tmpfs"}, "tmpfs: memory"),
        ({"name": "overlay of file systems", "file_system": "overlay"}, "overlay of file systems"),
        ({"name": "unknown", "file_system": "proc"}, "proc, and what lies below it unknown"),
        (OLD, "ext4"),
        ({}, ""),
    ],
)
def test_a_target_in_a_few_words(target: dict[str, Any], short: str) -> None:
    """Its kind first; of an older version's result what that knew."""
    assert target_names({"targets": {"t": target}}) == {"t": short}


def test_every_target_has_a_row_with_the_evidence() -> None:
    """What it is, how much room, what is below it, and what shows that."""
    (table,) = target_table({"targets": {"a": NVME, "b": OLD}})
    assert cells(table) == [
        [
            *("a", "NVMe", "1\u00a0TB", "xfs → partition → NVMe (Samsung SSD 980)"),
            "read-ahead 128\u00a0KiB, scheduler none, link 3\u202f940 MB/s",
        ],
        ["b", "unknown", "1\u00a0GB", "", ""],
    ]
    notes = [[entry.note for entry in row if entry.note] for row in table.rows]
    assert notes == [
        ["xfs", "500\u00a0GB free", "an NVMe drive on PCI Express", "rw, noatime"],
        ["ext4", "1\u00a0B free", "rw"],
    ]


def test_stores_have_rows_too() -> None:
    """With the provider as far as it is known."""
    (table,) = store_table({"stores": {"s3": S3, "own": {"name": "S3 server of this run"}}})
    assert cells(table) == [
        ["s3", "Amazon S3, eu-west-1", "w"],
        ["own", "S3 server of this run", ""],
    ]
    assert [row[1].note for row in table.rows] == ["by TLS", ""]


@pytest.mark.parametrize("environment", [{}, {"targets": None, "stores": 3}, {"targets": {"a": 1}}])
def test_no_targets_no_tables(environment: dict[str, Any]) -> None:
    """Nor of anything that is no description."""
    assert target_table(environment) == store_table(environment) == ()


def test_a_targets_kind_stands_beside_its_figures() -> None:
    """Above the charts, and in each row of the table."""
    run = Run().disks()
    result = run.result(
        environment={"targets": {"nvme": NVME, "ebs": {**OLD, "name": "Amazon EBS"}}}
    )
    blocks = section(result, "disks").blocks
    assert blocks[0] == Words(
        ("ebs: Amazon EBS, ext4.", "nvme: NVMe, Samsung SSD 980, xfs."), listed=True
    )
    (table,) = (block for block in blocks if isinstance(block, Table) and "latency" in block.title)
    notes = {(row[0].text, row[0].note) for row in table.rows}
    assert notes == {("nvme", "NVMe, Samsung SSD 980, xfs"), ("ebs", "Amazon EBS, ext4")}


def test_a_stores_kind_stands_above_its_figures() -> None:
    """By the label that trials use."""
    run = Run().stores()
    label = next(trial.params["store"] for trial in run.trials)
    result = run.result(environment={"stores": {label: S3, "not probed": S3}})
    assert section(result, "objects").blocks[0] == Words((f"{label}: Amazon S3, eu-west-1.",))


def test_storage_comes_first_in_the_environment() -> None:
    """A reader asks what was measured before asking by what."""
    result = Run().disks().result()
    titles = [
        block.title for block in section(result, "environment").blocks if isinstance(block, Table)
    ]
    assert titles[:3] == ["What was measured", "This machine", "Libraries (4)"]
