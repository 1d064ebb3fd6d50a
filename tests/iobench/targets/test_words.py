"""A target in a few lines."""

from __future__ import annotations

from iobench.targets.words import target_lines


def test_all_that_is_known() -> None:
    """Kind, way down, room, settings, options, evidence."""
    target = {
        "kind": "ec2-instance-store",
        "name": "EC2 instance store",
        "why": "its model is Amazon EC2 NVMe Instance Storage",
        "stack": ["xfs", "md RAID (raid0) of 2", "2 × EC2 instance store"],
        "device": {
            "queue": {"scheduler": "none"},
            "link_mb_per_s": 3938.5,
            "rotational": True,
        },
        "file_system": "xfs",
        "mount_options": "rw,noatime",
        "total_bytes": 38 * 10**11,
        "free_bytes": 10**9,
        "read_ahead_kb": 4096,
    }
    assert target_lines("/mnt", target) == [
        "/mnt: EC2 instance store",
        "    xfs → md RAID (raid0) of 2 → 2 × EC2 instance store, 3,800.0 GB, 1.0 GB free",
        "    reads 4096 KiB ahead; scheduler none; a link of 3,938 MB/s; rotational",
        "    mounted rw, noatime",
        "    because its model is Amazon EC2 NVMe Instance Storage",
    ]


def test_nothing_but_the_type() -> None:
    """Why it is unknown is no because."""
    target = {
        "kind": "unknown",
        "name": "unknown",
        "why": "no block device is behind it",
        "stack": [],
        "file_system": "proc",
        "mount_options": "",
    }
    assert target_lines("/proc", target) == [
        "/proc: unknown",
        "    proc",
        "    no block device is behind it",
    ]
